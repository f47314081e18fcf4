//! What another cluster claims, checked before it counts.
//!
//! A leader may be broken, or mean harm. Whether its documents are the right ones cannot be known here. What can be
//! known is whether its answer fits the question, and whether its numbers fit each other.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use store::{Commit, Operation};

use crate::transport::{Failure, Result, SessionOpened, SourcePhases};

/// Sequence numbers are those of the field, a signed number of 64 bits: what is above is no place in a history.
pub(crate) const SEQ_NO_MAX: u64 = i64::MAX as u64;

fn refused(why: String) -> Failure {
    Failure::new(
        500,
        "transport_exception",
        format!("the remote cluster's answer is refused: {why}"),
    )
}

/// Checkpoints fit each other: nobody has everything up to an operation that nobody numbered.
pub(crate) fn checkpoints(checkpoint: Option<u64>, max_seq_no: Option<u64>) -> Result<()> {
    if checkpoint > max_seq_no || max_seq_no > Some(SEQ_NO_MAX) {
        let (checkpoint, max) = (shown(checkpoint), shown(max_seq_no));
        return Err(refused(format!(
            "it has all up to {checkpoint}, and the highest sequence number is {max}"
        )));
    }
    Ok(())
}

fn shown(seq_no: Option<u64>) -> String {
    seq_no.map_or("none".to_owned(), |seq_no| seq_no.to_string())
}

/// Operations begin with `from`, have no holes, end with `last` at the latest, and are no more than was asked for. One
/// operation may have any size.
pub(crate) fn operations(
    from: u64,
    last: Option<u64>,
    (max_ops, max_bytes): (u64, u64),
    ops: &[Operation],
) -> Result<()> {
    let mut next = from;
    for op in ops {
        if op.seq_no != next {
            let came = op.seq_no;
            return Err(refused(format!(
                "it lacks operation {next}, which was asked for; {came} came in its place"
            )));
        }
        next = op.places().end;
    }
    let came = ops.last().map(Operation::last_seq_no);
    if came > last {
        let (came, last) = (shown(came), shown(last));
        return Err(refused(format!("it has operation {came}, and may have none above {last}")));
    }
    let but_last = &ops[..ops.len().saturating_sub(1)];
    let bytes: u64 = but_last.iter().map(Operation::encoded_bytes).sum();
    if ops.len() as u64 > max_ops.max(1) || bytes > max_bytes {
        let count = ops.len();
        return Err(refused(format!(
            "it has {count} operations and more than {bytes} bytes; {max_ops} and {max_bytes} were asked for"
        )));
    }
    Ok(())
}

/// An answer without operations is given after the wait that was asked for, or because there is something new beside
/// operations. It is no answer to a question for operations that the leader said it has.
pub(crate) fn nothing_new(
    said: Range<u64>,
    (took, poll_timeout): (Duration, Duration),
    is_news: bool,
) -> Result<()> {
    if !said.is_empty() {
        let (from, last) = (said.start, said.end - 1);
        return Err(refused(format!(
            "it has no operations, though the leader said it has {from} to {last}"
        )));
    }
    // Clocks differ a little.
    if !is_news && took < poll_timeout / 2 {
        let (took, wait) = (took.as_millis(), poll_timeout.as_millis());
        return Err(refused(format!(
            "it has nothing new after {took} ms, and was to wait {wait} ms for it"
        )));
    }
    Ok(())
}

/// The files and the history of a session.
pub(crate) fn session(opened: &SessionOpened) -> Result<()> {
    checkpoints(opened.from_seq_no.checked_sub(1), opened.max_seq_no)?;
    opened.commit.as_ref().map_or(Ok(()), commit)
}

fn commit(commit: &Commit) -> Result<()> {
    checkpoints(commit.local_checkpoint, commit.max_seq_no)?;
    let (documents, operations) =
        (commit.documents, commit.max_seq_no.map_or(0, |max_seq_no| max_seq_no + 1));
    if documents > operations {
        return Err(refused(format!("it has {documents} documents of {operations} operations")));
    }
    let names: BTreeSet<&str> = commit.files.iter().map(|file| &*file.name).collect();
    if names.len() < commit.files.len() {
        return Err(refused("it lists a file twice".to_owned()));
    }
    let lens = commit.files.iter().map(|file| u128::from(file.len));
    let bytes: u128 = lens.sum();
    if bytes > i64::MAX as u128 || commit.generation > i64::MAX as u64 {
        return Err(refused(format!("it lists files of {bytes} bytes")));
    }
    if let Some(range) = commit.above_checkpoint.iter().find(|range| range.end > SEQ_NO_MAX) {
        return Err(refused(format!("it lists the operations {range:?}")));
    }
    Ok(())
}

/// Times that somebody else claims to have spent, cut to the time that there was.
pub(crate) fn within(elapsed: Duration, claimed: [Duration; 2]) -> [Duration; 2] {
    let mut left = elapsed;
    claimed.map(|claim| {
        let span = claim.min(left);
        left -= span;
        span
    })
}

/// The same of what a source did with a chunk.
pub(crate) fn phases_within(elapsed: Duration, claimed: &SourcePhases) -> SourcePhases {
    let cut = |span: Duration| span.min(elapsed);
    SourcePhases {
        memory: cut(claimed.memory),
        disk_read: cut(claimed.disk_read),
        cpu: cut(claimed.cpu),
        throttle: cut(claimed.throttle),
    }
}

#[cfg(test)]
mod tests {
    use store::FileMeta;

    use super::*;

    fn ops(seq_nos: impl IntoIterator<Item = u64>) -> Vec<Operation> {
        seq_nos.into_iter().map(Operation::no_op).collect()
    }

    fn why(checked: Result<()>) -> String {
        checked.unwrap_err().reason
    }

    #[test]
    fn operations_are_those_that_were_asked_for() {
        let many = (1000, 1 << 20);
        assert_eq!(operations(5, Some(7), many, &ops(5..8)), Ok(()));
        assert_eq!(operations(5, None, many, &[]), Ok(()));
        for wrong in [vec![6, 7], vec![5, 7], vec![5, 5], vec![7, 6, 5]] {
            let said = why(operations(5, Some(9), many, &ops(wrong.clone())));
            assert!(said.contains("it lacks operation"), "{wrong:?}: {said}");
        }
        assert!(why(operations(5, Some(6), many, &ops(5..8))).contains("none above 6"));
        assert!(why(operations(0, None, many, &ops(0..1))).contains("none above none"));
        assert!(why(operations(5, Some(7), (2, 1 << 20), &ops(5..8))).contains("3 operations"));
        assert!(why(operations(5, Some(7), (1000, 10), &ops(5..8))).contains("10 were asked"));
        assert_eq!(operations(5, Some(5), (1, 1), &ops(5..6)), Ok(()), "one may have any size");
        let last = Some(SEQ_NO_MAX);
        assert!(why(operations(u64::MAX, last, many, &ops([u64::MAX]))).contains("none above"));
    }

    #[test]
    fn checkpoints_and_files_fit_each_other() {
        assert_eq!(checkpoints(None, None), Ok(()));
        assert_eq!(checkpoints(Some(3), Some(3)), Ok(()));
        for (checkpoint, max) in [(Some(4), Some(3)), (Some(0), None), (None, Some(u64::MAX))] {
            assert!(checkpoints(checkpoint, max).is_err(), "{checkpoint:?} {max:?}");
        }
        let file = |name: &str, len| FileMeta { name: name.into(), len, xxh3: 0 };
        let of =
            |files: Vec<FileMeta>| commit(&Commit { files: files.into(), ..Commit::default() });
        assert_eq!(of(vec![file("a", 3), file("b", 5)]), Ok(()));
        let documents = Commit { documents: 4, max_seq_no: Some(2), ..Commit::default() };
        assert!(why(commit(&documents)).contains("4 documents of 3 operations"));
        assert!(why(of(vec![file("a", 3), file("a", 3)])).contains("twice"));
        assert!(why(of(vec![file("a", u64::MAX), file("b", u64::MAX)])).contains("files of"));
    }

    #[test]
    fn claimed_times_fit_into_the_time_that_there_was() {
        let [second, max] = [Duration::from_secs(1), Duration::MAX];
        assert_eq!(within(second, [max, max]), [second, Duration::ZERO]);
        assert_eq!(within(second * 3, [second, second]), [second, second]);
        let claimed = SourcePhases { throttle: max, cpu: second, ..SourcePhases::default() };
        let cut = phases_within(second * 2, &claimed);
        assert_eq!((cut.throttle, cut.cpu, cut.memory), (second * 2, second, Duration::ZERO));
    }
}
