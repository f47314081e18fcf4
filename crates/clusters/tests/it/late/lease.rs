//! The lease of a holder whose requests are refused, or not answered.

use super::*;
use crate::put_back::stop_well;

/// As of a plugin that is gone.
#[test]
fn a_value_that_is_refused_at_the_end_keeps_the_journal_and_nothing_else() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        taken(&env, &mut settings).await;
        cluster.does(Does::Hangs);
        settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
        for _ in 0..2 {
            cluster.does(Does::Says(400, "{}"));
        }
        let given_back = settings.give_back(LIMIT).await;
        assert!(matches!(&given_back, Err(Error::Refused { status: 400, .. })), "{given_back:?}");
        let mut done = settings.put_back(&Kept::new()).await.unwrap();
        assert_eq!(cluster.limit().0.as_deref(), Some("160mb"), "it was refused");
        let settled = settings.settle(&mut done).await;
        assert!(matches!(&settled, Err(Error::Refused { status: 400, .. })), "{settled:?}");
        assert_eq!(cluster.limit(), (None, 0), "late changes are put back, and no lease is left");
        assert!(cluster.journal().exists());
    });
}

/// A host that hangs must not keep a renewal until another one has the lease.
#[test]
fn a_renewal_is_given_up_once_the_lease_has_expired() {
    on_cluster(|env, cluster| async move {
        let patient = LiveOptions {
            timeout: 2 * LEASE_EXPIRES,
            ..options(&cluster.hosts, Credentials::None)
        };
        let client = LiveClient::new(&env, &patient).unwrap();
        let mut settings = BorrowedSettings::new(client, cluster.begin_journal());
        let lease = taken(&env, &mut settings).await;
        // The second time it has expired already.
        for _ in 0..2 {
            cluster.does(Does::Hangs);
            let began = env.now();
            let given_up = lease.renew(&mut settings).await;
            assert!(matches!(&given_up, Err(Error::Timeout { .. })), "{given_up:?}");
            assert!(env.now() - began < LEASE_EXPIRES + NO_TIME);
        }
        cluster.hold("they 1");
        env.sleep(4 * LEASE_EXPIRES).await;
        assert_eq!(cluster.lease(), Some(json!("they 1")), "the other host was asked later");
    });
}

#[test]
fn nothing_is_changed_where_the_lease_cannot_be_renewed_before() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        let lease = taken(&env, &mut settings).await;
        env.sleep(LEASE_RENEWED).await;
        // Neither host answers the renewal; both would make the change.
        [Does::Hangs, Does::Hangs].into_iter().for_each(|does| cluster.does(does));
        let refused = lease.set(&mut settings, LIMIT, &not_set(), "160mb").await;
        assert!(matches!(&refused, Err(Error::NoHost { .. })), "{refused:?}");
        assert_eq!(cluster.limit().0, None);
    });
}

/// A machine that sleeps has a clock that does not: by it the lease was renewed a moment ago.
#[test]
fn nothing_is_changed_under_another_ones_lease_however_short_the_time_seems() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        let lease = taken(&env, &mut settings).await;
        cluster.hold("they 1");
        let refused = lease.set(&mut settings, LIMIT, &not_set(), "160mb").await;
        assert!(matches!(&refused, Err(Error::Leased { holder }) if holder == "they"));
        assert_eq!((cluster.limit().0, cluster.lease()), (None, Some(json!("they 1"))));
    });
}

/// The trap: whoever took over from a run that was killed found what that had set, and goes back to it.
#[test]
fn a_killed_run_is_not_put_back_beneath_another_one_that_steers() {
    on_cluster(|env, cluster| async move {
        let mut settings = cluster.borrow();
        taken(&env, &mut settings).await;
        settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
        drop(settings);
        let (client, journal) =
            (cluster.client(PATIENCE), Journal::open(&cluster.journal()).unwrap());
        let began = env.now();
        let told = RefCell::new(Vec::new());
        let tell = |holder: &str| told.borrow_mut().push(holder.to_owned());
        check_nobody_steers(&client, &journal, tell).await.unwrap();
        assert!(env.now() - began < NO_TIME && told.borrow().is_empty(), "the lease is its own");
        cluster.hold("they 1");
        let renews = async {
            env.sleep(LEASE_RENEWED).await;
            cluster.hold("they 2");
        };
        let (checked, ()) = join(check_nobody_steers(&client, &journal, tell), renews).await;
        assert!(matches!(&checked, Err(Error::Leased { holder }) if holder == "they"));
        assert_eq!(*told.borrow(), ["they"]);
        // Nobody renews it any more.
        check_nobody_steers(&client, &journal, tell).await.unwrap();
    });
}

/// A run that begins on this cluster, and the lease that it is to hold.
async fn run_of(cluster: &Cluster) -> LiveClusters {
    let clusters = LiveClusters::new(vec![cluster.live([PATIENCE; 2]).await], FollowApi::default());
    clusters.held_by("a-run".to_owned(), |_| ())
}

async fn begin(run: &mut LiveClusters) -> Result<(), Error> {
    run.start(&TopologySpec::alone("leader", 1)).await
}

async fn put(run: &LiveClusters, path: &str, body: Value) -> Result<(), Error> {
    run.request("leader", "PUT", path, Bytes::from(body.to_string())).await.map(drop)
}

/// The trap: a hand takes what a run sets for somebody else's change, and stops; then either puts back what the other
/// has set.
#[test]
fn a_run_holds_the_lease_from_its_beginning_to_its_end() {
    on_cluster(|env, cluster| async move {
        let mut run = run_of(&cluster).await;
        begin(&mut run).await.unwrap();
        let taken = cluster.lease().unwrap();
        assert!(taken.as_str().unwrap().starts_with("a-run "), "{taken}");
        // One request of a run may take minutes.
        env.sleep(3 * LEASE_EXPIRES).await;
        let path = cluster.dir.path().join("theirs.jsonl");
        let journal = Journal::create(&path, Head::new("uuid".to_owned(), Vec::new())).unwrap();
        let mut theirs = BorrowedSettings::new(cluster.client(PATIENCE), journal);
        let refused = Lease::take(&env, &mut theirs, "they", |_| ()).await;
        assert!(matches!(&refused, Err(Error::Leased { holder }) if holder == "a-run"));
        put(&run, "/_cluster/settings", json!({ "persistent": { LIMIT: "160mb" } })).await.unwrap();
        assert_eq!(cluster.limit(), (Some("160mb".to_owned()), 2));
        stop_well(&mut run).await;
        assert_eq!(
            (cluster.limit(), cluster.journal().exists()),
            ((None, 0), false),
            "and no lease"
        );
        env.sleep(2 * LEASE_RENEWED).await;
        assert_eq!(cluster.lease(), None, "nobody renews it any more");
    });
}

/// Killed while late changes are looked for: a host that hangs may keep the renewal before that from the next one.
#[test]
fn the_file_tells_when_a_run_renewed_its_lease_for_the_wait() {
    on_cluster(|env, cluster| async move {
        let mut run = run_of(&cluster).await;
        begin(&mut run).await.unwrap();
        cluster.does(Does::Hangs);
        put(&run, "/_cluster/settings", json!({ "persistent": { LIMIT: "160mb" } })).await.unwrap();
        // What puts the limit back, which is done once it is looked at, and the renewal.
        [Does::Says(200, "{}"), Does::Hangs].into_iter().for_each(|does| cluster.does(does));
        let path = cluster.journal();
        let looks = async {
            env.sleep(PATIENCE / 2).await;
            let file = File::options().append(true).open(&path).unwrap();
            let hour = Duration::from_secs(3600);
            file.set_modified(SystemTime::now() - hour).unwrap();
            env.sleep(PATIENCE).await;
            let sent = file.metadata().unwrap().modified().unwrap();
            assert!(sent.elapsed().unwrap() < hour / 2, "it was sent to the other host");
        };
        join(stop_well(&mut run), looks).await;
        assert_eq!(cluster.limit(), (None, 0), "and no lease");
    });
}

#[test]
fn a_run_does_not_begin_where_another_one_lives() {
    on_cluster(|env, cluster| async move {
        let mut run = run_of(&cluster).await;
        cluster.hold("they 1");
        let renews = async {
            env.sleep(LEASE_RENEWED).await;
            cluster.hold("they 2");
        };
        let (begun, ()) = join(begin(&mut run), renews).await;
        assert!(matches!(&begun, Err(Error::Leased { holder }) if holder == "they"), "{begun:?}");
        stop_well(&mut run).await;
        assert_eq!((cluster.limit(), cluster.lease()), ((None, 1), Some(json!("they 2"))));
    });
}

#[test]
fn who_waits_for_another_one_goes_on_once_that_has_ended() {
    on_cluster(|env, cluster| async move {
        let ends = async || {
            env.sleep(LEASE_RENEWED).await;
            cluster.manager.borrow_mut().set.remove(LEASE);
        };
        let soon = LEASE_RENEWED + 5 * NO_TIME;
        let mut run = run_of(&cluster).await;
        cluster.hold("they 1");
        let began = env.now();
        let (begun, ()) = join(begin(&mut run), ends()).await;
        assert!(begun.is_ok() && env.now() - began < soon, "{begun:?}");
        stop_well(&mut run).await;
        let mut settings = cluster.borrow();
        settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
        drop(settings);
        let (client, journal) =
            (cluster.client(PATIENCE), Journal::open(&cluster.journal()).unwrap());
        cluster.hold("they 1");
        let began = env.now();
        let (checked, ()) = join(check_nobody_steers(&client, &journal, |_| ()), ends()).await;
        assert!(checked.is_ok() && env.now() - began < soon, "{checked:?}");
    });
}

/// A bulk makes its index where there is none, and is not looked at before it is sent.
#[test]
fn a_run_writes_nothing_any_more_once_another_cluster_answers_whether_or_not_it_keeps_a_lease() {
    for keeps_a_lease in [true, false] {
        on_cluster(move |env, cluster| async move {
            let mut run = run_of(&cluster).await;
            if !keeps_a_lease {
                cluster.does(Does::Says(400, "{}"));
            }
            begin(&mut run).await.unwrap();
            assert_eq!(cluster.lease().is_some(), keeps_a_lease);
            let is_refused = async || {
                let answer = run.request("leader", "POST", "/narrows-1/_bulk", Bytes::new()).await;
                matches!(answer, Err(Error::OtherCluster { .. }))
            };
            assert!(!is_refused().await);
            cluster.manager.borrow_mut().is_another = true;
            cluster.manager.borrow_mut().set.remove(LEASE);
            env.sleep(2 * LEASE_RENEWED).await;
            assert!(is_refused().await);
            cluster.manager.borrow_mut().is_another = false;
            run.stop().await;
        });
    }
}

#[test]
fn a_run_that_has_lost_the_lease_changes_nothing_any_more() {
    on_cluster(|env, cluster| async move {
        let mut run = run_of(&cluster).await;
        begin(&mut run).await.unwrap();
        cluster.hold("they 1");
        let settings = json!({ "persistent": { LIMIT: "160mb" } });
        let refused = put(&run, "/_cluster/settings", settings).await;
        assert!(matches!(&refused, Err(Error::Leased { .. })), "it is read before: {refused:?}");
        env.sleep(2 * LEASE_RENEWED).await;
        let refused = put(&run, "/narrows-1", json!({})).await;
        assert!(matches!(&refused, Err(Error::Leased { .. })), "{refused:?}");
        run.stop().await;
        assert_eq!((cluster.limit().0, cluster.lease()), (None, Some(json!("they 1"))));
    });
}
