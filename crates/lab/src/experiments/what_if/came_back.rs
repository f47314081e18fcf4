//! How the copies of nodes that restarted came back: by operations or by files.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use record::units::{counted, show_bytes, show_count};
use serde_json::Value;

/// Indices that are named, those with most copies.
const NAMED_MAX: usize = 5;

/// What recoveries from another copy brought.
#[derive(Debug, Default)]
pub(super) struct CameBack {
    /// Those that copied no file.
    by_operations: Copies,
    /// Those that copied files.
    by_files: Copies,
    operations: u64,
    operations_bytes: u64,
    bytes: u64,
}

type Copies = BTreeMap<String, u32>;

impl CameBack {
    /// Adds an answer of `_recovery`; what began earlier does not count.
    pub(super) fn add(&mut self, answer: &Value, since_epoch_ms: u64) {
        let indices = answer.as_object().into_iter().flatten();
        let rows = indices.flat_map(|(index, value)| {
            value["shards"].as_array().into_iter().flatten().map(move |row| (index, row))
        });
        for (index, row) in rows {
            let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
            if row["type"] != "PEER" || number("/start_time_in_millis") < since_epoch_ms {
                continue;
            }
            let bytes = number("/index/size/recovered_in_bytes");
            let copies = if bytes > 0 { &mut self.by_files } else { &mut self.by_operations };
            *copies.entry(index.clone()).or_default() += 1;
            self.operations += number("/translog/recovered");
            self.operations_bytes += number("/narrows/operations_bytes");
            self.bytes += bytes;
        }
    }

    /// The same in a sentence, after how many documents were written, and with what else was copied of all the bytes
    /// that were `copied`.
    pub(super) fn sentence(&self, written: u64, copied: u64) -> String {
        let written = match written {
            0 => "Nothing was written".to_owned(),
            written => {
                counted(show_count(written), "document was written", "documents were written")
            }
        };
        let operations_bytes = match self.operations_bytes {
            0 => String::new(),
            bytes => format!(" of {}", show_bytes(bytes)),
        };
        let more = match copied.saturating_sub(self.operations_bytes + self.bytes) {
            0 => String::new(),
            more => format!(
                "; {} more went to copies that were missing before, were moved or were given up",
                show_bytes(more)
            ),
        };
        format!(
            "{written} meanwhile; {}, {}: {}{operations_bytes} and {} of files{more}",
            named("came back by operations", &self.by_operations),
            named("by files", &self.by_files),
            counted(show_count(self.operations), "operation", "operations"),
            show_bytes(self.bytes)
        )
    }
}

fn named(how: &str, copies: &Copies) -> String {
    let sum: u32 = copies.values().sum();
    if sum == 0 {
        return format!("no copy {how}");
    }
    let mut sorted: Vec<(&String, &u32)> = copies.iter().collect();
    sorted.sort_by_key(|(_, count)| Reverse(**count));
    let first = sorted.iter().take(NAMED_MAX).map(|(index, count)| format!("{index} {count}"));
    let mut named: Vec<String> = first.collect();
    if sorted.len() > NAMED_MAX {
        named.push("...".to_owned());
    }
    format!("{} {how} ({})", counted(sum, "copy", "copies"), named.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_copied_no_file_came_back_by_operations() {
        let row = |kind: &str, start: u64, bytes: u64, operations: u64| {
            json!({
                "type": kind, "start_time_in_millis": start,
                "index": { "size": { "recovered_in_bytes": bytes } },
                "translog": { "recovered": operations },
                "narrows": { "operations_bytes": operations * 1000 },
            })
        };
        let answer = json!({
            "a": { "shards": [row("PEER", 5, 0, 30), row("PEER", 6, 0, 12), row("PEER", 4, 9, 9)] },
            "b": { "shards": [row("PEER", 5, 2_000_000, 1), row("EXISTING_STORE", 5, 7, 7)] },
        });
        let mut all = CameBack::default();
        all.add(&answer, 5);
        let expected = "80 documents were written meanwhile; 2 copies came back by operations (a 2), 1 copy by files \
                        (b 1): 43 operations of 43.0 kB and 2.00 MB of files";
        assert_eq!(all.sentence(80, 2_043_000), expected);
        let more =
            "; 1.00 MB more went to copies that were missing before, were moved or were given up";
        assert_eq!(all.sentence(80, 3_043_000), format!("{expected}{more}"));
        // The next node restarts: what is told no more stays counted.
        all.add(&json!({ "a": { "shards": [row("PEER", 9, 0, 7)] } }), 8);
        assert!(
            all.sentence(80, 0).contains("3 copies came back by operations (a 3), 1 copy by files")
        );
        let none = CameBack::default().sentence(0, 0);
        let expected =
            "Nothing was written meanwhile; no copy came back by operations, no copy by files";
        assert!(none.starts_with(expected), "{none}");
    }
}
