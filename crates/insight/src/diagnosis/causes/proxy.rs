//! A remote cluster is reached through a proxy, by fewer sockets than there should be.

use record::observation::Remote;

use crate::diagnosis::answers::Answers;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Evidence, Finding, Lift};
use crate::diagnosis::rivals::Against;
use crate::diagnosis::rule::Rule;
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{NEAR_MS, Threshold, at};
use crate::words;

const STRENGTH: Threshold = at("strength", 0.55);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Proxy,
        label: "proxy",
        signature: "the remote cluster is reached by proxy, with fewer sockets than there should be",
        reads: "_remote/info mode, num_proxy_sockets_connected, max_proxy_socket_connections",
        thresholds: &[STRENGTH, NEAR_MS],
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
    let setting = format!("cluster.remote.{alias}.proxy_socket_connections");
    let sentence = format!("{open} of {most} sockets to the proxy of {alias} are open");
    let value = format!("{open} of {most}");
    Some(Finding {
        subjects: vec![format!("remote cluster {alias}")],
        evidence: vec![Evidence::new("_remote/info", "num_proxy_sockets_connected", value)],
        lift: Some(Lift {
            now: series.setting(&setting).map(|setting| setting.value.clone()),
            setting: Some(setting),
            ..Lift::action("find out why the proxy refuses the others")
        }),
        doubt: Some("compare a direct connection with the proxied one".to_owned()),
        ruled_out: Answers::new([(Class::Latency, Err(not_far(series, alias)))].into_iter())
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
