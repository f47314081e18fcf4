//! The lease of a holder whose requests are refused, or not answered.

use super::*;

/// As of a plugin that is gone.
#[test]
fn a_value_that_is_refused_at_the_end_keeps_the_journal_and_nothing_else() {
    virtually(|env| async move {
        let cluster = Cluster::start(&env).await;
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
        assert!(cluster.path().exists());
    });
}

/// A host that hangs must not keep a renewal until another one has the lease.
#[test]
fn a_renewal_is_given_up_once_the_lease_has_expired() {
    virtually(|env| async move {
        let cluster = Cluster::start(&env).await;
        let patient = LiveOptions {
            timeout: 2 * LEASE_EXPIRES,
            ..options(&cluster.hosts, Credentials::None)
        };
        let client = LiveClient::new(&env, &patient).unwrap();
        let mut settings = BorrowedSettings::new(client, cluster.journal());
        let mut lease = taken(&env, &mut settings).await;
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
    virtually(|env| async move {
        let cluster = Cluster::start(&env).await;
        let mut settings = cluster.borrow();
        let mut lease = taken(&env, &mut settings).await;
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
    virtually(|env| async move {
        let cluster = Cluster::start(&env).await;
        let mut settings = cluster.borrow();
        let mut lease = taken(&env, &mut settings).await;
        cluster.hold("they 1");
        let refused = lease.set(&mut settings, LIMIT, &not_set(), "160mb").await;
        assert!(matches!(&refused, Err(Error::Leased { holder }) if holder == "they"));
        assert_eq!((cluster.limit().0, cluster.lease()), (None, Some(json!("they 1"))));
    });
}

/// The trap: whoever took over from a run that was killed found what that had set, and goes back to it.
#[test]
fn a_killed_run_is_not_put_back_beneath_another_one_that_steers() {
    virtually(|env| async move {
        let cluster = Cluster::start(&env).await;
        let mut settings = cluster.borrow();
        taken(&env, &mut settings).await;
        settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
        drop(settings);
        let (client, journal) = (cluster.client(), Journal::open(&cluster.path()).unwrap());
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
