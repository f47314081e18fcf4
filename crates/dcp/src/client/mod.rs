//! A client of a server: authentication, the bucket, requests and answers.

mod address;
mod nodes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use world::{Env, LocalFuture};

use crate::auth::{Credentials, Mechanism, ScramClient, nonce, plain};
use crate::codec::{Answer, Body, FailoverEntry, Kind, Opcode, Request, Response, Status, Write};
use crate::wire::{Incoming, Outgoing, Wire, host_of, is_loopback};
use crate::{Error, Result};

pub use address::BucketAddress;
pub(crate) use nodes::{NODES_MAX, nodes_known_to};

/// The most statistics that a group may have: connections have some thirty for each of up to 1024 vbuckets.
const STATS_MAX: usize = 1_000_000;
/// The most bytes that they may have.
const STATS_BYTES_MAX: usize = 256 << 20;
/// The advice where a user may not read statistics.
const STATS_HINT: &str =
    "the user needs a role that reads statistics, as Couchbase's \"Data Monitor\"";

/// HELLO: the bucket is chosen by us.
const SELECT_BUCKET: u16 = 0x08;
/// HELLO: documents may be marked as JSON.
const JSON: u16 = 0x0b;
/// HELLO: values may begin with extended attributes.
const XATTR: u16 = 0x06;

/// How TLS is spoken.
#[derive(Clone)]
pub struct Tls {
    /// With the certificates to trust.
    pub config: Arc<ClientConfig>,
    /// Whether the server's certificate is looked at. Where it is not, anybody may have answered.
    pub verified: bool,
}

/// How to reach a server.
#[derive(Clone)]
pub struct ClientOptions {
    /// `host:port`.
    pub address: String,
    /// The bucket.
    pub bucket: String,
    /// User and password.
    pub credentials: Credentials,
    /// TLS; none is without.
    pub tls: Option<Tls>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// Our name in HELLO.
    pub agent: String,
}

/// Whether the password itself may be sent: nobody on the way can read it, or take the server's place. `verified` is
/// none without TLS.
fn may_send_password(address: &str, verified: Option<bool>) -> bool {
    is_loopback(host_of(address)) || verified == Some(true)
}

/// An authenticated connection with a bucket. It has one request at a time.
pub struct Client {
    env: Env,
    incoming: Incoming,
    outgoing: Outgoing,
    timeout: Duration,
    next_opaque: u32,
}

impl Client {
    /// Connects, authenticates with the server's strongest mechanism, and selects the bucket. The password itself is
    /// never sent without TLS, or where the certificate was not looked at, except to this machine. Fails if the server
    /// cannot be reached, refuses us, cannot prove that it knows the password, or has no such bucket.
    pub fn connect<'a>(
        env: &'a Env,
        options: &'a ClientOptions,
    ) -> LocalFuture<'a, Result<Client>> {
        Box::pin(async move {
            let tls = options.tls.as_ref().map(|tls| tls.config.clone());
            let connecting = Wire::connect(env, &options.address, tls);
            let silent = |_| Error::silent(&options.address, options.timeout);
            let wire = env.timeout(options.timeout, connecting).await.map_err(silent)??;
            let mut client = Client::over(env, wire, options.timeout);
            let agent = options.agent.clone().into();
            let features = vec![XATTR, SELECT_BUCKET, JSON];
            let hello = client.ask(0, Body::Hello { agent, features }).await?;
            if hello.is(Status::Busy) {
                let hint = Some("it may have too many; try again later");
                client.expect(&hello, || "the connection".to_owned(), hint)?;
            }
            client.authenticate(options).await?;
            let name = options.bucket.clone().into();
            let selected = client.ask(0, Body::SelectBucket { name }).await?;
            let hint = "is there such a bucket, and may this user use it?";
            client.expect(&selected, || format!("bucket \"{}\"", options.bucket), Some(hint))?;
            Ok(client)
        })
    }

    /// A client over a fresh connection.
    pub fn over(env: &Env, wire: Wire, timeout: Duration) -> Client {
        Client {
            env: env.clone(),
            incoming: wire.incoming,
            outgoing: wire.outgoing,
            timeout,
            next_opaque: 0,
        }
    }

    /// With whom.
    pub fn address(&self) -> &str {
        self.incoming.address()
    }

    /// Both ends, for streams.
    pub fn into_wire(self) -> Wire {
        Wire { incoming: self.incoming, outgoing: self.outgoing }
    }

    /// Sends a request and waits for the answer. Fails if no valid answer arrives in time. A status that refuses is no
    /// error here.
    pub fn ask(&mut self, vb: u16, body: Body) -> LocalFuture<'_, Result<Response>> {
        Box::pin(async move {
            self.next_opaque += 1;
            let opcode = body.opcode();
            self.outgoing.put(Request::new(self.next_opaque, vb, body).packet())?;
            self.outgoing.flush_in_time(&self.env).await?;
            self.response(self.next_opaque, opcode).await
        })
    }

    /// Waits for the answer to a request.
    async fn response(&mut self, opaque: u32, opcode: Opcode) -> Result<Response> {
        let (env, limit) = (self.env.clone(), self.timeout);
        let address = self.address().to_owned();
        let incoming = &mut self.incoming;
        let waiting = async {
            loop {
                let packet = incoming.expect("before it answered").await?;
                // Servers may send requests, too; this client ignores them.
                if packet.kind == Kind::Response {
                    let wrong = |source| Error::Protocol { address: address.clone(), source };
                    let response = Response::parse(packet).map_err(wrong)?;
                    if response.opaque == opaque && response.opcode == opcode {
                        return Ok(response);
                    }
                    if response.opaque == opaque {
                        let found = format!("an answer to {}", response.opcode.name());
                        return Err(Error::unexpected(&address, opcode.name(), found));
                    }
                }
            }
        };
        let waited = env.timeout(limit, waiting).await;
        waited.unwrap_or_else(|_| Err(Error::silent(self.address(), limit)))
    }

    fn expect(
        &self,
        response: &Response,
        what: impl Fn() -> String,
        hint: Option<&'static str>,
    ) -> Result<()> {
        match response.status {
            Ok(Status::Success) => Ok(()),
            status => Err(Error::refused(self.address(), what(), status, hint)),
        }
    }

    async fn authenticate(&mut self, options: &ClientOptions) -> Result<()> {
        let listed = self.ask(0, Body::SaslList).await?;
        let Answer::Value(names) = &listed.answer else {
            let found = format!("{:?}", listed.answer);
            return Err(Error::unexpected(self.address(), Opcode::SaslList.name(), found));
        };
        let names: Vec<&[u8]> = names.split(|byte| *byte == b' ').collect();
        let verified = options.tls.as_ref().map(|tls| tls.verified);
        let takes_password = may_send_password(&options.address, verified) || self.env.is_virtual();
        let usable = |mechanism: &Mechanism| {
            let safe = *mechanism != Mechanism::Plain || takes_password;
            safe && names.contains(&mechanism.name().as_bytes())
        };
        match Mechanism::ALL.into_iter().find(usable) {
            Some(mechanism) => self.authenticate_by(mechanism, &options.credentials).await,
            None => Err(Error::Status {
                address: self.address().to_owned(),
                what: "authentication without a readable password".to_owned(),
                status: String::from_utf8_lossy(&names.join(&b' ')).into_owned(),
                hint: Some(match options.tls {
                    None => "use couchbases://, so that the password is not readable on the way",
                    Some(_) => {
                        "with --insecure anybody may have answered; give --ca instead, or a user that has SCRAM"
                    }
                }),
            }),
        }
    }

    /// Authenticates by one mechanism. Fails if the server refuses, or with SCRAM cannot prove that it knows the
    /// password.
    pub fn authenticate_by<'a>(
        &'a mut self,
        mechanism: Mechanism,
        credentials: &'a Credentials,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let name: bytes::Bytes = mechanism.name().into();
            let what = || format!("user \"{}\" by {}", credentials.user, mechanism.name());
            let hint = Some("user or password is wrong");
            let Mechanism::Scram(hash) = mechanism else {
                let body = Body::SaslAuth { mechanism: name, data: plain(credentials).into() };
                let answered = self.ask(0, body).await?;
                return self.expect(&answered, what, hint);
            };
            let address = self.address().to_owned();
            let imposter = move |reason| Error::Imposter { address: address.clone(), reason };
            let mut scram = ScramClient::new(hash, credentials.clone(), nonce(&self.env));
            let body = Body::SaslAuth { mechanism: name.clone(), data: scram.first().into() };
            let challenge = self.ask(0, body).await?;
            if !challenge.is(Status::AuthContinue) {
                self.expect(&challenge, what, hint)?;
            }
            let Answer::Value(first) = challenge.answer else {
                return Err(imposter("it asked nothing"));
            };
            let answer = scram.answer(&first).map_err(&imposter)?;
            let answered =
                self.ask(0, Body::SaslStep { mechanism: name, data: answer.into() }).await?;
            self.expect(&answered, what, hint)?;
            let Answer::Value(last) = answered.answer else {
                return Err(imposter("it gave no proof"));
            };
            scram.check(&last).map_err(imposter)
        })
    }

    /// Reads a document: its value and its CAS. Fails as [`Client::ask`], and if the server refuses.
    pub async fn get(&mut self, vb: u16, key: &str) -> Result<Option<bytes::Bytes>> {
        let response = self.ask(vb, Body::Get { key: key.to_owned().into() }).await?;
        if response.is(Status::NotFound) {
            return Ok(None);
        }
        self.expect(&response, || format!("document \"{key}\""), None)?;
        match response.answer {
            Answer::Document { value, .. } => Ok(Some(value)),
            _ => Ok(Some(bytes::Bytes::new())),
        }
    }

    /// Writes a document; answers the status. Fails as [`Client::ask`].
    pub async fn set(
        &mut self,
        vb: u16,
        key: &str,
        value: bytes::Bytes,
    ) -> Result<std::result::Result<Status, u16>> {
        let key = key.to_owned().into();
        let write = Write { flags: 0, expiry: 0, key, value };
        Ok(self.ask(vb, Body::Set(write)).await?.status)
    }

    /// The statistics of a group, by their names. Fails as [`Client::each_stat`].
    pub fn stats<'a>(
        &'a mut self,
        group: &'a str,
    ) -> LocalFuture<'a, Result<BTreeMap<String, String>>> {
        Box::pin(async move {
            let mut all = BTreeMap::new();
            let take =
                |name: &str, value: &str| drop(all.insert(name.to_owned(), value.to_owned()));
            self.each_stat(group, take).await?;
            Ok(all)
        })
    }

    /// Hands each statistic of a group to `take`, its name and its value. All of them have to come within the time that
    /// one answer may take. Fails as [`Client::ask`], if the server refuses, and if there is no end of statistics.
    pub async fn each_stat(&mut self, group: &str, take: impl FnMut(&str, &str)) -> Result<()> {
        let (env, limit) = (self.env.clone(), self.timeout);
        let asked = env.timeout(limit, self.all_stats(group, take)).await;
        asked.unwrap_or_else(|_| Err(Error::silent(self.address(), limit)))
    }

    async fn all_stats(&mut self, group: &str, mut take: impl FnMut(&str, &str)) -> Result<()> {
        let mut response = self.ask(0, Body::Stat { group: group.to_owned().into() }).await?;
        let (mut count, mut bytes) = (0_usize, 0_usize);
        loop {
            let hint = response.is(Status::Access).then_some(STATS_HINT);
            self.expect(&response, || format!("statistics \"{group}\""), hint)?;
            let Answer::Stat { name, value } = response.answer else { return Ok(()) };
            if name.is_empty() {
                return Ok(());
            }
            (count, bytes) = (count + 1, bytes + name.len() + value.len());
            if count > STATS_MAX || bytes > STATS_BYTES_MAX {
                let found = format!("statistics without end: {count} in {bytes} bytes so far");
                return Err(Error::unexpected(self.address(), Opcode::Stat.name(), found));
            }
            take(&String::from_utf8_lossy(&name), &String::from_utf8_lossy(&value));
            response = self.response(self.next_opaque, Opcode::Stat).await?;
        }
    }

    /// The highest sequence numbers of active vbuckets. Fails as [`Client::ask`], and if the server refuses.
    pub fn active_seqnos(&mut self) -> LocalFuture<'_, Result<BTreeMap<u16, u64>>> {
        Box::pin(async move {
            let response = self.ask(0, Body::AllVbSeqnos { state: Some(1) }).await?;
            let unknown = response.is(Status::UnknownCommand) || response.is(Status::NotSupported);
            let hint = unknown.then_some("a server that does not know this has no DCP");
            self.expect(&response, || Opcode::AllVbSeqnos.name().to_owned(), hint)?;
            match response.answer {
                Answer::Seqnos(seqnos) => Ok(seqnos.into_iter().collect()),
                _ => Ok(BTreeMap::new()),
            }
        })
    }

    /// The failover log of a vbucket, newest first. Fails as [`Client::ask`], and if the server refuses.
    pub fn failover_log(&mut self, vb: u16) -> LocalFuture<'_, Result<Vec<FailoverEntry>>> {
        Box::pin(async move {
            match self.require(vb, Body::FailoverLog).await?.answer {
                Answer::FailoverLog(log) => Ok(log),
                _ => Ok(Vec::new()),
            }
        })
    }

    /// As [`Client::ask`], but a refusal is an error, too.
    pub fn require(&mut self, vb: u16, body: Body) -> LocalFuture<'_, Result<Response>> {
        Box::pin(async move {
            let opcode = body.opcode();
            let response = self.ask(vb, body).await?;
            self.expect(&response, || opcode.name().to_owned(), None)?;
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_goes_to_whom_we_know() {
        for (host, verified, may) in [
            ("cb.example.org", Some(true), true),
            ("cb.example.org", Some(false), false),
            ("cb.example.org", None, false),
            ("[::1]", None, true),
            ("localhost", Some(false), true),
            // Names that a configuration may hold, and that are looked up with their brackets.
            ("[localhost]", None, false),
            ("[localhost", None, false),
            ("[127.0.0.1]", None, false),
            ("[[::1]]", None, false),
        ] {
            let address = format!("{host}:11207");
            assert_eq!(may_send_password(&address, verified), may, "{address} {verified:?}");
        }
    }
}
