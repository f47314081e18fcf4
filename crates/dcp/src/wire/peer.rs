//! The address of a peer, and how long it may do nothing.

use std::net::IpAddr;
use std::time::Duration;

/// How long a peer may leave sent bytes unread, or a producer that sends NOOPs say nothing (`dcp_idle_timeout`): twice
/// the default interval of NOOPs.
pub(crate) const PEER_PATIENCE: Duration = Duration::from_secs(360);

/// The host of an address, without the brackets of IPv6. Around anything else they are a part of a name, which is
/// looked up as it is.
pub(crate) fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.filter(|inner| inner.contains(':')).unwrap_or(host)
}

/// Whether a host is this machine, whatever is done to names on the way.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
