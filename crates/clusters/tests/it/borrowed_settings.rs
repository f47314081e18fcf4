//! Settings that are changed for a while, on a cluster whose manager is slow to answer.

use std::collections::BTreeMap;

use clusters::{BorrowedSettings, Error, Kept};
use record::observation::Scope;
use serde_json::Value;

use crate::late::{not_set, setting, taken};
use crate::manager::{Cluster, LIMIT, QUICK, on_cluster};

fn borrow(cluster: &Cluster) -> BorrowedSettings {
    BorrowedSettings::new(cluster.client(QUICK), cluster.begin_journal())
}

#[test]
fn a_change_that_is_made_after_it_was_given_up_is_put_back() {
    world::virtual_world::run(1, async |env| {
        for found in [None, Some("20mb")] {
            let cluster = Cluster::start(&env).await;
            let before: BTreeMap<String, Value> =
                found.iter().map(|value| (LIMIT.to_owned(), Value::from(*value))).collect();
            cluster.manager.borrow_mut().set = before.clone();
            cluster.manager.borrow_mut().is_late = Some(false);
            let now = found.map_or_else(not_set, |value| setting(value, Scope::Persistent));
            let mut settings = borrow(&cluster);
            let given_up = settings.set(LIMIT, &now, "160mb").await;
            assert!(matches!(given_up, Err(Error::Timeout { .. })), "{given_up:?}");
            assert_eq!(cluster.settings(), before, "it is not made yet");
            assert_eq!(settings.end().await.unwrap(), Vec::<String>::new());
            cluster.manager.borrow_mut().make();
            assert_eq!(cluster.settings(), before, "found {found:?}");
            assert!(!cluster.journal().exists());
        }
    });
}

#[test]
fn an_answer_without_settings_puts_nothing_back_and_the_journal_stays() {
    on_cluster(async |_, cluster| {
        let mut settings = borrow(&cluster);
        settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
        cluster.manager.borrow_mut().is_odd = true;
        let error = settings.end().await.unwrap_err().to_string();
        assert!(error.contains("persistent"), "{error}");
        assert!(cluster.journal().exists() && cluster.settings()[LIMIT] == "160mb");
    });
}

#[test]
fn a_renewal_that_was_not_answered_is_nobody_elses() {
    world::virtual_world::run(1, async |env| {
        for is_made in [false, true] {
            let cluster = Cluster::start(&env).await;
            let mut settings = borrow(&cluster);
            let lease = taken(&env, &mut settings).await;
            cluster.manager.borrow_mut().is_late = Some(is_made);
            let given_up = lease.renew(&mut settings).await;
            assert!(matches!(given_up, Err(Error::Timeout { .. })), "{given_up:?}");
            cluster.manager.borrow_mut().queued.clear();
            lease.renew(&mut settings).await.unwrap();
            let other = Value::from("somebody-else 3");
            let name = cluster.settings().keys().next().unwrap().clone();
            cluster.manager.borrow_mut().set.insert(name, other);
            let lost = lease.renew(&mut settings).await;
            assert!(matches!(lost, Err(Error::Leased { .. })), "{lost:?}");
        }
    });
}

/// Ctrl-C while a setting is raised: what is on trial is taken back, and all else stays.
#[test]
fn a_raise_that_was_not_answered_is_taken_back() {
    world::virtual_world::run(1, async |env| {
        for is_made in [false, true] {
            // The first raise of a setting.
            let cluster = Cluster::start(&env).await;
            let mut settings = borrow(&cluster);
            cluster.manager.borrow_mut().is_late = Some(is_made);
            settings.set(LIMIT, &not_set(), "80mb").await.unwrap_err();
            assert_eq!(settings.give_back(LIMIT).await.unwrap(), None);
            cluster.manager.borrow_mut().make();
            assert_eq!(cluster.settings(), BTreeMap::new(), "made at once: {is_made}");
            // A later one, behind one that helped.
            settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
            let ours = setting("80mb", Scope::Persistent);
            cluster.manager.borrow_mut().is_late = Some(is_made);
            settings.set(LIMIT, &ours, "160mb").await.unwrap_err();
            assert_eq!(settings.set_back(LIMIT, &ours, "80mb").await.unwrap(), None);
            cluster.manager.borrow_mut().make();
            assert_eq!(cluster.settings()[LIMIT], "80mb", "made at once: {is_made}");
            // What somebody else sets stays.
            cluster.manager.borrow_mut().set.insert(LIMIT.to_owned(), Value::from("3mb"));
            let left = settings.set_back(LIMIT, &ours, "80mb").await.unwrap().unwrap();
            assert!(left.contains("3mb"), "{left}");
            assert_eq!(cluster.settings()[LIMIT], "3mb");
        }
    });
}

#[test]
fn a_lease_that_somebody_removed_is_taken_again() {
    on_cluster(async |env, cluster| {
        let mut settings = borrow(&cluster);
        let lease = taken(&env, &mut settings).await;
        cluster.manager.borrow_mut().set.clear();
        lease.renew(&mut settings).await.unwrap();
        let held: Vec<Value> = cluster.settings().into_values().collect();
        assert!(held[0].as_str().unwrap().starts_with("we "), "{held:?}");
        assert_eq!(settings.end().await.unwrap(), Vec::<String>::new());
        assert_eq!(cluster.settings(), BTreeMap::new());
    });
}

/// It would stay there, as the journal is of the cluster before.
#[test]
fn a_lease_is_not_taken_again_on_another_cluster_at_the_same_address() {
    on_cluster(async |env, cluster| {
        let mut settings = borrow(&cluster);
        let lease = taken(&env, &mut settings).await;
        cluster.manager.borrow_mut().set.clear();
        cluster.manager.borrow_mut().is_another = true;
        let renewed = lease.renew(&mut settings).await;
        assert!(matches!(renewed, Err(Error::OtherCluster { .. })), "{renewed:?}");
        assert_eq!(cluster.settings(), BTreeMap::new());
    });
}

/// A name, or a balancer, that was turned to another cluster meanwhile.
#[test]
fn another_cluster_at_the_same_address_is_left_alone_and_the_journal_stays() {
    on_cluster(async |_, cluster| {
        let mut settings = borrow(&cluster);
        settings.set(LIMIT, &not_set(), "80mb").await.unwrap();
        cluster.manager.borrow_mut().set.clear();
        cluster.manager.borrow_mut().is_another = true;
        let raised = settings.set(LIMIT, &not_set(), "160mb").await;
        assert!(matches!(raised, Err(Error::OtherCluster { .. })), "{raised:?}");
        // By chance somebody has set the same there.
        cluster.manager.borrow_mut().set.insert(LIMIT.to_owned(), Value::from("80mb"));
        let given_back = settings.give_back(LIMIT).await;
        assert!(matches!(given_back, Err(Error::OtherCluster { .. })), "{given_back:?}");
        let ended = settings.end().await;
        assert!(matches!(ended, Err(Error::OtherCluster { .. })), "{ended:?}");
        assert!(cluster.journal().exists() && cluster.settings()[LIMIT] == "80mb");
    });
}

/// Nothing that is set there is the lease of this one, and the journal would go.
#[test]
fn no_lease_is_given_back_to_another_cluster_at_the_same_address() {
    on_cluster(async |env, cluster| {
        let mut settings = borrow(&cluster);
        taken(&env, &mut settings).await;
        let mut done = settings.put_back(&Kept::new()).await.unwrap();
        let lease = cluster.settings();
        cluster.manager.borrow_mut().is_another = true;
        let settled = settings.settle(&mut done).await;
        assert!(matches!(settled, Err(Error::OtherCluster { .. })), "{settled:?}");
        assert_eq!(cluster.settings(), lease);
    });
}
