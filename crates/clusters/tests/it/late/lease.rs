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
