//! Retention leases: for whom a shard keeps operations, from which on, and until when.
//!
//! After Elasticsearch's `ReplicationTracker`. A follower renews its lease every 30 s while it moves; a lease that was
//! not renewed for `index.soft_deletes.retention_lease.period` expires.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use world::Time;

/// How often a follower renews its lease: `ccr.retention_lease.renew_interval`, as in the field.
pub const RENEW_EVERY: Duration = Duration::from_secs(30);

/// A lease that does not move is renewed after this part of its period, and after [`REST_MAX`] at the latest.
const REST_PART: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(3600);
/// The longest pause between two looks at a resting lease. When it moves again, the leader retains operations this much
/// too long.
const LOOK_MAX: Duration = Duration::from_secs(300);

/// When a follower renews its lease: every [`RENEW_EVERY`] while it moves, and before it expires where it rests. So a
/// follower of an idle index costs next to nothing.
#[derive(Debug)]
pub struct Renewal {
    /// When it was renewed, from which operation on, and for how long it may rest.
    last: Option<(Time, u64, Duration)>,
    wait: Duration,
}

impl Default for Renewal {
    fn default() -> Self {
        Renewal { last: None, wait: RENEW_EVERY }
    }
}

impl Renewal {
    /// How long to wait before [`Renewal::is_due`] is asked again.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Whether a lease on the operations from `from` on is to be renewed now.
    pub fn is_due(&mut self, now: Time, from: u64) -> bool {
        match self.last {
            Some((at, last, rest)) if last == from && now - at < rest => {
                let left = (rest - (now - at)).min(LOOK_MAX);
                self.wait = (self.wait * 2).min(left).max(Duration::from_secs(1));
                false
            }
            _ => true,
        }
    }

    /// The lease was renewed for `period`; none where that failed, or the period is not known.
    pub fn done(&mut self, now: Time, from: u64, period: Option<Duration>) {
        let rest = |period: Duration| (period / REST_PART).min(REST_MAX);
        self.last = period.map(|period| (now, from, rest(period)));
        self.wait = RENEW_EVERY;
    }
}

/// One lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Operations from here on are kept.
    pub retaining_seq_no: u64,
    /// When it was added or renewed, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Who asked for it; `ccr` for followers.
    pub source: String,
}

/// The leases of a shard, by id. A primary numbers the lists that it gives to the other copies, so that none of these
/// takes an older list for a newer one, as Elasticsearch's `RetentionLeases`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leases {
    /// Term of the primary that gave a list last, and the number of that list.
    version: (u64, u64),
    by_id: BTreeMap<String, Lease>,
}

/// Leases that are read from a disk, where lists have no number: a primary that is opened there has a term of its own.
impl From<BTreeMap<String, Lease>> for Leases {
    fn from(by_id: BTreeMap<String, Lease>) -> Self {
        Leases { version: Default::default(), by_id }
    }
}

impl Leases {
    /// Numbers the list: it is the next one of a primary of this term.
    pub fn next_version(&mut self, primary_term: u64) {
        self.version = (primary_term, self.version.1 + 1);
    }

    /// Whether it is a later list than the other one.
    pub fn supersedes(&self, other: &Leases) -> bool {
        self.version > other.version
    }

    /// Adds a lease, or renews it. Renewing never moves a lease back: operations below it may be gone.
    pub fn renew(&mut self, id: &str, retaining_seq_no: u64, now_ms: u64, source: &str) {
        let lease = self.by_id.entry(id.to_owned()).or_insert_with(|| Lease {
            retaining_seq_no,
            timestamp_ms: now_ms,
            source: source.to_owned(),
        });
        lease.retaining_seq_no = lease.retaining_seq_no.max(retaining_seq_no);
        lease.timestamp_ms = lease.timestamp_ms.max(now_ms);
    }

    /// Adds a lease for a copy that begins at `retaining_seq_no`, or moves one back so far. Whoever calls this retains
    /// the operations from there on. It never moves a lease forward: a copy of the same name may follow by it, and the
    /// one that begins may be gone already.
    pub fn begin(&mut self, id: &str, retaining_seq_no: u64, now_ms: u64, source: &str) {
        let begun = self
            .by_id
            .get(id)
            .map_or(retaining_seq_no, |lease| lease.retaining_seq_no.min(retaining_seq_no));
        self.renew(id, begun, now_ms, source);
        if let Some(lease) = self.by_id.get_mut(id) {
            lease.retaining_seq_no = begun;
        }
    }

    /// Drops a lease; whether there was one.
    pub fn remove(&mut self, id: &str) -> bool {
        self.by_id.remove(id).is_some()
    }

    /// Drops the leases that were not renewed for `period`; answers with their ids.
    pub fn expire(&mut self, now_ms: u64, period: Duration) -> Vec<String> {
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        let is_old = |lease: &Lease| now_ms.saturating_sub(lease.timestamp_ms) > period_ms;
        self.by_id.extract_if(.., |_, lease| is_old(lease)).map(|(id, _)| id).collect()
    }

    /// When the next lease expires unless it is renewed before, in milliseconds since 1970.
    pub fn expires_at_ms(&self, period: Duration) -> Option<u64> {
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        let oldest_ms = self.by_id.values().map(|lease| lease.timestamp_ms).min()?;
        Some(oldest_ms.saturating_add(period_ms).saturating_add(1))
    }

    /// Every lease, as a disk keeps them.
    pub fn by_id(&self) -> &BTreeMap<String, Lease> {
        &self.by_id
    }

    /// Every lease, by id.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Lease)> {
        self.by_id.iter().map(|(id, lease)| (id.as_str(), lease))
    }

    /// The first operation that a lease keeps; none where there is no such lease.
    pub fn retained_from(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).map(|lease| lease.retaining_seq_no)
    }

    /// Whether there is a lease of this id.
    pub fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_moves_is_renewed_soon_and_one_that_rests_in_time() {
        let period = Duration::from_secs(12 * 3600);
        let run = |period: Duration, moves_until_s: u64| {
            let (mut renewal, mut now) = (Renewal::default(), Time(0));
            let (mut renewed_at, mut longest) = (now, Duration::ZERO);
            let mut renewals = 0;
            while now < Time(86_400_000_000_000) {
                now = now + renewal.wait();
                let seconds = now.as_secs_f64() as u64;
                let from = seconds.min(moves_until_s);
                if renewal.is_due(now, from) {
                    renewal.done(now, from, Some(period));
                    longest = longest.max(now - renewed_at);
                    renewed_at = now;
                    renewals += 1;
                }
            }
            (renewals, longest)
        };
        assert_eq!(run(period, u64::MAX), (2880, RENEW_EVERY));
        let (renewals, longest) = run(period, 0);
        assert!(renewals < 30 && longest <= REST_MAX, "{renewals} {longest:?}");
        // Where leases are short, they are renewed long before they end.
        let (_, longest) = run(Duration::from_secs(200), 0);
        assert!(longest <= Duration::from_secs(60), "{longest:?}");
        let mut failed = Renewal::default();
        failed.done(Time(30_000_000_000), 7, None);
        assert!(failed.is_due(Time(60_000_000_000), 7) && failed.wait() == RENEW_EVERY);
    }

    #[test]
    fn a_lease_that_is_renewed_stays_and_another_goes() {
        let mut leases = Leases::default();
        leases.renew("a", 10, 1_000, "ccr");
        leases.renew("b", 5, 1_000, "ccr");
        leases.renew("a", 30, 31_000, "ccr");
        assert!(leases.expire(61_000, Duration::from_secs(60)).is_empty());
        assert_eq!(leases.expires_at_ms(Duration::from_secs(60)), Some(61_001));
        assert_eq!(leases.expire(61_001, Duration::from_secs(60)), ["b"]);
        assert_eq!(leases.expires_at_ms(Duration::from_secs(60)), Some(91_001));
        let left: Vec<_> = leases.iter().map(|(id, lease)| (id, lease.retaining_seq_no)).collect();
        assert_eq!(left, [("a", 30)]);
        assert!(leases.remove("a") && !leases.remove("a") && leases.is_empty());
    }

    #[test]
    fn what_was_let_go_is_not_asked_back() {
        let mut leases = Leases::default();
        leases.renew("a", 30, 1_000, "ccr");
        leases.renew("a", 20, 500, "ccr");
        let lease = leases.iter().next().unwrap().1;
        assert_eq!((lease.retaining_seq_no, lease.timestamp_ms), (30, 1_000));
    }

    #[test]
    fn a_list_supersedes_those_before_it_and_those_of_an_earlier_primary() {
        let mut first = Leases::default();
        first.next_version(1);
        let mut second = first.clone();
        second.next_version(1);
        assert!(second.supersedes(&first) && !first.supersedes(&second));
        assert!(!first.supersedes(&first), "it may come twice");
        // The next primary had not got the second list.
        let mut of_next_primary = first.clone();
        of_next_primary.next_version(2);
        assert!(of_next_primary.supersedes(&second) && !second.supersedes(&of_next_primary));
        assert!(first.supersedes(&second.by_id().clone().into()), "what a disk had is the oldest");
    }

    #[test]
    fn a_copy_that_begins_moves_a_lease_back_and_never_forward() {
        let mut leases = Leases::default();
        let held = |leases: &Leases| {
            let lease = leases.iter().next().unwrap().1;
            (lease.retaining_seq_no, lease.timestamp_ms)
        };
        leases.begin("a", 30, 1_000, "ccr");
        assert_eq!(held(&leases), (30, 1_000));
        leases.begin("a", 70, 2_000, "ccr");
        assert_eq!(held(&leases), (30, 2_000));
        leases.begin("a", 10, 3_000, "ccr");
        assert_eq!(held(&leases), (10, 3_000));
    }
}
