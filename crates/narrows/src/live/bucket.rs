//! Looking at a bucket of Couchbase for a while.

use std::time::Duration;

use dcp::client::{BucketAddress, ClientOptions, Tls};
use dcp::look::Looker;
use world::Env;

use super::{ConnectArgs, History, usage};
use crate::exit::{Usage, refuse};
use crate::terminal::say;

/// What is wrong with reaching a server is for whoever asked to put right.
pub(crate) fn asked(error: dcp::Error) -> anyhow::Error {
    Usage(error.to_string()).into()
}

/// Connects to the data nodes of one bucket; says aloud what is not as safe as it could be.
pub(crate) async fn look_at_bucket(
    env: &Env,
    urls: &[String],
    args: &ConnectArgs,
) -> anyhow::Result<Looker> {
    let each = urls.iter().flat_map(|text| text.split(',')).map(BucketAddress::parse);
    let addresses: Vec<BucketAddress> = each.collect::<Result<_, _>>().map_err(asked)?;
    let mut options = Vec::new();
    for address in &addresses {
        if (&address.bucket, address.tls) != (&addresses[0].bucket, addresses[0].tls) {
            refuse!("{} and {address} are not of one bucket and one scheme", addresses[0]);
        }
        options.push(client_options(address, args)?);
    }
    if let Some(first) = addresses.first() {
        say_if_insecure(first, args);
    }
    Looker::connect(env, &options).await.map_err(asked)
}

/// Says aloud that anybody may answer. All addresses of a bucket are of one scheme.
pub(crate) fn say_if_insecure(address: &BucketAddress, args: &ConnectArgs) {
    if address.tls && args.insecure() {
        say!(
            "narrows: --insecure: the server's certificate is not looked at; the password itself is sent to this \
             machine alone, others have to take SCRAM"
        );
    }
}

/// How to reach a bucket; reads the credentials.
pub(crate) fn client_options(
    address: &BucketAddress,
    args: &ConnectArgs,
) -> anyhow::Result<ClientOptions> {
    let tls = match address.tls {
        true => {
            let config = args.tls().config().map_err(usage)?;
            Some(Tls { config, verified: !args.insecure() })
        }
        false => None,
    };
    let found = args.credentials().map_err(usage)?;
    Ok(ClientOptions {
        address: address.authority(),
        bucket: address.bucket.clone(),
        credentials: super::user_and_password(found)?,
        tls,
        timeout: args.timeout(),
        agent: format!("narrows/{}", env!("CARGO_PKG_VERSION")),
    })
}

/// Looks for so long, at least twice: counters say something only by how they change.
pub(crate) async fn look_for(
    env: &Env,
    looker: &mut Looker,
    span: Duration,
    interval: Duration,
) -> anyhow::Result<History> {
    let (mut history, mut next, ends) = (History::default(), env.now(), env.now() + span);
    loop {
        let (t_ms, look) = looker.look().await.map_err(asked)?;
        history.push(t_ms, look);
        if env.now() >= ends && history.series().looks().len() > 1 {
            return Ok(history);
        }
        // A slow answer is followed by a pause all the same: the servers have better things to do.
        next = (next + interval).max(env.now() + interval / 4);
        env.sleep_until(next).await;
    }
}
