//! What a cluster and its nodes say of themselves: version, manager, hosts.

use engine::Node;

/// The version that clients are told: the last of the field's that all of them agree with.
pub(super) const COMPATIBLE_VERSION: &str = "7.10.2";

/// Name of the node that manages the cluster.
pub(super) fn manager(node: &Node) -> &str {
    node.core().config.members.first().map_or(node.name(), String::as_str)
}

/// The host of an address.
pub(super) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_addresses() {
        assert_eq!(host("127.0.0.1:9300"), "127.0.0.1");
        assert_eq!(host("[::1]:9300"), "::1");
        assert_eq!(host("leader-1:40001"), "leader-1");
    }
}
