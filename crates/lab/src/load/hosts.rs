//! Which host is asked next. A host that cannot be reached is left out for a while: clients of a closed loop would
//! otherwise spend themselves on failures that take no time. Pure.

use std::time::Duration;

use world::Time;

/// How long a host that could not be reached is left out.
pub const LEFT_OUT: Duration = Duration::from_secs(1);

/// Hosts in turn.
#[derive(Debug)]
pub struct HostTurn {
    /// Until when each is left out.
    out_until: Vec<Time>,
    next: usize,
}

impl HostTurn {
    /// So many hosts, at least one, of which `first` is asked first.
    pub fn new(hosts: usize, first: usize) -> Self {
        HostTurn { out_until: vec![Time(0); hosts.max(1)], next: first % hosts.max(1) }
    }

    /// The next host to ask; where all are left out, the time at which the first of them is asked again.
    pub fn next(&mut self, now: Time) -> Result<usize, Time> {
        let count = self.out_until.len();
        let from = self.next;
        for host in (from..from + count).map(|n| n % count) {
            if self.out_until[host] <= now {
                self.next = (host + 1) % count;
                return Ok(host);
            }
        }
        Err(self.out_until.iter().copied().min().unwrap_or(now))
    }

    /// A host could not be reached.
    pub fn unreachable(&mut self, host: usize, now: Time) {
        self.out_until[host] = now + LEFT_OUT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_come_in_turn_and_the_unreachable_later() {
        let mut hosts = HostTurn::new(3, 1);
        let now = Time(0);
        let turn: Vec<usize> = (0..4).map(|_| hosts.next(now).unwrap()).collect();
        assert_eq!(turn, [1, 2, 0, 1]);
        hosts.unreachable(2, now);
        let turn: Vec<usize> = (0..4).map(|_| hosts.next(now).unwrap()).collect();
        assert_eq!(turn, [0, 1, 0, 1]);
        assert_eq!(hosts.next(now + LEFT_OUT), Ok(2));
    }

    #[test]
    fn without_any_the_first_to_return_is_waited_for() {
        let mut hosts = HostTurn::new(2, 0);
        hosts.unreachable(0, Time(500));
        hosts.unreachable(1, Time(100));
        assert_eq!(hosts.next(Time(600)), Err(Time(100) + LEFT_OUT));
    }
}
