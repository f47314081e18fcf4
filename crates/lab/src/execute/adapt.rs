//! A plan as a place can run it: what the place and the options change of it.

use std::time::Duration;

use engine::settings::FollowParameters;
use record::units::{show_bytes, show_count, show_rate};
use serde_json::{Map, Value};

use super::left_out::{
    is_our_own, leave_out_changed_hosts, leave_out_faults, leave_out_our_own, without_our_own,
};
use super::live_operations;
use super::options::Options;
use super::place::Place;
use super::twin_question;
use crate::choices::unknown;
use crate::error::{Error, Result};
use crate::experiments::{FOLLOW, RECOVER, RESTORE, STEPS};
use crate::plan::{
    Action, OF_BUCKET, OF_FOLLOWER, OF_REPOSITORY, Plan, Resolved, SettingChange, Step, Variant,
    bounds, bundled,
};

/// The plan of a restore, with the settings that one has.
const RESTORE_PLAN: &str = "restore-over-link";

const NO_SECOND_CLUSTER: &str = "this plan recovers from another cluster, and a URL gives one: give the one that has \
    the data with --leader URL; \"replica-over-link\" adds a replica inside one cluster, and --on opensearch starts two";
/// What is said of a second cluster where there is no use for one.
pub const NO_LEADER: &str = "--leader is for a plan that recovers from another cluster or follows one, with --on URL as the one that follows";
const NO_LEADER_TO_FOLLOW: &str = "this plan follows another cluster, and a URL gives one: give the one that is followed \
    with --leader URL, or run it with --on embedded or --on virtual";
const NO_FOLLOWING: &str = "this plan follows through cross-cluster replication, which OpenSearch has in a plugin that is not on \
    Maven Central, and counts on numbers that a single cluster does not have; run it with --on embedded or --on virtual";

/// The plan, resolved, with what the options say otherwise, as it can be run in this place.
pub(super) fn adapted(plan: &Plan, place: &Place, options: &Options) -> Result<Resolved> {
    let mut resolved = plan.resolve(options.scale, STEPS, |name, value| match place {
        Place::OpenSearch(_) if is_for_whoever_starts_a_node(name) => Err(format!(
            "{} is for no plan to say: nodes that are started for it listen on loopback alone, and have directories of \
             their own",
            name.escape_debug()
        )),
        // Foreign clusters know their settings themselves, and say what they refuse.
        _ if place.is_foreign() && !is_our_own(name) => Ok(()),
        // A setting of a snapshot's repository; clusters without repositories say that they have none.
        _ if name.starts_with(OF_REPOSITORY) => Ok(()),
        _ if name.starts_with(OF_BUCKET) => crate::buckets::check_setting(name, value),
        _ if name.starts_with(OF_FOLLOWER) => check_follow_parameter(name, value),
        _ => engine::settings::check(name, value).map(drop).map_err(|error| error.to_string()),
    })?;
    if !place.is_foreign() {
        check_mappings(&resolved)?;
    }
    bounds::check_laps(options.laps)?;
    if let Some(twin) = &resolved.twin {
        twin_question::check(&resolved, twin, place)?;
    }
    let written = resolved.clone();
    if place.is_virtual() {
        resolved.take_full_size();
    }
    if let Some(laps) = options.laps {
        resolved.laps = laps;
        resolved.bucket.iter_mut().for_each(|bucket| bucket.at_least = Duration::ZERO);
    }
    resolved.seed = options.seed.unwrap_or(resolved.seed);
    change_link(&mut resolved, place, options)?;
    if place.is_virtual() {
        resolved.changes = in_virtual_time(&written, &resolved, options);
    } else {
        leave_out_changed_hosts(&mut resolved, options)?;
    }
    let is_bundled = bundled().iter().any(|known| known.text == plan.text());
    take_what_there_is(&mut resolved, is_bundled, place, options)?;
    for name in &options.variants {
        let known: Vec<&str> =
            resolved.variants.iter().map(|variant| variant.name.as_str()).collect();
        if !known.contains(&name.as_str()) {
            return Err(Error::usage(unknown("no variant is called", name, "Variants", &known)));
        }
    }
    if place.is_foreign() {
        leave_out_our_own(&mut resolved, options)?;
    }
    if !options.variants.is_empty() {
        resolved.variants.retain(|variant| options.variants.contains(&variant.name));
    }
    if matches!(place, Place::Live(_)) {
        leave_out_faults(&mut resolved, options)?;
        live_operations::check(&resolved)?;
    }
    Ok(resolved)
}

/// Whether a setting says where a node listens, to which pages it answers, or where its files are: anybody may have
/// written the plan, and these nodes ask nobody who they are. Nodes read lines `name=value`.
fn is_for_whoever_starts_a_node(name: &str) -> bool {
    const OF_THE_NETWORK: [&str; 3] = ["network", "http", "transport"];
    const WHERE: [&str; 5] = ["host", "bind_host", "publish_host", "profiles", "cors"];
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    first == "path"
        || name.contains(['=', '\n', '\r'])
        || (OF_THE_NETWORK.contains(&first) && parts.any(|part| WHERE.contains(&part)))
}

/// Whether a follower takes a parameter of a plan. The error is a sentence.
fn check_follow_parameter(setting: &str, value: &str) -> Result<(), String> {
    let name = setting.strip_prefix(OF_FOLLOWER).unwrap_or(setting);
    let mut body = Map::from_iter([(name.to_owned(), Value::from(value))]);
    FollowParameters::take(&mut body).map_err(|error| error.to_string())?;
    if body.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = FollowParameters::names().collect();
    Err(unknown("a follower has no parameter", name, "Parameters", &known))
}

/// What virtual time changes of a plan as it is `written`, a sentence each. What the command line says otherwise is no
/// change of the place.
fn in_virtual_time(written: &Resolved, now: &Resolved, options: &Options) -> Vec<String> {
    let mut changes = Vec::new();
    if let (Some(was), Some(is)) = (&written.link, &now.link)
        && options.rate_bytes_per_s.is_none()
        && was.rate_bytes_per_s != is.rate_bytes_per_s
    {
        changes.push(format!(
            "The link carries {}, the rate of the test bed, in place of {}.",
            show_rate(is.rate_bytes_per_s as f64),
            show_rate(was.rate_bytes_per_s as f64)
        ));
    }
    if options.laps.is_none() && written.laps != now.laps {
        let (is, laps) = if now.laps == 1 { ("is", "lap") } else { ("are", "laps") };
        changes.push(format!("There {is} {} {laps} in place of {}.", now.laps, written.laps));
    }
    if let (Some(was), Some(is)) = (&written.bucket, &now.bucket)
        && was.items != is.items
    {
        let [is, was] = [is.items, was.items].map(show_count);
        changes.push(format!("The bucket has {is} documents in place of {was}."));
    }
    let writes = now.background().is_some() || !now.actions.is_empty();
    match (&now.corpus, now.full_bytes()) {
        (Some(corpus), Some(bytes)) => changes.push(format!(
            "Indices have the size {}, {} in the files of their primaries, in place of {} documents.",
            if now.source.is_some() { "of the published run" } else { "that full gives them" },
            show_bytes(bytes),
            show_count(corpus.documents)
        )),
        (Some(_), None) if now.indexes() || writes => changes.push(
            "Files of indices have sizes that are computed from their documents, and no bytes: they may be smaller or \
             larger than those of a real store."
                .to_owned(),
        ),
        _ => {}
    }
    let mut loads = now.variants.iter().filter_map(|variant| variant.load.as_ref());
    if now.full_bytes().is_none() && loads.any(|load| load.operations != load.full.operations) {
        changes.push(
            "Searches count all documents: in virtual time these have sizes and no words."
                .to_owned(),
        );
    }
    changes
}

/// Whether the embedded engine has the mappings; foreign clusters know theirs themselves.
fn check_mappings(plan: &Resolved) -> Result<()> {
    for index in &plan.indices {
        let Some(mut mappings) = index.mappings.clone() else { continue };
        let read = query::mapping::expand_dots(&mut mappings)
            .and_then(|()| query::Mapping::parse(&mappings));
        read.map_err(|why| {
            Error::usage(format!("plan {}, index {}: {why}", plan.name, index.name))
        })?;
    }
    Ok(())
}

fn change_link(plan: &mut Resolved, place: &Place, options: &Options) -> Result<()> {
    let is_asked = options.rtt.is_some() || options.rate_bytes_per_s.is_some();
    match &mut plan.link {
        _ if is_asked && matches!(place, Place::Live(_)) => Err(Error::usage(
            "--rtt and --rate are of a link that is made for the run, and clusters that are there have their own; \
             leave them out",
        )),
        Some(link) => {
            let asked = |why| Error::usage(format!("--{why}"));
            let (rtt, rate) = (options.rtt, options.rate_bytes_per_s);
            link.rtt = bounds::RTT.check(rtt.unwrap_or(link.rtt)).map_err(asked)?;
            let rate = rate.unwrap_or(link.rate_bytes_per_s);
            link.rate_bytes_per_s = bounds::RATE.check(rate).map_err(asked)?;
            Ok(())
        }
        None if is_asked => {
            let name = &plan.name;
            Err(Error::usage(format!("plan {name} has no link: --rtt and --rate change nothing")))
        }
        None => Ok(()),
    }
}

/// Puts in the place of cross-cluster replication what foreign clusters have, or refuses the plan.
fn take_what_there_is(
    plan: &mut Resolved,
    is_bundled: bool,
    place: &Place,
    options: &Options,
) -> Result<()> {
    let measured = plan.measured_step().map(|step| step.name);
    let recovers = measured == Some(RECOVER);
    let has_leader = matches!(place, Place::Live(live) if live.leader.is_some());
    match place {
        Place::Live(_) if measured == Some(FOLLOW) && has_leader => follow_as_it_is(plan, options),
        Place::Live(_) if measured == Some(FOLLOW) => Err(Error::usage(NO_LEADER_TO_FOLLOW)),
        Place::Live(_) if has_leader && !recovers => Err(Error::usage(NO_LEADER)),
        Place::OpenSearch(_) if recovers => through_snapshot(plan, is_bundled, options),
        Place::Live(_) if recovers && !has_leader => Err(Error::usage(NO_SECOND_CLUSTER)),
        Place::Live(_) if recovers => {
            if without_our_own(plan) {
                let sentence = "Settings of the embedded engine are left out: these clusters do not have them.";
                plan.changes.push(sentence.to_owned());
            }
            Ok(())
        }
        _ if place.is_foreign() && measured == Some(FOLLOW) => Err(Error::usage(NO_FOLLOWING)),
        // Of the places only nodes of OpenSearch that are started here have a repository.
        Place::Embedded { .. } | Place::Virtual { .. } | Place::Live(_)
            if measured == Some(RESTORE) =>
        {
            let target = place.name();
            Err(Error::usage(format!(
                "{target} has no snapshots to restore; run this plan with --on opensearch"
            )))
        }
        _ => Ok(()),
    }
}

/// Takes from a plan that follows what is only done to clusters that were started for it, and says so; refuses what
/// would leave something behind.
fn follow_as_it_is(plan: &mut Resolved, options: &Options) -> Result<()> {
    let leaves_something =
        plan.actions.iter().any(|action| matches!(action, Action::AutoFollow(_)))
            || plan.indices.iter().any(|index| index.rollover.is_some());
    if leaves_something {
        return Err(Error::usage(
            "this plan makes indices by a pattern or a rollover, and those could not all be taken back from clusters that \
             were not started for it; run it with --on embedded or --on virtual",
        ));
    }
    let mut say = |sentence: String| {
        options.watch.note(&sentence);
        plan.changes.push(sentence);
    };
    let is_fault = |action: &Action| {
        matches!(action, Action::Fault { .. } | Action::RestartAtRandom(_) | Action::StopRestarts)
    };
    let before = plan.actions.len();
    plan.actions.retain(|action| !is_fault(action));
    if plan.actions.len() < before {
        say("Faults are left out: these clusters and the link between them were not started for this run.".to_owned());
    }
    // What is left of variants that differ in the embedded engine's own settings alone is one variant.
    let mut known = Vec::new();
    let before = plan.variants.len();
    plan.variants.retain_mut(|variant| {
        variant.settings.retain(|name, _| !is_our_own(name));
        let is_new = !known.contains(&variant.settings);
        known.push(variant.settings.clone());
        is_new
    });
    if let [only] = plan.variants.as_mut_slice()
        && only.settings.is_empty()
    {
        only.name = AS_SET.to_owned();
    }
    if plan.variants.len() < before {
        say(format!(
            "Variants that differ in settings of the embedded engine alone are one, \"{}\".",
            plan.variants[0].name
        ));
    }
    Ok(())
}

/// The name of the variant that changes nothing on a cluster that is there.
const AS_SET: &str = "as it is set";

/// Has the follower restore a snapshot where the plan recovers through cross-cluster replication, with the variants of
/// such a restore: chunks and how many of them are in flight are no settings of it. What the plan changes meanwhile is
/// changed in each of them. Somebody's own plan asks which of its own variants is better, and a comparison of others is
/// no answer: it is refused, unless those others are asked for by name.
fn through_snapshot(plan: &mut Resolved, is_bundled: bool, options: &Options) -> Result<()> {
    let changes = changes_of_restore(plan)?;
    if !is_bundled && options.variants.is_empty() {
        return Err(Error::usage(format!(
            "none of the variants of {} can run on these nodes: they have no cross-cluster replication, and what they have \
             in its place, the restore of a snapshot, has other settings. \"{RESTORE_PLAN}\" measures such a restore, \
             --variant default does so with the indices of this plan, and \"replica-over-link\" copies a shard across the \
             link; or run it with --on embedded or --on virtual",
            plan.name
        )));
    }
    let restore = Plan::open(RESTORE_PLAN)?.resolve(1.0, STEPS, |_, _| Ok(()))?;
    let restores = restore.measured_step().expect("it measures a restore").clone();
    for step in plan.steps.iter_mut().filter(|step| step.name() == RECOVER) {
        *step = Step::Measure(restores.clone());
    }
    plan.about.push_str(
        " Through a snapshot that the follower restores from the leader's repository: the cluster has no \
         cross-cluster replication.",
    );
    plan.variants = restore.variants;
    for variant in &mut plan.variants {
        variant.setting_changes.extend(changes.iter().cloned());
    }
    let sentence = format!(
        "The follower restores a snapshot in place of a recovery from remote: these nodes have no cross-cluster replication \
         (OpenSearch has it in a plugin that is not on Maven Central). The variants are those of {RESTORE_PLAN}."
    );
    options.watch.note(&sentence);
    plan.changes.push(sentence);
    Ok(())
}

/// The changes that every variant makes while it recovers and that a restore obeys. A change of one variant alone would
/// be lost with its variant, so it is refused.
fn changes_of_restore(plan: &Resolved) -> Result<Vec<SettingChange>> {
    let Some((first, others)) = plan.variants.split_first() else { return Ok(Vec::new()) };
    let in_all = |change: &SettingChange| {
        others.iter().all(|variant| variant.setting_changes.contains(change))
    };
    let changes: Vec<SettingChange> =
        first.setting_changes.iter().filter(|change| in_all(change)).cloned().collect();
    let own = |variant: &&Variant| variant.setting_changes.len() > changes.len();
    if let Some(variant) = plan.variants.iter().find(own) {
        return Err(Error::usage(format!(
            "\"{}\" changes settings while it recovers, and would be left out: these nodes restore a snapshot in place of \
             a recovery from remote, with the variants of {RESTORE_PLAN}; put the change into [[change]] of the plan, or \
             run it with --on embedded or --on virtual",
            variant.name
        )));
    }
    let names = || changes.iter().flat_map(|change| change.settings.keys());
    if let Some(name) = names().find(|name| !is_obeyed_by_restore(name)) {
        return Err(Error::usage(format!(
            "{name} is changed while the follower recovers, and these nodes restore a snapshot in its place, which does \
             not obey it; change {RESTORE_LIMIT}, or run the plan with --on embedded or --on virtual"
        )));
    }
    Ok(changes)
}

/// The limit of a node that a restore obeys while it goes on.
const RESTORE_LIMIT: &str = "indices.recovery.max_bytes_per_sec";

/// Whether a restore may obey a setting: not those of copies between nodes and clusters. Others the nodes judge.
fn is_obeyed_by_restore(name: &str) -> bool {
    let of_copies = ["ccr.", "indices.recovery."].iter().any(|prefix| name.starts_with(prefix));
    name == RESTORE_LIMIT || !(of_copies || is_our_own(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::place::OpenSearchNodes;

    #[test]
    fn a_rate_that_is_asked_for_is_no_change_of_virtual_time() {
        let plan = Plan::open("remote-recovery").unwrap();
        let changes = |rate_bytes_per_s: Option<u64>| {
            let options = Options { rate_bytes_per_s, ..Options::new("unused") };
            adapted(&plan, &Place::VIRTUAL, &options).unwrap().changes.len()
        };
        assert_eq!((changes(None), changes(Some(1_000_000))), (2, 1));
    }

    #[test]
    fn virtual_time_says_that_searches_count_and_where_sizes_come_from() {
        let searches = "[[operation]]\nname = \"a\"\nbody = '{\"query\":{\"match\":{\"b\":\"c\"}}}'\n\
                        [load]\noperations = [\"a\"]\nclients = 1\nmeasured = 9\n[[variant]]\nname = \"d\"\n";
        let full = "full = { documents = 1_000_000, bytes = \"200mb\", segments = 9 }\n";
        for (full, said) in
            [("", "Searches count all documents"), (full, "the size that full gives them, ")]
        {
            let text = [testbed::plans::LOAD, full, searches].concat();
            let plan = Plan::parse("mine.toml", &text).unwrap();
            let changes = adapted(&plan, &Place::VIRTUAL, &Options::new("unused")).unwrap().changes;
            assert_eq!(changes.iter().filter(|text| text.contains(said)).count(), 1, "{changes:?}");
        }
    }

    #[test]
    fn parameters_of_a_follower_are_checked_as_it_checks_them() {
        let said = |name: &str, value: &str| {
            let text = Plan::open("follow-read-size").unwrap().text().to_owned();
            let written = "\"follow.max_read_request_size\" = \"32mb\"";
            assert!(text.contains(written));
            let text = text.replace(written, &format!("\"follow.{name}\" = \"{value}\""));
            let plan = Plan::parse("mine.toml", &text).unwrap();
            let adapted = adapted(&plan, &Place::VIRTUAL, &Options::new("unused"));
            adapted.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(said("max_read_request_size", "32mb"), "");
        let wrong = said("max_read_request_size", "much");
        assert!(wrong.contains("setting [max_read_request_size] cannot be [much]"), "{wrong}");
        let wrong = said("max_read_request_sise", "32mb");
        assert!(wrong.contains("did you mean \"max_read_request_size\""), "{wrong}");
    }

    /// Nodes of OpenSearch that are started here.
    fn on_opensearch() -> Place {
        let release = clusters::Release::named(clusters::Release::DEFAULT).unwrap();
        Place::OpenSearch(OpenSearchNodes { release, heap: "512m".to_owned(), home: None })
    }

    #[test]
    fn a_plan_opens_no_node_to_others() {
        let text = Plan::open(RESTORE_PLAN).unwrap().text().to_owned();
        let said = |name: &str| {
            let text = format!("{text}\n[node_settings]\n\"{name}\" = \"0.0.0.0\"\n");
            let plan = Plan::parse("mine.toml", &text).unwrap();
            let adapted = adapted(&plan, &on_opensearch(), &Options::new("unused"));
            adapted.err().map(|error| error.to_string()).unwrap_or_default()
        };
        for name in [
            "http.host",
            "network.bind_host",
            "transport.profiles.other.bind_host",
            "http.cors.enabled",
            "path.shared_data",
            r"a\nhttp.host",
            "http.host=_site_,",
        ] {
            let refused = said(name);
            assert!(refused.contains("is for no plan to say"), "{name}: {refused}");
        }
        assert_eq!(said("cluster.routing.allocation.same_shard.host"), "");
        assert_eq!(said("transport.connections_per_node.bulk"), "");
    }

    #[test]
    fn a_restore_is_refused_before_its_record_begins_where_there_are_no_snapshots() {
        let plan = Plan::open(RESTORE_PLAN).unwrap();
        let of = |place: &Place| adapted(&plan, place, &Options::new("unused"));
        let embedded = Place::Embedded { program: "unused".into(), own_mounts: || Ok(()) };
        for place in [Place::VIRTUAL, embedded] {
            let refused = of(&place).unwrap_err();
            let said = refused.to_string();
            assert!(refused.is_usage() && said.starts_with(place.name()), "{said}");
        }
        assert!(of(&on_opensearch()).is_ok());
    }

    #[test]
    fn a_plan_of_ones_own_is_refused_where_all_its_variants_would_be_others() {
        let bundled = Plan::open("remote-recovery").unwrap();
        let adapted = |plan: &Plan, variants: &[&str]| {
            let variants = variants.iter().map(|name| (*name).to_owned()).collect();
            adapted(plan, &on_opensearch(), &Options { variants, ..Options::new("unused") })
        };
        let ran = adapted(&bundled, &[]).unwrap();
        assert!(ran.variants.len() == 2 && ran.changes[0].contains(RESTORE_PLAN), "{ran:?}");
        let text = bundled.text().replacen("name = \"remote-recovery\"", "name = \"mine\"", 1);
        let mine = Plan::parse("mine.toml", &text).unwrap();
        let refused = adapted(&mine, &[]).unwrap_err();
        assert!(refused.is_usage(), "{refused}");
        let said = refused.to_string();
        for words in ["variants of mine", "\"restore-over-link\"", "--variant default"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert_eq!(adapted(&mine, &["default"]).unwrap().variants.len(), 1);
    }

    #[test]
    fn a_restore_takes_over_what_a_plan_changes_meanwhile_or_refuses_it_by_name() {
        let text = Plan::open("remote-recovery").unwrap().text().to_owned();
        let adapted = |text: &str| {
            let plan = Plan::parse("mine.toml", text).unwrap();
            let variants = ["default", "not throttled"].map(str::to_owned).to_vec();
            adapted(&plan, &on_opensearch(), &Options { variants, ..Options::new("unused") })
        };
        let change =
            |name: &str| format!("{{ at = \"2s\", settings = {{ \"{name}\" = \"1mb\" }} }}");
        // The key of the plan itself stands before its tables.
        let of_plan = |name: &str| {
            text.replacen("laps = 1", &format!("laps = 1\nchange = [{}]", change(name)), 1)
        };
        let plan = adapted(&of_plan(RESTORE_LIMIT)).unwrap();
        let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["default", "not throttled"]);
        for variant in &plan.variants {
            let changes: Vec<&SettingChange> = variant.setting_changes.iter().collect();
            assert!(
                matches!(*changes, [one] if one.settings[RESTORE_LIMIT] == "1mb"),
                "{changes:?}"
            );
        }
        let refused = |text: &str| {
            let error = adapted(text).unwrap_err();
            assert!(error.is_usage(), "{error}");
            error.to_string()
        };
        let chunk = "ccr.indices.recovery.chunk_size";
        let said = refused(&of_plan(chunk));
        assert!(said.starts_with(chunk) && said.contains(RESTORE_LIMIT), "{said}");
        let named = "name = \"5 MB x 1\"\n";
        let own =
            text.replacen(named, &format!("{named}change = [{}]\n", change(RESTORE_LIMIT)), 1);
        let said = refused(&own);
        assert!(
            said.starts_with("\"5 MB x 1\" changes settings") && said.contains("[[change]]"),
            "{said}"
        );
    }

    #[test]
    fn a_variant_that_changes_a_host_is_left_out_where_hosts_are_no_simulated_ones() {
        let on = || Place::Embedded { program: "unused".into(), own_mounts: || Ok(()) };
        let plan = Plan::open("shard-recovery-raised").unwrap();
        let name = "raised, then noop node by node";
        let of = |place: Place, variants: &[&str]| {
            let variants = variants.iter().map(|name| (*name).to_owned()).collect();
            adapted(&plan, &place, &Options { variants, scale: 1e-4, ..Options::new("unused") })
        };
        assert_eq!(of(Place::VIRTUAL, &[]).unwrap().variants.len(), 3);
        let there = of(on(), &[]).unwrap();
        assert!(there.variants.len() == 2 && there.changes[0].starts_with(name), "{there:?}");
        let refused = of(on(), &[name]).unwrap_err();
        assert!(refused.is_usage(), "{refused}");
        let said = refused.to_string();
        assert!(said.contains(name) && said.contains("--on virtual"), "{said}");
    }
}
