//! The names that a node answers to. A page of a stranger can have its own name lead to 127.0.0.1 (DNS rebinding), and
//! then ask a node there through the browser of whoever looks at the page. The browser says that name with each
//! request.

use std::net::IpAddr;

use engine::transport::{Failure, Result};

/// Refuses a request to a `host`, `name:port`, that this node is not asked by: it listens on `bound`, and `allowed` are
/// names that it was told to answer to.
pub(super) fn check_host(host: &str, bound: Option<IpAddr>, allowed: &[String]) -> Result<()> {
    if is_own_name(host, bound, allowed) {
        return Ok(());
    }
    let name = name_of(host);
    let reason = format!(
        "this node is not asked by the name [{name}], which a page of a stranger may have given it; ask it by its \
         address or localhost, or start the cluster with --allow-host {name}"
    );
    Err(Failure::new(403, "security_exception", reason))
}

/// Whether `host`, `name:port`, is a name of whoever listens on `bound`: of this machine for itself, its address, or
/// one of those that are `allowed`.
pub fn is_own_name(host: &str, bound: Option<IpAddr>, allowed: &[String]) -> bool {
    let name = name_of(host);
    let is_bound = |ip: IpAddr| bound.is_some_and(|bound| bound == ip || bound.is_unspecified());
    is_loopback(name)
        || name.parse().is_ok_and(is_bound)
        || allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Refuses what a web page of another site sends through somebody's browser.
pub(super) fn check_origin(origin: &str) -> Result<()> {
    if is_loopback(name_of(origin.split_once("://").map_or(origin, |(_, host)| host))) {
        return Ok(());
    }
    let reason = format!("requests of pages from [{origin}] are not answered");
    Err(Failure::new(403, "security_exception", reason))
}

/// The name or the address of `name:port`.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None => host.split(':').next().unwrap_or(host),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_pages_of_this_machine() {
        for origin in ["http://localhost:8080", "http://127.0.0.1", "https://[::1]:80"] {
            assert!(check_origin(origin).is_ok(), "{origin}");
        }
        for origin in ["http://localhost.example.org", "https://example.org:9200", "null"] {
            assert_eq!(check_origin(origin).unwrap_err().status, 403, "{origin}");
        }
    }

    #[test]
    fn answers_to_loopback_names_to_its_address_and_to_what_is_allowed() {
        let allowed = ["search.example.org".to_owned()];
        let answers = |host: &str, bound: &str| {
            check_host(host, Some(bound.parse().unwrap()), &allowed).is_ok()
        };
        for host in ["localhost:9200", "127.0.0.1:9200", "[::1]:1", "Search.example.ORG:9200"] {
            assert!(answers(host, "127.0.0.1"), "{host}");
        }
        for host in ["evil.example:9200", "localhost.evil.example", "0.0.0.0:9200", "192.0.2.1", ""]
        {
            assert!(!answers(host, "127.0.0.1"), "{host}");
        }
        assert!(answers("192.0.2.1:9200", "192.0.2.1") && answers("192.0.2.1:9200", "0.0.0.0"));
        assert!(!answers("192.0.2.2:9200", "192.0.2.1") && !answers("evil.example", "0.0.0.0"));
        let said = check_host("evil.example:9200", None, &[]).unwrap_err();
        assert!(said.reason.contains("--allow-host evil.example"), "{}", said.reason);
    }
}
