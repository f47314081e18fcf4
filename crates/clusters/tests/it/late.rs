//! A change that a host did not answer is made after it was put back, on a cluster of two hosts in virtual time.

mod lease;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use clusters::live::{Address, LiveClient, LiveOptions};
use clusters::{
    BorrowedSettings, Change, Clusters, Credentials, Error, FollowApi, Head, Journal, Kept,
    LEASE_EXPIRES, LEASE_RENEWED, Lease, Leased, LiveClusters, TopologySpec, check_nobody_steers,
    restore, restore_command,
};
use futures_util::future::join;
use record::observation::{Scope, Setting};
use serde_json::{Value, json};
use world::Env;

use crate::manager::{Cluster, Does, LIMIT};
use crate::put_back::begin_on;

const LEASE: &str = "cluster.metadata.narrows_steerer";
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
const NO_TIME: Duration = Duration::from_secs(1);
const HTML: &str = "<html><title>502 Bad Gateway</title></html>";

fn options(hosts: &str, credentials: Credentials) -> LiveOptions {
    let addresses = Address::parse_all([hosts]).unwrap();
    LiveOptions { credentials, ..LiveOptions::anonymous(addresses, PATIENCE) }
}

impl Cluster {
    fn borrow(&self) -> BorrowedSettings {
        BorrowedSettings::new(self.client(PATIENCE), self.begin_journal())
    }

    /// What becomes of the next change.
    fn does(&self, does: Does) {
        self.manager.borrow_mut().does.push_back(does);
    }

    /// Somebody else sets the limit, or a change of it is made late.
    fn set(&self, value: &str) {
        self.manager.borrow_mut().set.insert(LIMIT.to_owned(), Value::from(value));
    }

    fn lease(&self) -> Option<Value> {
        self.manager.borrow().set.get(LEASE).cloned()
    }

    /// Somebody takes the lease.
    fn hold(&self, value: &str) {
        self.manager.borrow_mut().set.insert(LEASE.to_owned(), Value::from(value));
    }

    /// The limit, and how many settings there are.
    fn limit(&self) -> (Option<String>, usize) {
        let manager = self.manager.borrow();
        let limit = manager.set.get(LIMIT).map(|value| value.as_str().unwrap().to_owned());
        (limit, manager.set.len())
    }
}

pub fn setting(value: &str, scope: Scope) -> Setting {
    Setting { value: value.to_owned(), scope }
}

pub fn not_set() -> Setting {
    setting("40mb", Scope::Default)
}

/// The lease, which nobody else has.
pub async fn taken(env: &Env, settings: &mut BorrowedSettings) -> Lease {
    let leased = Lease::take(env, settings, "we", |_| ()).await.unwrap();
    let Leased::Ours(lease, None) = leased else { panic!("there is no other one") };
    lease
}

/// In virtual time on a cluster that nobody has changed yet.
fn on_cluster<F: Future<Output = ()> + 'static>(main: impl FnOnce(Env, Cluster) -> F + 'static) {
    world::virtual_world::run(1, |env| async move {
        let cluster = Cluster::of(&env, &["a", "b"]).await;
        main(env, cluster).await;
    });
}

/// One host, or who stands before it, holds up a change that another one makes meanwhile, or another connection.
#[test]
fn a_change_that_comes_after_it_was_put_back_is_put_back_again() {
    let every = [
        Does::Hangs,
        Does::Breaks,
        Does::Says(502, HTML),
        Does::Says(503, "{}"),
        Does::Says(504, "{}"),
    ];
    for (case, does) in every.into_iter().enumerate() {
        on_cluster(move |_, cluster| async move {
            let mut settings = cluster.borrow();
            cluster.does(does);
            settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
            assert_eq!(cluster.limit().0.as_deref(), Some("160mb"), "{case}: another one made it");
            let mut done = settings.put_back(&Kept::new()).await.unwrap();
            assert_eq!(cluster.limit(), (None, 0), "{case}");
            cluster.set("160mb");
            settings.settle(&mut done).await.unwrap();
            assert_eq!((cluster.limit(), done.left.len()), ((None, 0), 0), "{case}");
            settings.finish().unwrap();
        });
    }
}

/// Ctrl-C while a change is under way: nobody waits for its answer.
#[test]
fn a_change_that_is_broken_off_may_come_too() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        cluster.does(Does::Hangs);
        let found = not_set();
        let change = settings.set(LIMIT, &found, "160mb");
        assert!(env.timeout(PATIENCE / 2, change).await.is_err());
        let mut done = settings.put_back(&Kept::new()).await.unwrap();
        cluster.set("160mb");
        settings.settle(&mut done).await.unwrap();
        assert_eq!(cluster.limit(), (None, 0));
    });
}

#[test]
fn a_value_that_somebody_else_sets_meanwhile_stays_though_it_was_tried_here() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
        cluster.does(Does::Hangs);
        settings.set(LIMIT, &setting("80mb", Scope::Persistent), "160mb").await.unwrap();
        let mut done = settings.put_back(&Kept::new()).await.unwrap();
        cluster.set("80mb");
        let comes = async {
            env.sleep(Duration::from_secs(5)).await;
            assert_eq!(cluster.limit().0.as_deref(), Some("80mb"));
            cluster.set("160mb");
        };
        join(settings.settle(&mut done), comes).await.0.unwrap();
        assert_eq!(cluster.limit().0.as_deref(), Some("80mb"), "ours came over theirs");
    });
}

#[test]
fn the_lease_is_held_as_long_as_changes_may_come() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        taken(&env, &mut settings).await;
        cluster.does(Does::Hangs);
        settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
        let comes = async {
            while cluster.limit().0.is_some() {
                env.sleep(Duration::from_millis(100)).await;
            }
            env.sleep(Duration::from_secs(5)).await;
            assert!(cluster.lease().is_some());
            cluster.set("160mb");
        };
        assert_eq!(join(settings.end(), comes).await.0.unwrap(), Vec::<String>::new());
        assert_eq!(cluster.limit(), (None, 0), "and no lease");
    });
}

/// Somebody who came a moment after the last renewal looks again before the last change can come.
#[test]
fn nobody_takes_the_lease_for_a_dead_ones_while_late_changes_are_looked_for() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        let lease = taken(&env, &mut settings).await;
        let path = cluster.dir.path().join("theirs.jsonl");
        let journal = Journal::create(&path, Head::new("uuid".to_owned(), Vec::new())).unwrap();
        let mut theirs = BorrowedSettings::new(cluster.client(PATIENCE), journal);
        let ends = async {
            env.sleep(Duration::from_secs(9)).await;
            cluster.does(Does::Hangs);
            settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
            let mut done = settings.put_back(&Kept::new()).await.unwrap();
            lease.renew_for_the_wait(&mut settings).await;
            settings.settle(&mut done).await.unwrap();
        };
        let takes = Lease::take(&env, &mut theirs, "they", |_| ());
        let ((), taken) = join(ends, takes).await;
        assert!(matches!(taken, Err(Error::Leased { holder }) if holder == "we"));
        assert_eq!(cluster.limit(), (None, 0), "and no lease");
    });
}

/// It is refused, or no host answers it.
#[test]
fn a_renewal_that_fails_keeps_nobody_from_looking_for_late_changes() {
    for hangs in [false, true] {
        on_cluster(move |env, cluster| async move {
            let mut settings = cluster.borrow();
            let lease = taken(&env, &mut settings).await;
            cluster.does(Does::Hangs);
            settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
            let mut done = settings.put_back(&Kept::new()).await.unwrap();
            let held = cluster.lease();
            match hangs {
                true => [Does::Hangs, Does::Hangs].into_iter().for_each(|does| cluster.does(does)),
                false => cluster.does(Does::Says(400, "{}")),
            }
            lease.renew_for_the_wait(&mut settings).await;
            assert!(held.is_some() && cluster.lease() == held, "it was renewed");
            let comes = async {
                env.sleep(Duration::from_secs(20)).await;
                assert_eq!(cluster.lease(), held, "it is given back last");
                cluster.set("160mb");
            };
            join(settings.settle(&mut done), comes).await.0.unwrap();
            assert_eq!((cluster.limit(), done.left.len()), ((None, 0), 0), "and no lease");
        });
    }
}

/// Others count from when they saw a renewal. A host that hangs must not keep a change until they have the lease.
#[test]
fn nothing_is_changed_once_the_lease_has_expired() {
    on_cluster(|env, cluster| async move {
        let options = options(&cluster.hosts, Credentials::None);
        let patient = LiveOptions { timeout: 2 * LEASE_EXPIRES, ..options };
        let client = LiveClient::new(&env, &patient).unwrap();
        let mut settings = BorrowedSettings::new(client, cluster.begin_journal());
        let began = env.now();
        let lease = taken(&env, &mut settings).await;
        cluster.does(Does::Hangs);
        let given_up = lease.set(&mut settings, LIMIT, &not_set(), "160mb").await;
        assert!(matches!(given_up, Err(Error::Timeout { .. })), "{given_up:?}");
        assert!(env.now() - began < LEASE_EXPIRES + 2 * NO_TIME);
        env.sleep(2 * LEASE_EXPIRES).await;
        assert_eq!(cluster.limit().0, None, "the other host was asked later");
        cluster.hold("they 1");
        let refused = lease.set(&mut settings, LIMIT, &not_set(), "160mb").await;
        assert!(matches!(&refused, Err(Error::Leased { holder }) if holder == "they"));
        assert_eq!(cluster.limit().0, None);
        cluster.hold("we 1");
        lease.set(&mut settings, LIMIT, &not_set(), "160mb").await.unwrap();
        assert_eq!(cluster.limit().0.as_deref(), Some("160mb"));
    });
}

/// Whoever removed it may take it in the same moment.
#[test]
fn a_lease_that_was_removed_is_read_again_once_it_is_taken_again() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        let lease = taken(&env, &mut settings).await;
        cluster.manager.borrow_mut().set.clear();
        let takes = async {
            while cluster.lease().is_none() {
                env.sleep(Duration::from_millis(1)).await;
            }
            cluster.hold("they 0");
        };
        let (renewed, ()) = join(lease.renew(&mut settings), takes).await;
        assert!(matches!(&renewed, Err(Error::Leased { holder }) if holder == "they"));
    });
}

/// What a change that helped is to stay is not what it was before the first one.
#[test]
fn what_is_kept_stays_as_it_is_kept() {
    on_cluster(|_, cluster| async move {
        let mut settings = cluster.borrow();
        settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
        let ours = |value| setting(value, Scope::Persistent);
        cluster.does(Does::Hangs);
        settings.set(LIMIT, &ours("80mb"), "160mb").await.unwrap();
        assert_eq!(settings.set_back(LIMIT, &ours("160mb"), "80mb").await.unwrap(), None);
        let kept = Kept::from([(LIMIT.to_owned(), ours("80mb"))]);
        let mut done = settings.put_back(&kept).await.unwrap();
        assert_eq!(cluster.limit().0.as_deref(), Some("80mb"));
        cluster.set("160mb");
        settings.settle(&mut done).await.unwrap();
        assert_eq!(cluster.limit().0.as_deref(), Some("80mb"));
    });
}

/// The time is that of the world.
#[test]
fn changes_are_waited_for_from_when_they_were_sent_and_only_at_the_end() {
    // Whether a host hangs; how long ago that is; how long the end takes, from and to.
    for (hangs, ago_s, takes_s) in [(false, 0, 0..1), (true, 10, 15..22), (true, 31, 0..1)] {
        on_cluster(move |env, cluster| async move {
            let mut settings = cluster.borrow();
            if hangs {
                cluster.does(Does::Hangs);
            }
            settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
            env.sleep(Duration::from_secs(ago_s)).await;
            let began = env.now();
            assert!(settings.put_back(&Kept::new()).await.unwrap().left.is_empty());
            assert!(env.now() - began < NO_TIME, "a probe goes on at once");
            settings.end().await.unwrap();
            let took_s = (env.now() - began).as_secs();
            assert!(takes_s.contains(&took_s), "{took_s} s, {ago_s} s after it was sent");
        });
    }
}

/// As after a kill -9: the file tells when the last change was sent.
#[test]
fn restore_waits_for_what_was_sent_a_short_time_ago() {
    for ago in [Duration::ZERO, Duration::from_secs(60)] {
        on_cluster(move |env, cluster| async move {
            let mut journal = cluster.begin_journal();
            let one = |value: Option<&str>| {
                BTreeMap::from([(LIMIT.to_owned(), value.map(str::to_owned))])
            };
            let (before, set) = (one(None), one(Some("160mb")));
            let scope = Scope::Persistent;
            journal.record(Change::Settings { scope, before, set }).unwrap();
            drop(journal);
            let path = cluster.journal();
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - ago).unwrap();
            cluster.set("160mb");
            let (client, began) = (cluster.client(PATIENCE), env.now());
            let comes = async {
                while cluster.limit().0.is_some() {
                    env.sleep(Duration::from_millis(100)).await;
                }
                if ago.is_zero() {
                    cluster.set("160mb");
                }
            };
            let restored = async {
                let unsettled = restore(&client, Journal::open(&path).unwrap()).await.unwrap();
                unsettled.settle(&client).await.unwrap()
            };
            assert_eq!(join(restored, comes).await.0, Vec::<String>::new());
            assert_eq!((cluster.limit(), path.exists()), ((None, 0), false));
            assert_eq!(env.now() - began < NO_TIME, !ago.is_zero());
        });
    }
}

/// A host that hangs keeps a change from the next one for as long as an answer may take, which may be minutes.
#[test]
fn the_file_tells_when_a_change_was_sent_and_not_when_it_was_written() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        cluster.does(Does::Hangs);
        let path = cluster.journal();
        let minutes_pass = async {
            env.sleep(PATIENCE / 2).await;
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(300)).unwrap();
        };
        let found = not_set();
        join(settings.set(LIMIT, &found, "160mb"), minutes_pass).await.0.unwrap();
        drop(settings);
        assert!(!Journal::open(&path).unwrap().may_come_for().is_zero());
    });
}

/// A run on these clusters, of each of which a change was not answered by one host.
async fn run_on(clusters: &[&Cluster]) -> LiveClusters {
    let run = begin_on(clusters, [PATIENCE; 2]).await;
    for (cluster, site) in clusters.iter().zip(["leader", "follower"]) {
        cluster.does(Does::Hangs);
        let body = Bytes::from(json!({ "persistent": { LIMIT: "160mb" } }).to_string());
        run.request(site, "PUT", "/_cluster/settings", body).await.unwrap();
    }
    run
}

/// Once these were put back, the changes come.
async fn come(env: &Env, clusters: &[&Cluster]) {
    while clusters.iter().any(|cluster| cluster.limit().0.is_some()) {
        env.sleep(Duration::from_millis(100)).await;
    }
    clusters.iter().for_each(|cluster| cluster.set("160mb"));
}

#[test]
fn a_run_puts_back_what_comes_late() {
    on_cluster(|env, cluster| async move {
        let mut run = run_on(&[&cluster]).await;
        let said = RefCell::new(Vec::new());
        let tell = |text: &str| said.borrow_mut().push(text.to_owned());
        let stops = run.stop_until_told(false, std::future::pending, tell);
        join(stops, come(&env, &[&cluster])).await;
        let said = said.into_inner();
        assert!(
            said.len() == 1 && said[0].contains("may be made yet: for another 28 s"),
            "{said:?}"
        );
        assert_eq!(run.ended().unwrap().unwrap(), Vec::<String>::new());
        assert_eq!(cluster.limit(), (None, 0));
    });
}

/// Neither the wait for one cluster nor its failure keeps the other from being put back, and from being looked at.
#[test]
fn both_clusters_are_put_back_before_either_is_waited_for() {
    for fails in [false, true] {
        world::virtual_world::run(1, move |env| async move {
            let clusters =
                [Cluster::of(&env, &["a", "b"]).await, Cluster::of(&env, &["c", "d"]).await];
            let [leader, follower] = &clusters;
            let mut run = run_on(&[leader, follower]).await;
            if fails {
                follower.does(Does::Says(400, "{}"));
            }
            let waits = if fails { vec![leader] } else { vec![leader, follower] };
            let began = env.now();
            let said = RefCell::new(Vec::new());
            let tell = |text: &str| {
                assert!(env.now() - began < NO_TIME, "nothing was waited for");
                assert!(waits.iter().all(|cluster| cluster.limit().0.is_none()), "{text}");
                said.borrow_mut().push(text.to_owned());
            };
            let stops = run.stop_until_told(false, std::future::pending, tell);
            join(stops, come(&env, &waits)).await;
            assert_eq!(said.borrow().len(), 1, "{said:?}");
            assert_eq!(run.ended().unwrap().is_err(), fails);
            assert_eq!(leader.limit(), (None, 0));
            // What was refused once is tried again while late changes are looked for.
            assert_eq!(follower.limit().0, None);
            assert_eq!((leader.journal().exists(), follower.journal().exists()), (false, fails));
        });
    }
}

#[test]
fn whoever_sent_credentials_is_told_to_name_a_host() {
    let command =
        |credentials| restore_command(Path::new("runs/x"), &options("a:9200", credentials));
    assert_eq!(command(Credentials::None), "narrows restore runs/x");
    let key = Credentials::ApiKey("key".to_owned());
    assert_eq!(command(key), "narrows restore runs/x --on URL");
}
