//! A remote cluster is reached through a proxy, by fewer sockets than there should be.

use record::observation::Remote;
use record::units::show_bytes;

use super::{Against, Cause, Class, Judge, Rule};
use crate::diagnosis::answers::Answers;
use crate::diagnosis::copying::{Copying, alias_of};
use crate::diagnosis::finding::{Evidence, Finding, Gain, Lift};
use crate::diagnosis::following::{Following, followings};
use crate::diagnosis::series::{MS_PER_S, Series};
use crate::diagnosis::threshold::{NEAR_MS, Threshold, at};
use crate::words;

const STRENGTH: Threshold = at("strength", 0.55);
/// Fewer than this were somebody's choice, and as many are worth trying.
const SOCKETS: Threshold = at("sockets to a proxy, by default", 18.0);
/// A read that is alone on its way takes one round trip. Those that wait for others in the same socket take longer.
const TRIPS: Threshold = at("round trips that a read takes where sockets hold it, at least", 2.0);

const REMOTE_INFO: &str = "_remote/info";
const DOUBT: &str =
    "a path that carries no more in all looks the same: more sockets bring nothing there";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Proxy,
        label: "proxy",
        signature: "a proxy is reached by fewer sockets than there should be, or so few over a long path hold the flow",
        reads: "_remote/info mode, num_proxy_sockets_connected, max_proxy_socket_connections; _ccr/stats; _recovery",
        thresholds: &[STRENGTH, NEAR_MS, SOCKETS, TRIPS],
        lift: "cluster.remote.<alias>.proxy_socket_connections",
        default: "18",
        probe: "direct against proxied",
    },
    judges: &[Judge::Remote(judge)],
};

fn judge(series: &Series<'_>, remote: &Remote) -> Option<Finding> {
    let (open, most) = (remote.proxy_sockets?, remote.proxy_sockets_max?);
    if remote.mode.as_deref() != Some("proxy") || open >= most {
        return None;
    }
    let alias = &remote.alias;
    let setting = setting_of(alias);
    let are = if open == 1 { "is" } else { "are" };
    let sentence = format!("{open} of {most} sockets to the proxy of {alias} {are} open");
    let value = format!("{open} of {most}");
    Some(Finding {
        subjects: vec![format!("remote cluster {alias}")],
        evidence: vec![Evidence::new(REMOTE_INFO, "num_proxy_sockets_connected", value)],
        lift: Some(Lift {
            now: series.setting(&setting).map(|setting| setting.value.clone()),
            setting: Some(setting),
            ..Lift::action("find out why the proxy refuses the others")
        }),
        doubt: Some("compare a direct connection with the proxied one".to_owned()),
        ruled_out: Answers::new([(Class::Latency, Err(not_far(series, alias)))])
            .ruled_out(Class::Proxy),
        ..Finding::of(&CAUSE.rule, alias, STRENGTH.value, sentence)
    })
}

/// What is known of the round trip to a remote cluster: a long one would hold transfers from there, as few sockets do.
fn not_far(series: &Series<'_>, alias: &str) -> Against {
    let Some(rtt_ms) = series.remote_rtt_ms(alias) else {
        return Against::untold(format!("the round trip to {alias} was not measured"));
    };
    let rtt = words::rtt_tenths(rtt_ms);
    match rtt_ms < NEAR_MS.value {
        true => Against::figure(format!("{alias} is near: {rtt} of round trip")),
        false => Against::untold(format!(
            "the round trip to {alias} is {rtt}: what comes from there would tell whether it holds"
        )),
    }
}

fn setting_of(alias: &str) -> String {
    format!("cluster.remote.{alias}.proxy_socket_connections")
}

/// Fewer sockets than by default to a cluster far away, all of them open: each carries one window in a round trip.
struct FewSockets<'a> {
    alias: &'a str,
    open: f64,
    rtt_ms: f64,
}

impl<'a> FewSockets<'a> {
    /// None where it is near, where it is reached otherwise, or by as many as usual.
    fn to(series: &Series<'a>, alias: &str) -> Option<Self> {
        let remote = series.remotes().iter().find(|one| one.alias == alias)?;
        let open = remote.proxy_sockets.filter(|open| *open > 0)?;
        let are_all_open = remote.proxy_sockets_max.is_none_or(|most| open >= most);
        let is_few = (open as f64) < SOCKETS.value && are_all_open;
        let rtt_ms = series.remote_rtt_ms(alias).filter(|rtt_ms| *rtt_ms >= NEAR_MS.value)?;
        let is_proxied = remote.mode.as_deref() == Some("proxy");
        (is_proxied && is_few).then_some(FewSockets {
            alias: &remote.alias,
            open: open as f64,
            rtt_ms,
        })
    }

    /// What was found without them, as what they hold: they carry so much together, as `why` shows.
    fn hold(&self, series: &Series<'_>, bytes_per_s: f64, found: &Finding, why: &str) -> Finding {
        let FewSockets { alias, open, rtt_ms } = *self;
        let (name, usual) = (setting_of(alias), SOCKETS.value);
        let setting = series.setting_or_default(&name, CAUSE.rule.default);
        let (carried, trip) = (words::rate(bytes_per_s), words::rtt_tenths(rtt_ms));
        let window = show_bytes((bytes_per_s * rtt_ms / MS_PER_S / open) as u64);
        let mut evidence = found.evidence.clone();
        let value = format!("{open:.0}, and {usual:.0} by default");
        evidence.push(Evidence::new(REMOTE_INFO, "num_proxy_sockets_connected", value));
        evidence.push(Evidence::setting(&name, &setting, Some(CAUSE.rule.default)));
        let sentence = format!(
            "the sockets to the proxy of {alias} ({open:.0}) carry {carried} and no more: {why}, and a window of \
             {window} a socket over a round trip of {trip} gives that rate"
        );
        let action = "open more sockets to the proxy";
        let lift = Lift::setting(&name, setting, Some(format!("{usual:.0}")), action);
        Finding {
            subjects: found.subjects.clone(),
            evidence,
            lift: Some(lift.with_default(Some(CAUSE.rule.default))),
            gain: Some(Gain {
                factor: usual / open,
                formula: format!(
                    "{usual:.0} sockets / {open:.0}, each of which carries {window} in {trip}"
                ),
            }),
            next: found.next.clone(),
            doubt: Some(DOUBT.to_owned()),
            ..Finding::of(&CAUSE.rule, alias, found.strength, sentence)
        }
    }
}

/// Reads of a follower that spend so long on their way each, as what few sockets hold; none where these do not.
pub(super) fn of_reads(
    following: &Following<'_, '_>,
    found: &Finding,
    each_ms: f64,
) -> Option<Finding> {
    let series = following.series;
    let sockets = FewSockets::to(series, following.now.remote.as_deref()?)?;
    let trips = each_ms / sockets.rtt_ms;
    if trips < TRIPS.value {
        return None;
    }
    let bytes = bytes_read(series, sockets.alias);
    let why = format!("a read is on its way for {} round trips", words::three_digits(trips));
    Some(sockets.hold(series, bytes as f64 / (series.span_ms() / MS_PER_S), found, &why))
}

/// What all followers of a remote cluster read meanwhile: they share the sockets.
fn bytes_read(series: &Series<'_>, alias: &str) -> u64 {
    let all = followings(series).into_iter();
    let own = all.filter(|one| one.now.remote.as_deref() == Some(alias));
    own.filter_map(|one| one.rise(|one| one.bytes_read)).sum()
}

/// A path from a remote cluster that is full, as what few sockets hold; none where these do not.
pub(super) fn of_path(recovery: &Copying<'_, '_>, found: &Finding) -> Option<Finding> {
    let alias = alias_of(recovery.transfer.last().repository.as_deref()?)?;
    let sockets = FewSockets::to(recovery.series, alias)?;
    let why = "the rate is level, and chunks enough are on their way";
    Some(sockets.hold(recovery.series, recovery.path_bytes_per_s(), found, why))
}
