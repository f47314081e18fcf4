//! The events about auto-follow patterns.

use std::sync::Arc;

use super::applied::{Applied, check_remote};
use super::auto_follow::AutoFollowChange;
use super::{Change, ClusterState, StateError};

pub(super) fn change(state: &mut ClusterState, name: String, change: AutoFollowChange) -> Applied {
    if let AutoFollowChange::Put(new) = &change {
        check_remote(state, &new.remote_cluster)?;
    }
    let found = state.auto_follow.get_mut(&name).map(Arc::make_mut);
    match (change, found) {
        (AutoFollowChange::Put(mut new), found) => {
            // Leaders that the pattern must not follow stay known while its cluster is the same.
            if let Some(old) = found.filter(|old| old.remote_cluster == new.remote_cluster) {
                new.settled.append(&mut old.settled);
            }
            state.auto_follow.insert(name, Arc::new(*new));
        }
        (_, None) => return Err(StateError::NoAutoFollow { name }),
        (AutoFollowChange::Delete, Some(_)) => drop(state.auto_follow.remove(&name)),
        (AutoFollowChange::SetActive(active), Some(found)) => found.active = active,
        (AutoFollowChange::Settle { remote_cluster, followed, gone }, Some(found)) => {
            if found.remote_cluster != remote_cluster {
                return Ok(Vec::new());
            }
            found.settled.extend(followed);
            found.settled.retain(|uuid| !gone.contains(uuid));
        }
    }
    Ok(vec![Change::Other])
}

#[cfg(test)]
mod tests {
    use super::super::AutoFollow;
    use super::super::Event;
    use super::super::manager::lab::Lab;
    use super::*;

    fn pattern() -> AutoFollow {
        AutoFollow {
            remote_cluster: "eu".to_owned(),
            leader_index_patterns: vec!["logs-*".to_owned(), "geo".to_owned()],
            leader_index_exclusion_patterns: vec!["*-test".to_owned()],
            follow_index_pattern: Some("{{leader_index}}-copy".to_owned()),
            active: true,
            ..AutoFollow::default()
        }
    }

    #[test]
    fn fits_by_patterns_and_exclusions() {
        let pattern = pattern();
        assert!(pattern.wants("logs-1", "u") && pattern.wants("geo", "u"));
        assert!(!pattern.wants("logs-1-test", "u") && !pattern.wants("geonames", "u"));
        assert_eq!(pattern.follower_of("logs-1"), "logs-1-copy");
        assert_eq!(AutoFollow::default().follower_of("logs-1"), "logs-1");
        let paused = AutoFollow { active: false, ..pattern };
        assert!(!paused.wants("logs-1", "u"));
    }

    fn put(lab: &mut Lab, change: AutoFollowChange) -> Result<(), StateError> {
        let event = Event::ChangeAutoFollow { name: "p".to_owned(), change };
        lab.apply(event).map(|_| ())
    }

    #[test]
    fn is_put_paused_settled_and_deleted() {
        let mut lab = Lab::new(1);
        let new = || AutoFollowChange::Put(Box::new(pattern()));
        assert!(matches!(put(&mut lab, new()), Err(StateError::NoSuchRemote { .. })));
        lab.set("cluster.remote.eu.seeds", "h:1");
        assert!(matches!(
            put(&mut lab, AutoFollowChange::SetActive(false)),
            Err(StateError::NoAutoFollow { .. })
        ));
        put(&mut lab, new()).unwrap();
        put(&mut lab, AutoFollowChange::SetActive(false)).unwrap();
        let uuids = |uuids: &[&str]| uuids.iter().map(|uuid| (*uuid).to_owned()).collect();
        let settle = |followed: &[&str], gone: &[&str]| AutoFollowChange::Settle {
            remote_cluster: "eu".to_owned(),
            followed: uuids(followed),
            gone: uuids(gone),
        };
        put(&mut lab, settle(&["a", "b"], &[])).unwrap();
        put(&mut lab, settle(&["c"], &["a"])).unwrap();
        assert!(!lab.state.auto_follow["p"].active);
        // Put again, it asks for other things, and forgets nothing.
        put(&mut lab, new()).unwrap();
        let kept = &lab.state.auto_follow["p"];
        assert!(kept.active && kept.wants("geo", "a") && !kept.wants("geo", "b"));
        // One of that name for another cluster knows nothing of these leaders.
        lab.set("cluster.remote.us.seeds", "h:2");
        let other = AutoFollow { remote_cluster: "us".to_owned(), ..pattern() };
        put(&mut lab, AutoFollowChange::Put(Box::new(other))).unwrap();
        put(&mut lab, settle(&["d"], &[])).unwrap();
        assert!(lab.state.auto_follow["p"].settled.is_empty());
        put(&mut lab, AutoFollowChange::Delete).unwrap();
        assert!(lab.state.auto_follow.is_empty());
    }
}
