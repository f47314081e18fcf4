//! A remote cluster is reached through a proxy, by fewer sockets than there should be.

use record::observation::Remote;

use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Evidence, Finding, Lift};
use crate::diagnosis::rule::Rule;
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{Threshold, at};

const STRENGTH: Threshold = at("strength", 0.55);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Proxy,
        label: "proxy",
        signature: "the remote cluster is reached by proxy, with fewer sockets than there should be",
        reads: "_remote/info mode, num_proxy_sockets_connected, max_proxy_socket_connections",
        thresholds: &[STRENGTH],
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
        ..Finding::of(&CAUSE.rule, alias, STRENGTH.value, sentence)
    })
}
