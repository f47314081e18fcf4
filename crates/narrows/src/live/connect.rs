//! Reaching a cluster that we did not start.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clusters::Credentials;
use clusters::live::{
    Address, Header, LiveClient, LiveOptions, Sampler, TlsOptions, Transcript, is_transcript,
};
use futures_util::future::join_all;
use record::units::parse_time_above_zero;
use world::Env;

use crate::exit::{Usage, refuse};
use crate::terminal::say;

/// How long a host may take to say of which cluster it is, where several are given.
const SAYS_ITS_CLUSTER: Duration = Duration::from_secs(2);

/// How to reach a cluster. Credentials come from NARROWS_USER and NARROWS_PASSWORD, NARROWS_API_KEY or
/// NARROWS_TOKEN, or from a file; never from the command line, which others can see.
#[derive(clap::Args)]
pub(crate) struct ConnectArgs {
    /// TOML file with user and password, api_key or token, which nobody else may read; instead of the environment
    /// (NARROWS_USER and NARROWS_PASSWORD, NARROWS_API_KEY, NARROWS_TOKEN).
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Certificate of the authority that signed the cluster's, PEM; the system's authorities without it.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Our own certificate, PEM, where the cluster asks for one.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of our own certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Do not look at the cluster's certificate: whoever answers is trusted with the credentials.
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Take a cluster of any version, also one that narrows was never tried with.
    #[arg(long)]
    any_version: bool,
    /// How long one answer may take.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time_above_zero)]
    timeout: Duration,
}

/// `--timeout` where nobody says it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// As it is where the command line says nothing.
impl Default for ConnectArgs {
    fn default() -> Self {
        ConnectArgs {
            credentials: None,
            ca: None,
            cert: None,
            key: None,
            insecure: false,
            any_version: false,
            timeout: TIMEOUT,
        }
    }
}

impl ConnectArgs {
    /// How long one answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether a cluster of any version will do.
    pub(crate) fn any_version(&self) -> bool {
        self.any_version
    }

    /// Whether whoever answers is trusted.
    pub(crate) fn insecure(&self) -> bool {
        self.insecure
    }

    /// Refuses options that say how a cluster is reached where none is; `why` says that, and what to do.
    pub(crate) fn refuse_given(&self, why: &str) -> anyhow::Result<()> {
        match self.given() {
            Some(option) => refuse!("{option} is for a cluster that is already there, and {why}"),
            None => Ok(()),
        }
    }

    /// Refuses --any-version where nobody looks at the version of a cluster.
    pub(crate) fn refuse_any_version(&self) -> anyhow::Result<()> {
        if self.any_version {
            refuse!(
                "--any-version would change nothing, as no version is looked at here; leave it out"
            );
        }
        Ok(())
    }

    /// The first option that says how a cluster is reached.
    fn given(&self) -> Option<&'static str> {
        let options = [
            ("--credentials", self.credentials.is_some()),
            ("--ca", self.ca.is_some()),
            ("--cert", self.cert.is_some()),
            ("--insecure", self.insecure),
            ("--any-version", self.any_version),
            ("--timeout", self.timeout != TIMEOUT),
        ];
        options.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// Who we are; read from the file or the environment.
    pub(crate) fn credentials(&self) -> Result<Credentials, clusters::Error> {
        Credentials::read(self.credentials.as_deref())
    }

    /// Whom we trust.
    pub(crate) fn tls(&self) -> TlsOptions {
        TlsOptions {
            ca: self.ca.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            insecure: self.insecure,
        }
    }
}

/// Everything that is wrong with reaching a cluster is for whoever asked to put right: exit code 2.
pub(crate) fn usage(error: clusters::Error) -> anyhow::Error {
    let hint = match &error {
        clusters::Error::Connection { source, .. }
            if source.kind() == ErrorKind::ConnectionRefused =>
        {
            "; nobody listens there: write where REST does, as http://HOST:9200"
        }
        clusters::Error::Connection { source, .. }
            if source.to_string().starts_with("failed to lookup address") =>
        {
            "; no host is known by that name here: write where REST does, as http://HOST:9200"
        }
        clusters::Error::Refused { path, status: 404, .. } if path == "/" => {
            "; that is no node of a cluster: write where REST is, as http://HOST:9200"
        }
        _ => "",
    };
    Usage(format!("{error}{hint}")).into()
}

/// Connects, and says aloud what is not as safe as it could be.
pub(crate) async fn connect(
    env: &Env,
    urls: &[String],
    args: &ConnectArgs,
) -> anyhow::Result<Sampler> {
    greet(env, client(env, urls, args, args.timeout)?, args).await
}

/// Asks a cluster for its version, and refuses one that narrows was never tried with, and hosts of several clusters.
pub(crate) async fn greet(
    env: &Env,
    client: LiveClient,
    args: &ConnectArgs,
) -> anyhow::Result<Sampler> {
    refuse_several_clusters(env, client.hosts(), args).await?;
    let sampler = Sampler::connect(client).await.map_err(usage)?;
    match sampler.check_version() {
        Err(_) if args.any_version => {}
        checked => checked.map_err(usage)?,
    }
    Ok(sampler)
}

/// Only one host is asked at a time, so that another cluster would not be looked at. A host that does not answer soon
/// is none of another cluster as far as we know: where nodes are ill, nobody wants to wait for them first.
pub(crate) async fn refuse_several_clusters(
    env: &Env,
    hosts: &[Address],
    args: &ConnectArgs,
) -> anyhow::Result<()> {
    if hosts.len() < 2 {
        return Ok(());
    }
    let root = async |host: &Address| {
        let options =
            options(&[host.to_string()], args, args.timeout.min(SAYS_ITS_CLUSTER)).ok()?;
        LiveClient::new(env, &options).ok()?.get("/").await.ok()
    };
    let roots = join_all(hosts.iter().map(root)).await;
    let mut first: Option<(&Address, String, String)> = None;
    for (host, root) in hosts.iter().zip(roots) {
        let Some(root) = root else { continue };
        let text = |key: &str| root[key].as_str().unwrap_or_default().to_owned();
        let (name, uuid) = (text("cluster_name"), text("cluster_uuid"));
        // A node that has found no cluster yet has none.
        if name.is_empty() || uuid == "_na_" {
            continue;
        }
        let Some((other, its_name, its_uuid)) = &first else {
            first = Some((host, name, uuid));
            continue;
        };
        if (&name, &uuid) != (its_name, its_uuid) {
            let name = if name == *its_name { format!("another {name}") } else { name };
            refuse!(
                "{other} is of the cluster {its_name}, and {host} of {name}; several hosts are those of one cluster: \
                 give each cluster a command of its own"
            );
        }
    }
    Ok(())
}

/// The client, which writes down all that it asks and is answered, in a new file in a directory.
pub(crate) fn written(
    client: LiveClient,
    dir: &Path,
    span: Duration,
    interval: Duration,
) -> anyhow::Result<LiveClient> {
    if is_transcript(dir) {
        refuse!("{} holds a transcript already; give another directory", dir.display());
    }
    let hosts = client.hosts().iter().map(ToString::to_string).collect();
    let transcript = Transcript::create(dir, &Header::new(hosts, span, interval))?;
    Ok(client.written_to(transcript))
}

/// A client that has asked nothing yet; says aloud what is not as safe as it could be.
pub(crate) fn client(
    env: &Env,
    urls: &[String],
    args: &ConnectArgs,
    timeout: Duration,
) -> anyhow::Result<LiveClient> {
    let options = checked_options(urls, args, timeout)?;
    LiveClient::new(env, &options).map_err(usage)
}

/// How to reach a cluster; says aloud what is not as safe as it could be.
pub(crate) fn checked_options(
    urls: &[String],
    args: &ConnectArgs,
    timeout: Duration,
) -> anyhow::Result<LiveOptions> {
    let options = options(urls, args, timeout).map_err(usage)?;
    if args.insecure {
        say!("narrows: --insecure: the cluster's certificate is not looked at");
    }
    for address in options.addresses.iter().filter(|address| !address.tls) {
        if options.credentials != Credentials::None {
            say!("narrows: {address} is plain HTTP: the credentials can be read on the way");
        }
        if args.ca.is_some() || args.cert.is_some() {
            say!(
                "narrows: {address} is plain HTTP: no certificate is looked at or shown there; write https://"
            );
        }
    }
    Ok(options)
}

/// Another client of a cluster that was connected to, of which everything has been said.
pub(crate) fn second_client(
    env: &Env,
    urls: &[String],
    args: &ConnectArgs,
) -> anyhow::Result<LiveClient> {
    let options = options(urls, args, args.timeout).map_err(usage)?;
    LiveClient::new(env, &options).map_err(usage)
}

/// The same as plain data; reads the credentials.
pub(crate) fn options(
    urls: &[String],
    args: &ConnectArgs,
    timeout: Duration,
) -> Result<LiveOptions, clusters::Error> {
    // As the name of a host it would be an address on the other side of the world.
    if let Some(port) = urls.iter().find(|url| url.parse::<u16>().is_ok()) {
        let why = format!("it is a port alone; write http://localhost:{port}");
        return Err(clusters::Error::Address { what: port.clone(), why });
    }
    let addresses = Address::parse_all(urls.iter().map(String::as_str))?;
    let (credentials, tls) = (args.credentials()?, args.tls());
    Ok(LiveOptions { addresses, credentials, tls, timeout })
}

/// The cluster in words: `logs, opensearch 2.19.1`. A role may be allowed to monitor it and not to ask who it is.
pub(crate) fn title(identity: &record::observation::Identity) -> String {
    let record::observation::Identity { name, version, .. } = identity;
    match name.is_empty() && version.is_empty() {
        true => "a cluster of an untold version".to_owned(),
        false => format!("{name}, {}", identity.build()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_does_not_say_who_it_is_has_a_title() {
        let untold = record::observation::Identity::default();
        assert_eq!(title(&untold), "a cluster of an untold version");
        let of = |flavour: &str| record::observation::Identity {
            name: "logs".to_owned(),
            flavour: flavour.to_owned(),
            version: "7.10.2".to_owned(),
        };
        assert_eq!(title(&of("elasticsearch")), "logs, elasticsearch 7.10.2");
        assert_eq!(title(&of("narrows")), "logs, the embedded engine (as 7.10.2)");
    }

    #[test]
    fn whoever_answers_and_is_no_node_is_said_to_be_none() {
        let refused = |path: &str| clusters::Error::Refused {
            method: "GET".into(),
            path: path.into(),
            status: 404,
            kind: "error".into(),
            reason: "there is nothing here".into(),
        };
        assert!(usage(refused("/")).to_string().ends_with("as http://HOST:9200"));
        assert!(!usage(refused("/logs")).to_string().contains("HOST"));
    }
}
