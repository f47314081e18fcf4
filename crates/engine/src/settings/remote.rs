//! What is set for one remote cluster.

use super::SettingError;
use super::kind::Typed;
use super::words::{Compress, RemoteMode};

/// How a remote cluster is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Transport addresses, `host:port` each; with a proxy its address alone.
    pub seeds: Vec<String>,
    /// Whether to compress; none leaves it to `transport.compress`.
    pub compress: Option<Compress>,
    /// With mode `proxy`.
    pub proxy: Option<Proxy>,
}

/// The one address through which a remote cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// `host:port`.
    pub address: String,
    /// Connections that each node opens to it.
    pub sockets: u32,
    /// As it was given.
    pub server_name: String,
}

/// `cluster.remote.*.proxy_socket_connections` where it was not given.
const SOCKETS: u32 = 18;

/// The settings of an alias as they were given.
#[derive(Debug, Default)]
pub(super) struct GivenRemote {
    mode: Option<RemoteMode>,
    seeds: Vec<String>,
    proxy_address: Option<String>,
    sockets: Option<u32>,
    server_name: Option<String>,
    compress: Option<Compress>,
}

impl GivenRemote {
    /// Takes one over; `name` is that of the table.
    pub(super) fn set(&mut self, name: &str, value: Typed) {
        match (name.strip_prefix("cluster.remote.*."), value) {
            (Some("mode"), Typed::Word(word)) => self.mode = RemoteMode::of(word),
            (Some("seeds"), Typed::Addresses(seeds)) => self.seeds = seeds,
            (Some("proxy_address"), Typed::Addresses(one)) => {
                self.proxy_address = one.into_iter().next();
            }
            (Some("proxy_socket_connections"), Typed::Count(count)) => {
                self.sockets = u32::try_from(count).ok();
            }
            (Some("server_name"), Typed::Text(text)) => self.server_name = Some(text),
            (Some("transport.compress"), Typed::Word(word)) => self.compress = Compress::of(word),
            _ => {}
        }
    }

    /// Why a setting does not go with the mode, in the words of the field.
    pub(super) fn at_odds(&self, alias: &str) -> Option<SettingError> {
        let sockets = self.sockets.map(|sockets| sockets.to_string());
        let seeds = (!self.seeds.is_empty()).then(|| self.seeds.join(","));
        let (required, configured, given) = match self.mode {
            Some(RemoteMode::Proxy) => {
                ("SNIFF", "PROXY", [("seeds", seeds), ("", None), ("", None)])
            }
            Some(RemoteMode::Sniff) | None => {
                let address = ("proxy_address", self.proxy_address.clone());
                let name =
                    ("server_name", self.server_name.clone().filter(|name| !name.is_empty()));
                ("PROXY", "SNIFF", [address, ("proxy_socket_connections", sockets), name])
            }
        };
        let (setting, value) = given.into_iter().find_map(|(name, value)| Some((name, value?)))?;
        let why = format!(
            "it cannot be used with the configured [cluster.remote.{alias}.mode] [required={required}, \
             configured={configured}]; set the mode with it, or take it back with null"
        );
        Some(SettingError::Value { name: format!("cluster.remote.{alias}.{setting}"), value, why })
    }

    /// None where nothing says where the cluster is.
    pub(super) fn remote(self) -> Option<Remote> {
        let compress = self.compress;
        if self.mode == Some(RemoteMode::Proxy) {
            let address = self.proxy_address?;
            let sockets = self.sockets.unwrap_or(SOCKETS);
            let server_name = self.server_name.unwrap_or_default();
            let seeds = vec![address.clone()];
            let proxy = Some(Proxy { address, sockets, server_name });
            return Some(Remote { seeds, compress, proxy });
        }
        let seeds = self.seeds;
        (!seeds.is_empty()).then_some(Remote { seeds, compress, proxy: None })
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::{Settings, SettingsMap, check_together};

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let given = pairs
            .iter()
            .map(|(name, value)| (format!("cluster.remote.eu.{name}"), (*value).to_owned()));
        Settings::resolve(&[&given.collect::<SettingsMap>()])
    }

    #[test]
    fn a_proxy_is_one_address_with_its_sockets() {
        let by_default = settings(&[("mode", "proxy"), ("proxy_address", "p:1")]);
        let eu = &by_default.remotes()["eu"];
        assert_eq!(eu.seeds, ["p:1"]);
        assert_eq!(eu.proxy.as_ref().unwrap().sockets, 18);
        let few = [("mode", "proxy"), ("proxy_address", "p:1"), ("proxy_socket_connections", "2")];
        assert_eq!(settings(&few).remotes()["eu"].proxy.as_ref().unwrap().sockets, 2);
        assert!(settings(&[("mode", "proxy")]).remotes().is_empty(), "nothing says where it is");
    }

    #[test]
    fn settings_of_the_other_mode_are_refused() {
        let said = |pairs: &[(&str, &str)]| {
            check_together(&settings(pairs)).err().map(|error| error.to_string())
        };
        assert_eq!(said(&[("mode", "proxy"), ("proxy_address", "p:1")]), None);
        assert_eq!(said(&[("mode", "sniff"), ("seeds", "a:1")]), None);
        let seeds = said(&[("mode", "proxy"), ("seeds", "a:1")]).unwrap();
        assert!(seeds.contains("eu.seeds]") && seeds.contains("required=SNIFF"), "{seeds}");
        for name in ["proxy_address", "proxy_socket_connections", "server_name"] {
            let value = if name == "proxy_socket_connections" { "3" } else { "p:1" };
            let reason = said(&[("seeds", "a:1"), (name, value)]).unwrap();
            assert!(reason.contains(name) && reason.contains("required=PROXY"), "{reason}");
        }
    }
}
