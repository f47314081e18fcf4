//! Followers that fall behind, and proxies to other clusters.

use insight::diagnosis::{By, Class, Finding, RuledOut};
use record::observation::{
    AutoFollowError, FollowLimits, Follower, Gap, Observation, Remote, RoundTrip,
};

use super::{LIMIT, against, judge, looks_at, looks_at_rest, only};
use crate::common::{MB, restore_from};

#[test]
fn a_node_that_refuses_work_and_a_proxy_say_what_else_was_looked_at() {
    let refused = only(&looks_at_rest(|look, s| look.nodes[0].pressure_rejections = Some(s * 3)));
    assert_eq!(refused.class, Class::Memory);
    let [gc] = &refused.ruled_out[..] else { panic!("{refused:#?}") };
    assert_eq!((gc.class, gc.by), (Class::Gc, By::Figure));
    assert!(gc.why.starts_with("collections stop a for 0.5 % of the time (15 %"), "{}", gc.why);
    assert!(refused.lift.unwrap().action.contains("indexing_pressure.memory.limit"));
    // More memory for requests is none for what a breaker guards.
    let tripped = only(&looks_at_rest(|look, s| {
        look.nodes[0].breakers_tripped.insert("parent".to_owned(), s);
    }));
    let action = tripped.lift.unwrap().action;
    assert!(action.contains("heap") && !action.contains("indexing_pressure"), "{action}");
    let proxied = |rtt_ms: Option<f64>| {
        let finding = only(&looks_at_rest(|look, _| {
            let trip = |rtt_ms| RoundTrip { from: "a".into(), to: "eu".into(), rtt_ms };
            look.remotes = vec![proxy(1, 18)];
            look.round_trips = rtt_ms.map(trip).into_iter().collect();
        }));
        assert_eq!(finding.class, Class::Proxy);
        assert_eq!(finding.sentence, "1 of 18 sockets to the proxy of eu is open");
        let [latency] = &finding.ruled_out[..] else { panic!("{finding:#?}") };
        (latency.by, latency.why.clone())
    };
    assert_eq!(proxied(Some(0.4)), (By::Figure, "eu is near: 0.4 ms of round trip".to_owned()));
    let (by, why) = proxied(Some(160.0));
    assert!(by == By::Untold && why.contains("the round trip to eu is 160 ms"), "{why}");
    assert_eq!(proxied(None), (By::Untold, "the round trip to eu was not measured".to_owned()));
}

fn follower(s: u64) -> Follower {
    Follower {
        index: "f".into(),
        shard: Some(0),
        remote: Some("eu".into()),
        leader_checkpoint: Some(100_000 + s as i64 * 5000),
        follower_checkpoint: Some(50_000 + s as i64 * 2000),
        outstanding_reads: Some(12),
        outstanding_writes: Some(0),
        write_buffer_bytes: Some(0),
        read_ms: Some(s * 12_000),
        read_remote_ms: Some(s * 500),
        reads: Some(s * 100),
        bytes_read: Some(s * MB),
        ..Follower::default()
    }
}

/// What OpenSearch's plugin says of an index: no shard, no times, no buffer.
pub(super) fn replicated(s: u64) -> Follower {
    Follower {
        index: "f".into(),
        leader_checkpoint: Some(100_000 + s as i64 * 5000),
        follower_checkpoint: Some(50_000 + s as i64 * 2000),
        ops_read: Some(50_010 + s * 2000),
        ops_written: Some(50_000 + s * 2000),
        failed_reads: Some(0),
        throttled_reads: Some(0),
        throttled_writes: Some(0),
        ..Follower::default()
    }
}

/// Looks at one follower, each with a change that is given the seconds gone by.
pub(super) fn looks_at_one(
    follower: fn(u64) -> Follower,
    change: fn(&mut Follower, u64),
) -> Vec<(f64, Observation)> {
    looks_at_one_that(|s| {
        let mut one = follower(s);
        change(&mut one, s);
        one
    })
}

fn looks_at_one_that(is_so: impl Fn(u64) -> Follower) -> Vec<(f64, Observation)> {
    looks_at_rest(|look, s| look.followers = vec![is_so(s)])
}

/// The same, whose leader's cluster is connected or not.
fn looks_at_one_beside(
    connected: bool,
    is_so: impl Fn(u64) -> Follower,
) -> Vec<(f64, Observation)> {
    looks_at_rest(|look, s| {
        look.followers = vec![is_so(s)];
        look.remotes = vec![remote("eu", connected)];
    })
}

pub(super) fn remote(alias: &str, connected: bool) -> Remote {
    Remote { alias: alias.into(), connected: Some(connected), ..Remote::default() }
}

#[test]
fn followers_read_or_write_too_slowly_or_stop() {
    let with = |change: fn(&mut Follower, u64)| looks_at_one(follower, change);
    let reader = only(&with(|_, _| {}));
    assert_eq!(reader.class, Class::FollowerReader);
    assert!(reader.sentence.contains("network time"), "{}", reader.sentence);
    assert_eq!(reader.gain.unwrap().factor, 2.0);
    // Somebody allows it fewer reads than it has by default.
    let single = only(&with(|f, _| f.outstanding_reads = Some(1)));
    assert_eq!(single.gain.unwrap().factor, 12.0);
    let leader = only(&with(|f, s| f.read_remote_ms = Some(s * 11_000)));
    assert!(leader.sentence.contains("leader's work"), "{}", leader.sentence);
    let writer = only(&with(|f, s| {
        f.write_buffer_bytes = Some(s * 40 * MB);
        f.outstanding_writes = Some(9);
    }));
    assert_eq!(writer.class, Class::FollowerWriter);
    assert!(writer.evidence.iter().any(|line| line.value == "0 B then, 400 MB now"), "{writer:#?}");
    let stopped = only(&with(|f, _| f.fatal = Some("history UUID changed".into())));
    assert_eq!(stopped.class, Class::FollowerStopped);
    // It lags, and its reads and writes are not why.
    assert!(!stopped.ruled_out.is_empty());
    let says_so = |one: &RuledOut| one.why.contains("has stopped");
    assert!(stopped.ruled_out.iter().all(says_so), "{:#?}", stopped.ruled_out);
    // Behind, but catching up.
    let well = judge(&with(|f, s| f.follower_checkpoint = Some(50_000 + s as i64 * 9900)));
    assert!(well.findings.is_empty(), "{well:#?}");
    let unknown = only(&with(|f, _| f.read_ms = None));
    assert_eq!(unknown.class, Class::Unknown);
    // Its task has moved, and its counters began anew: it is not judged as OpenSearch's plugin is.
    let moved = only(&with(|f, s| {
        f.read_ms = Some((20 - s) * 12_000);
        (f.ops_read, f.ops_written) = (Some(s * 2000), Some(s * 2000));
    }));
    assert_eq!(moved.class, Class::Unknown, "{moved:#?}");
}

/// What it lacks is read, and waits in a buffer that somebody made small, or in the writes of a slow disk.
#[test]
fn a_follower_that_waits_for_its_writes_is_no_slow_reader() {
    let with = |change: fn(&mut Follower, u64)| only(&looks_at_one(follower, change));
    let small = with(|f, _| {
        let write_buffer_bytes = Some(16 * MB);
        f.limits = Some(FollowLimits { write_buffer_bytes, ..FollowLimits::default() });
        (f.write_buffer_bytes, f.outstanding_writes) = (Some(15 * MB), Some(9));
    });
    assert_eq!(small.class, Class::FollowerWriter, "{small:#?}");
    // The number of operations in it is bounded as well, and not told.
    let full = with(|f, _| (f.outstanding_reads, f.outstanding_writes) = (Some(0), Some(9)));
    assert_eq!(full.class, Class::FollowerWriter, "{full:#?}");
    let disk = with(|f, s| {
        f.outstanding_writes = Some(9);
        (f.ops_read, f.ops_written) = (Some(90_000 + s * 5000), Some(50_000 + s * 2000));
    });
    assert_eq!(disk.class, Class::FollowerWriter);
    assert!(disk.sentence.contains("70\u{202f}000 operations of its lag are read"), "{disk:#?}");
    let blocked = with(|f, s| (f.failed_writes, f.ops_written) = (Some(s), Some(50_000)));
    assert!(blocked.sentence.contains("writes nothing, for its writes fail"), "{blocked:#?}");
    assert!(blocked.lift.unwrap().action.contains("GET f/_settings"));
    let plugin = |f: &mut Follower, s| (f.failed_writes, f.ops_written) = (Some(s), Some(50_000));
    assert_eq!(only(&looks_at_one(replicated, plugin)).class, Class::FollowerWriter);
}

/// Which parameter of the three it is, and that a resumed follower forgets those that are not named.
#[test]
fn reads_that_are_made_small_are_told_by_the_parameter() {
    let with = |change: fn(&mut Follower, u64)| only(&looks_at_one(follower, change));
    fn limited(f: &mut Follower, s: u64, reads: u64, read_ops: u64, read_bytes: u64) {
        let (reads, read_ops, read_bytes) = (Some(reads), Some(read_ops), Some(read_bytes));
        f.limits = Some(FollowLimits { reads, read_ops, read_bytes, write_buffer_bytes: None });
        (f.ops_read, f.bytes_read) = (Some(s * 2000), Some(s * 100 * 65_536));
    }
    let told = |found: Finding| (found.lift.unwrap().action, found.gain.unwrap().factor);
    let (action, factor) = told(with(|f, s| limited(f, s, 12, 20, 32 << 20)));
    assert!(
        action.contains("with max_read_request_operation_count = 5120 (20 today);"),
        "{action}"
    );
    assert!(action.contains("f/_ccr/resume_follow") && action.contains("defaults"), "{action}");
    assert_eq!(factor, 256.0);
    let (action, factor) = told(with(|f, s| limited(f, s, 12, 5120, 64 << 10)));
    assert!(action.contains("max_read_request_size = 32mb (64kb today)"), "{action}");
    assert_eq!(factor, 512.0);
    let (action, factor) = told(with(|f, s| limited(f, s, 1, 20, 32 << 20)));
    let few = "max_outstanding_read_requests = 12 (1 today) and max_read_request_operation_count";
    assert!(action.contains(few) && factor == 12.0, "{action} {factor}");
    // Reads that bring less than they may are not held by that, and all bounds are as usual.
    let usual = with(|f, s| limited(f, s, 12, 5120, 32 << 20));
    assert!(usual.doubt.as_ref().unwrap().starts_with("a path that is full"), "{usual:#?}");
    assert!(told(usual).0.contains("max_outstanding_read_requests = 24 (12 today)"));
}

#[test]
fn reads_that_mostly_fail_are_not_slow_by_their_way() {
    let refused = only(&looks_at_one(follower, |f, s| {
        f.failed_reads = Some(s * 300);
        f.reason = Some("rejected execution".into());
    }));
    let said = "75 % of its reads fail and are tried again: rejected execution";
    assert!(refused.sentence.ends_with(said), "{}", refused.sentence);
    assert!(refused.gain.is_none() && refused.lift.unwrap().action.contains("leader refuses"));
}

/// The trap: the time of reads that fail is counted like that of others, so that the network seems to hold them.
#[test]
fn a_follower_whose_reads_all_fail_is_no_slow_reader() {
    let with = |change: fn(&mut Follower, u64)| only(&looks_at_one(follower, change));
    let failing = with(|f, s| {
        f.follower_checkpoint = Some(50_000);
        (f.failed_reads, f.ops_read) = (Some(s), Some(50_000));
        f.reason = Some("unable to connect to remote cluster [eu]".into());
    });
    assert_eq!((failing.class, failing.place.as_str()), (Class::FollowerStopped, "eu"));
    assert!(failing.sentence.ends_with("unable to connect to remote cluster [eu]"), "{failing:?}");
    let reader = against(&failing, Class::FollowerReader);
    assert_eq!(reader, (By::Figure, "none of its reads succeeds"), "it is not slow besides");
    assert!(failing.gain.is_none() && failing.lift.unwrap().action.contains("_remote/info"));
    let some_fail = with(|f, s| (f.failed_reads, f.ops_read) = (Some(s), Some(50_000 + s * 2000)));
    assert_eq!(some_fail.class, Class::FollowerReader);
}

/// The trap: no error tells of it, and nothing that it counts moves.
#[test]
fn a_follower_that_stands_still_without_an_error_is_told() {
    let at = |reads: u64, since_s: u64| {
        judge(&looks_at_rest(move |look, s| {
            let one = |shard: u32| Follower {
                shard: Some(shard),
                leader_checkpoint: Some(100_000),
                follower_checkpoint: Some(50_000),
                outstanding_reads: Some(reads),
                since_read_ms: Some((since_s + s) * 1000),
                ops_read: Some(50_000),
                ops_written: Some(50_000),
                ..follower(0)
            };
            look.followers = vec![one(0), one(1)];
        }))
        .findings
    };
    let idle = at(0, 600);
    let [found] = &idle[..] else { panic!("shards that stand still alike are one: {idle:#?}") };
    assert_eq!((found.class, found.subjects.len()), (Class::FollowerStopped, 2));
    assert!(found.sentence.ends_with("and asks for nothing, though nothing fails"), "{found:#?}");
    assert!(found.lift.as_ref().unwrap().action.contains("f/_ccr/pause_follow"), "{found:#?}");
    let (_, why) = against(found, Class::FollowerReader);
    assert!(why.contains("it stands still"), "{why}");
    let hung = &at(12, 600)[0];
    assert!(hung.sentence.ends_with("and none of its reads is answered"), "{hung:#?}");
    let action = &hung.lift.as_ref().unwrap().action;
    assert!(action.contains("cluster.remote.eu.transport.ping_schedule"), "{action}");
    // A large read over a slow path takes a while.
    assert_eq!(at(12, 60)[0].class, Class::Unknown);
    let plugin = only(&looks_at_one(replicated, |f, _| {
        (f.follower_checkpoint, f.ops_read, f.ops_written) =
            (Some(50_000), Some(50_000), Some(50_000));
    }));
    assert_eq!(plugin.class, Class::FollowerStopped);
    assert!(plugin.lift.unwrap().action.contains("_plugins/_replication/f/_pause"));
    assert!(plugin.doubt.unwrap().contains("look for longer"));
}

/// Over a long path to a busy index thousands of operations are always on their way.
#[test]
fn a_follower_that_is_behind_by_a_moment_of_writes_keeps_up() {
    let at = |behind: fn(u64) -> i64| {
        judge(&looks_at_one_that(|s| {
            let leader = 100_000 + s as i64 * 60_000;
            Follower {
                leader_checkpoint: Some(leader),
                follower_checkpoint: Some(leader - behind(s)),
                ..follower(s)
            }
        }))
    };
    let well = at(|_| 15_000);
    assert!(well.findings.is_empty(), "{well:#?}");
    assert_eq!(
        well.healthy,
        ["f[0] keeps up with the leader: 15\u{202f}000 operations at most behind"]
    );
    assert!(well.headline.starts_with("healthy: f[0] keeps up"), "{}", well.headline);
    let created = judge(&looks_at_rest(|look, s| {
        look.followers =
            vec![Follower { leader_checkpoint: Some(50_000 + s as i64 * 2000), ..follower(s) }];
        look.health.iter_mut().for_each(|health| health.unassigned = Some(9));
    }));
    assert!(created.headline.starts_with("healthy: 9 copies are still"), "{created:#?}");
    assert!(created.healthy[0].starts_with("f[0] keeps up"), "{created:#?}");
    // It comes nearer, and its lag will be gone in two and a half minutes.
    let nears = at(|s| 3_200_000 - s as i64 * 20_000);
    assert!(nears.findings.is_empty(), "{nears:#?}");
    assert!(
        nears.healthy[0].starts_with("f[0] catches up: 3\u{202f}000\u{202f}000"),
        "{:?}",
        nears.healthy
    );
    let lags: [fn(u64) -> i64; 3] =
        [|_| 300_000, |s| 15_000 + s as i64 * 9000, |s| 3_200_000 - s as i64 * 9000];
    for behind in lags {
        let lagging = at(behind);
        assert_eq!(lagging.findings[0].class, Class::FollowerReader, "{lagging:#?}");
        assert!(lagging.healthy.is_empty(), "{:?}", lagging.healthy);
    }
}

/// As the nodes of its leader start again one by one: some of its reads fail, and others bring what it needs.
#[test]
fn a_follower_of_which_some_reads_fail_keeps_up_where_others_bring_enough() {
    let at = |read_per_s: u64| {
        judge(&looks_at_one_that(move |s| Follower {
            follower_checkpoint: Some(99_990 + s as i64 * 5000),
            failed_reads: Some(s * 3),
            ops_read: Some(50_000 + s * read_per_s),
            ..follower(s)
        }))
        .healthy
    };
    assert_eq!(at(5000), ["f[0] keeps up with the leader: 10 operations at most behind"]);
    assert!(at(0).is_empty(), "what its leader has is known by its reads alone");
}

/// The trap: what its leader has is known by its reads alone, so that a follower that is cut off seems to keep up.
#[test]
fn a_follower_that_is_cut_off_says_so_though_it_knows_of_no_lag() {
    let diagnosis = judge(&looks_at_one_beside(false, |s| Follower {
        leader_checkpoint: Some(50_001),
        follower_checkpoint: Some(50_000),
        failed_reads: Some(7),
        ops_read: Some(50_000),
        reason: Some("connect_timeout[30s]".into()),
        ..follower(s)
    }));
    let [found] = &diagnosis.findings[..] else { panic!("{diagnosis:#?}") };
    assert_eq!(found.class, Class::FollowerStopped);
    let cut_off = found.evidence.iter().find(|line| line.field == "eu.connected");
    assert_eq!(cut_off.map(|line| line.value.as_str()), Some("false"), "{found:#?}");
    assert!(found.doubt.as_ref().unwrap().starts_with("how far it is behind is not known"));
    assert_eq!(against(found, Class::FollowerWriter).1, "1 operation behind (1000 would tell)");
    assert!(diagnosis.healthy.is_empty(), "{:?}", diagnosis.healthy);
}

/// The trap: a read that failed as a node of its leader began anew is told until something is written there.
#[test]
fn a_read_that_failed_once_is_no_failure_of_an_idle_follower() {
    let at = |connected: bool| {
        judge(&looks_at_one_beside(connected, |s| Follower {
            leader_checkpoint: Some(50_000),
            follower_checkpoint: Some(50_000),
            failed_reads: Some(1),
            ops_read: Some(50_000),
            reason: Some("node closed".into()),
            ..follower(s)
        }))
        .findings
    };
    assert!(at(true).is_empty(), "{:#?}", at(true));
    assert_eq!(at(false)[0].class, Class::FollowerStopped);
}

/// A read that waits for its leader's answer has not failed yet, and its leader's checkpoint is of long ago.
#[test]
fn a_follower_is_not_said_to_keep_up_where_nobody_knows() {
    let at = |connected: bool, is_told: bool| {
        let mut looks = looks_at_one_beside(connected, |_| Follower {
            leader_checkpoint: Some(50_000),
            follower_checkpoint: Some(50_000 - if is_told { 0 } else { 9000 }),
            ..follower(0)
        });
        for (_, look) in looks.iter_mut().filter(|_| !is_told) {
            look.gaps = vec![Gap { path: "/_ccr/stats".into(), ..Gap::default() }];
        }
        judge(&looks)
    };
    assert_eq!(at(true, true).healthy, ["f[0] keeps up with the leader: nothing behind"]);
    assert!(at(false, true).healthy.is_empty(), "it is cut off");
    let untold = at(true, false);
    assert!(untold.findings.is_empty() && untold.healthy.is_empty(), "{untold:#?}");
}

#[test]
fn of_many_followers_that_catch_up_the_others_are_counted() {
    let healthy = judge(&looks_at_rest(|look, s| {
        let one = |n: u32| Follower {
            index: format!("f{n}"),
            follower_checkpoint: Some(90_000 + s as i64 * 5500),
            ..follower(s)
        };
        look.followers = (0..9).map(one).collect();
    }))
    .healthy;
    assert_eq!(healthy.len(), 4, "{healthy:?}");
    assert!(healthy[0].starts_with("f0[0] catches up: "), "{healthy:?}");
    assert_eq!(healthy[3], "more followers catch up: 6");
}

/// Nothing follows yet, so that no follower tells of it.
#[test]
fn what_auto_follow_cannot_begin_and_who_is_cut_off_are_notes() {
    let notes_of = |leader: &str, at_ms: u64, aliases: &[&str], connected: bool| {
        judge(&looks_at_rest(|look, _| {
            let reason = "soft deletes are not enabled".to_owned();
            let leader = leader.to_owned();
            look.auto_follow_errors = vec![AutoFollowError { leader, at_ms: Some(at_ms), reason }];
            look.remotes = aliases.iter().map(|alias| remote(alias, connected)).collect();
        }))
        .notes
    };
    let notes = |at_ms: u64, connected: bool| notes_of("daily:logs-1", at_ms, &["eu"], connected);
    // Nodes count at 1010 s in the last look.
    let failed = "auto-follow cannot begin to follow daily:logs-1: soft deletes are not enabled";
    assert_eq!(notes(900_000, true), [failed]);
    let later = notes(400_000, false);
    let [cut_off] = &later[..] else { panic!("it was mended since: {later:?}") };
    assert!(cut_off.starts_with("no node of the remote cluster eu is connected"), "{cut_off}");
    let many = notes_of("daily", 900_000, &["a", "b", "c", "d", "e"], false);
    assert_eq!((many.len(), many[3].as_str()), (5, "more remote clusters are cut off: 2"));
    assert!(many[4].contains("follow what fits the pattern daily: soft"), "{many:?}");
}

/// Each asks for something else.
#[test]
fn followers_that_stop_for_reasons_of_their_own_are_told_apart() {
    const LOST: &str = "Operations are no longer available for replicating. Existing leases [1]";
    const LOST_TOO: &str =
        "Operations are no longer available for replicating. Existing leases [2]";
    let diagnosis = judge(&looks_at_rest(|look, s| {
        let one = |index: &str, fatal: Option<&str>, status: Option<&str>| Follower {
            index: index.into(),
            fatal: fatal.map(str::to_owned),
            status: status.map(str::to_owned),
            ..follower(s)
        };
        look.followers = vec![
            one("a", Some("Limit of total fields [1000] has been exceeded"), None),
            one("b", Some(LOST), None),
            one("e", Some(LOST_TOO), None),
            one("c", Some("Limit of total fields [1000] has been exceeded"), None),
            one("d", None, Some("PAUSED")),
        ];
    }));
    let found: Vec<(String, String)> = diagnosis
        .findings
        .iter()
        .map(|one| (one.subjects.join(" "), one.lift.clone().unwrap().action))
        .collect();
    let [(fields, mended), (lost, anew), (paused, resumed)] = &found[..] else {
        panic!("{found:#?}")
    };
    // What differs by shard alone is no reason of its own.
    assert_eq!([fields, lost, paused], ["a[0] c[0]", "b[0] e[0]", "d[0]"]);
    assert!(mended.starts_with("remove the reason, then POST a/_ccr/pause_follow"), "{mended}");
    assert!(anew.contains("b/_close") && anew.contains("retention_lease.period"), "{anew}");
    assert!(resumed.starts_with("POST d/_ccr/resume_follow"), "{resumed}");
}

/// A recovery from remote that says why it cannot begin is not held by something unknown.
#[test]
fn a_follower_that_cannot_begin_is_told_with_its_reason() {
    let begins = |repository: &str, failure: Option<&str>, connected: Option<bool>| {
        only(&looks_at(0, |look, _| {
            let recovery = &mut look.recoveries[0];
            (recovery.kind, recovery.stage) = ("SNAPSHOT".into(), "INIT".into());
            (recovery.total_bytes, recovery.recovered_bytes) = (Some(0), Some(0));
            recovery.repository = Some(repository.into());
            recovery.failure = failure.map(str::to_owned);
            look.remotes = connected.map(|is| remote("eu", is)).into_iter().collect();
        }))
    };
    let finding = begins("_ccr_eu", Some("[a][0] is nowhere"), None);
    assert_eq!(finding.class, Class::FollowerStopped);
    assert!(finding.sentence.ends_with("cannot begin to follow [eu]: [a][0] is nowhere"));
    let others = [Class::RateLimit, Class::Latency, Class::Disk];
    assert!(others.into_iter().all(|other| !against(&finding, other).1.is_empty()));
    assert!(finding.lift.unwrap().action.contains("cluster.remote.eu.seeds"));
    // Elasticsearch and OpenSearch do not say why. That the leader is cut off says it.
    let connected = |is: bool| begins("replication-remote-repo-eu", None, Some(is));
    assert!(connected(false).sentence.ends_with("to follow [eu]: no node of it is connected"));
    assert_eq!(connected(true).class, Class::Unknown);
}

/// A cluster behind a proxy, with so many sockets of those that there should be.
fn proxy(sockets: u64, sockets_max: u64) -> Remote {
    Remote {
        alias: "eu".into(),
        mode: Some("proxy".into()),
        proxy_sockets: Some(sockets),
        proxy_sockets_max: Some(sockets_max),
        ..Remote::default()
    }
}

/// All sockets that there should be are open, as many as somebody chose.
fn proxied(look: &mut Observation, from: &str, sockets: u64, rtt_ms: f64) {
    look.remotes = vec![proxy(sockets, sockets)];
    look.round_trips = vec![RoundTrip { from: from.into(), to: "eu".into(), rtt_ms }];
}

/// 1 MB/s over 20 ms are 10 kB in each of two sockets. A read spends 115 ms on its way.
#[test]
fn few_sockets_to_a_proxy_hold_reads_that_wait_for_each_other_in_them() {
    let with = |sockets: u64, rtt_ms: f64| {
        only(&looks_at_rest(|look, s| {
            look.followers = vec![follower(s)];
            proxied(look, "a", sockets, rtt_ms);
        }))
    };
    let held = with(2, 20.0);
    assert_eq!((held.class, held.place.as_str()), (Class::Proxy, "eu"), "{held:#?}");
    for part in ["5.75 round trips", "a window of 10.0 kB a socket"] {
        assert!(held.sentence.contains(part), "{}", held.sentence);
    }
    // What these sockets hold are its reads: that is no other cause, and no weaker one.
    let other = |class: Class| held.ruled_out.iter().any(|one| one.class == class);
    assert!(!other(Class::FollowerReader) && other(Class::FollowerWriter), "{held:#?}");
    let lift = held.lift.unwrap();
    let setting = "cluster.remote.eu.proxy_socket_connections";
    assert_eq!((lift.setting.as_deref(), lift.to.as_deref()), (Some(setting), Some("18")));
    assert_eq!(lift.default.as_deref(), Some("18"));
    assert_eq!((held.gain.unwrap().factor, held.subjects), (9.0, vec!["f[0]".to_owned()]));
    // As many as usual; reads that take little more than the way itself; and a way that is none.
    for (sockets, rtt_ms) in [(18, 20.0), (2, 100.0), (2, 0.0)] {
        assert_eq!(with(sockets, rtt_ms).class, Class::FollowerReader, "{sockets} {rtt_ms}");
    }
}

#[test]
fn few_sockets_to_a_proxy_hold_a_recovery_from_remote_as_a_full_path_would() {
    let from_remote = |sockets: u64| {
        only(&looks_at(6 * MB, |look, _| {
            look.cluster.flavour = "elasticsearch".into();
            restore_from("_ccr_eu", &mut look.recoveries[0]);
            proxied(look, "b", sockets, 160.0);
        }))
    };
    let held = from_remote(2);
    assert_eq!((held.class, held.place.as_str()), (Class::Proxy, "eu"), "{held:#?}");
    // Nine times as many sockets, but the limiter lets no more through.
    assert!((held.gain.unwrap().factor - LIMIT as f64 / 6e6).abs() < 0.01);
    assert_eq!(held.next.class, Some(Class::RateLimit));
    assert_eq!(from_remote(18).class, Class::Bandwidth);
}
