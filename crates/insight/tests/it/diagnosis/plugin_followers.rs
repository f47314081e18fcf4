//! Followers through OpenSearch's plugin, which tells of indices and their operations.

use insight::diagnosis::{Class, Evidence, Finding};
use record::observation::Follower;

use super::followers::{looks_at_one, remote, replicated};
use super::{judge, looks_at_rest, only};
use crate::common::settings;

#[test]
fn followers_of_the_plugin_are_judged_by_their_operations() {
    let with = |change: fn(&mut Follower, u64)| looks_at_one(replicated, change);
    let reader = only(&with(|_, _| {}));
    assert_eq!(reader.class, Class::FollowerReader);
    assert!(reader.sentence.contains("2000 operations a second"), "{}", reader.sentence);
    let lift = reader.lift.unwrap();
    assert_eq!(
        (lift.setting.as_deref(), lift.to.as_deref()),
        (Some("plugins.replication.follower.concurrent_readers_per_shard"), Some("4"))
    );
    assert_eq!(lift.default.as_deref(), Some("2"));
    let refused = only(&with(|f, s| f.throttled_reads = Some(s * 3)));
    assert!(refused.sentence.contains("the leader refused reads"), "{}", refused.sentence);
    assert!(refused.lift.unwrap().setting.is_none());
    let none = only(&looks_at_rest(|look, s| {
        look.followers = vec![replicated(s)];
        look.settings = settings(&[(lift.setting.as_deref().unwrap(), "0")]);
    }));
    assert_eq!(none.gain.unwrap().factor, 2.0, "of none there is no twice");
    let silent = only(&with(|f, _| f.throttled_reads = None)).evidence;
    assert!(silent.iter().all(|line| line.field != "throttled_read_requests"), "{silent:#?}");
    let writer = only(&with(|f, s| f.ops_read = Some(50_010 + s * 5000)));
    assert_eq!(writer.class, Class::FollowerWriter);
    let silent = only(&with(|f, s| {
        (f.ops_read, f.throttled_writes) = (Some(50_010 + s * 5000), None);
    }));
    assert!(silent.sentence.ends_with(" operations wait to be written"), "{silent:?}");
    let tells = |line: &Evidence| line.field == "throttled_write_requests";
    assert!(writer.evidence.iter().any(tells) && !silent.evidence.iter().any(tells), "{silent:#?}");
    let overloaded = only(&with(|f, s| f.throttled_writes = Some(s / 10)));
    assert_eq!(overloaded.class, Class::FollowerWriter);
    assert!(overloaded.sentence.ends_with("and 1 write was refused meanwhile"), "{overloaded:?}");
    assert!(overloaded.evidence.iter().all(|line| line.api.starts_with("_plugins/_replication")));
    let paused = only(&with(|f, _| {
        f.status = Some("PAUSED".into());
        f.reason = Some("User initiated".into());
    }));
    assert_eq!(paused.class, Class::FollowerStopped);
    assert_eq!(paused.sentence, "f is paused: User initiated");
    assert!(paused.lift.unwrap().action.starts_with("POST _plugins/_replication/f/_resume"));
    // To resume it alone would be refused, or pause it again at once.
    fn by_itself(f: &mut Follower, why: &str) {
        f.status = Some("PAUSED".into());
        f.reason = Some(format!("AutoPaused: [[f][0] - {why}], "));
    }
    let listed = only(&looks_at_one(replicated, |f, _| by_itself(f, "failed to parse")));
    assert_eq!(listed.sentence, "f is paused: AutoPaused: [[f][0] - failed to parse]");
    let action = |finding: Finding| finding.lift.unwrap().action;
    let mended = action(listed);
    assert!(mended.starts_with("remove the reason, then POST"), "{mended}");
    let anew = action(only(&looks_at_one(replicated, |f, _| {
        by_itself(f, "Operations are no longer available for replicating");
    })));
    assert!(anew.contains("/f/_stop") && anew.contains("/f/_start"), "{anew}");
    let well = judge(&with(|f, s| f.follower_checkpoint = Some(99_990 + s as i64 * 5000)));
    assert!(well.findings.is_empty(), "{well:#?}");
}

/// The plugin does not tell which cluster a follower has its leader in.
#[test]
fn a_follower_of_the_plugin_that_reads_nothing_names_the_one_cluster_there_is() {
    let failing = |remotes: &[&str]| {
        only(&looks_at_rest(|look, s| {
            look.followers = vec![Follower {
                follower_checkpoint: Some(50_000),
                failed_reads: Some(s),
                ops_read: Some(50_000),
                ops_written: Some(50_000),
                ..replicated(s)
            }];
            look.remotes = remotes.iter().map(|alias| remote(alias, false)).collect();
        }))
    };
    let known = failing(&["eu"]);
    assert_eq!(known.class, Class::FollowerStopped);
    assert!(known.evidence.iter().any(|line| line.field == "eu.connected"), "{known:#?}");
    let action = known.lift.unwrap().action;
    assert!(action.ends_with("how many nodes of [eu] are connected"), "{action}");
    let action = failing(&["eu", "us"]).lift.unwrap().action;
    assert!(action.ends_with("how many nodes of its leader's cluster are connected"), "{action}");
}
