//! The session of a connection: its user, the features agreed on, its bucket.

use std::collections::BTreeMap;

use ring::hmac;

use super::shared::Shared;
use crate::auth::{
    Credentials, Hash, Mechanism, ScramServer, escaped, is_same, nonce, parse_plain, salted,
};
use crate::bucket::Bucket;
use crate::codec::{Answer, Body, MAX_BODY_BYTES, Status};

/// HELLO: errors may be extended by JSON, and the error map is asked for.
const XERROR: u16 = 0x07;
/// HELLO: the client chooses a bucket.
const SELECT_BUCKET: u16 = 0x08;
/// HELLO: documents may be marked as JSON.
const JSON: u16 = 0x0b;
/// Features that are granted on request. Compression and collections are not: values and keys stay as they are sent.
const GRANTED: [u16; 3] = [XERROR, SELECT_BUCKET, JSON];

/// The largest body of a packet before authentication: a stranger must not fill the memory.
const STRANGER_BODY_BYTES: usize = 64 << 10;

/// The session of one connection.
#[derive(Default)]
pub(super) struct Session {
    user: Option<String>,
    scram: Option<ScramServer>,
    bucket: Option<Bucket>,
    /// The connection ends once its answers are sent.
    pub leaves: bool,
}

impl Session {
    /// The bucket that it uses.
    pub fn bucket(&self) -> Result<&Bucket, Status> {
        match &self.user {
            None => Err(Status::Access),
            Some(_) => self.bucket.as_ref().ok_or(Status::NoBucket),
        }
    }

    /// Whether it is known who the client is.
    pub fn is_authenticated(&self) -> bool {
        self.user.is_some()
    }

    /// The largest body that its next packet may have.
    pub fn max_body_bytes(&self) -> usize {
        if self.is_authenticated() { MAX_BODY_BYTES } else { STRANGER_BODY_BYTES }
    }

    /// Whether the request is allowed: before authentication, only a few are.
    pub fn admits(&self, body: &Body) -> bool {
        let open = matches!(
            body,
            Body::Hello { .. }
                | Body::SaslList
                | Body::SaslAuth { .. }
                | Body::SaslStep { .. }
                | Body::ErrorMap { .. }
                | Body::Version
                | Body::KvNoop
                | Body::Quit
        );
        open || self.is_authenticated()
    }

    /// Answers requests about the session; none if the request is about something else.
    pub fn answer(&mut self, shared: &Shared, body: &Body) -> Option<(Status, Answer)> {
        let answer = match body {
            Body::Hello { features, .. } => {
                let granted = GRANTED.into_iter().filter(|feature| features.contains(feature));
                (Status::Success, Answer::Features(granted.collect()))
            }
            Body::SaslList => {
                let names = Mechanism::ALL.map(Mechanism::name).join(" ");
                (Status::Success, Answer::Value(names.into()))
            }
            Body::SaslAuth { mechanism, data } => self.authenticate(shared, mechanism, data),
            Body::SaslStep { data, .. } => self.go_on(shared, data),
            Body::SelectBucket { name } => (self.select(shared, name), Answer::Empty),
            _ => return None,
        };
        Some(answer)
    }

    fn authenticate(&mut self, shared: &Shared, mechanism: &[u8], data: &[u8]) -> (Status, Answer) {
        self.user = None;
        self.bucket = None;
        let users = &shared.settings.users;
        match Mechanism::of(mechanism) {
            None => (Status::NotSupported, Answer::Empty),
            Some(Mechanism::Plain) => {
                let Some((user, password)) = parse_plain(data) else {
                    return (Status::Invalid, Answer::Empty);
                };
                let is_his = |known: &&Credentials| {
                    // Both are always compared, so that timing reveals nothing of which was wrong.
                    is_same(known.user.as_bytes(), user)
                        & is_same(known.password.as_bytes(), password)
                };
                let found = users.iter().find(is_his).map(|known| known.user.clone());
                self.admit(shared, found, Answer::Empty)
            }
            Some(Mechanism::Scram(hash)) => {
                let salted = |name: &str| shared.salted.get(&(hash, name.to_owned())).cloned();
                let salt = salt_of(&shared.secret, name_in(data));
                let nonce = nonce(&shared.env);
                let begun = ScramServer::begin(hash, data, &nonce, &salt, salted);
                let Some(scram) = begun else { return (Status::Invalid, Answer::Empty) };
                let challenge = Answer::Value(scram.challenge().to_owned().into());
                self.scram = Some(scram);
                (Status::AuthContinue, challenge)
            }
        }
    }

    fn go_on(&mut self, shared: &Shared, data: &[u8]) -> (Status, Answer) {
        let Some(scram) = self.scram.take() else { return (Status::Invalid, Answer::Empty) };
        match scram.finish(data) {
            Some((user, proof)) => self.admit(shared, Some(user), Answer::Value(proof.into())),
            None => self.admit(shared, None, Answer::Empty),
        }
    }

    fn admit(&mut self, shared: &Shared, user: Option<String>, answer: Answer) -> (Status, Answer) {
        self.user = user;
        if self.user.is_some() {
            return (Status::Success, answer);
        }
        shared.count(|stats| stats.auth_failures += 1);
        (Status::AuthError, Answer::Empty)
    }

    fn select(&mut self, shared: &Shared, name: &[u8]) -> Status {
        let name = std::str::from_utf8(name).ok();
        match name.and_then(|name| shared.buckets.get(name)) {
            Some(bucket) => {
                self.bucket = Some(bucket.clone());
                Status::Success
            }
            // As servers do: nobody learns which buckets exist.
            None => Status::Access,
        }
    }
}

/// The name in a client's first message, still escaped.
fn name_in(data: &[u8]) -> &[u8] {
    let mut parts = data.split(|byte| *byte == b',');
    parts.find_map(|part| part.strip_prefix(b"n=")).unwrap_or_default()
}

/// The salt of a user: always the same, whether the user exists or not.
fn salt_of(secret: &hmac::Key, escaped_name: &[u8]) -> [u8; 16] {
    let tag = hmac::sign(secret, escaped_name);
    tag.as_ref().first_chunk().copied().unwrap_or_default()
}

/// The salted passwords of all users, by hash and name.
pub(super) fn salted_passwords(
    secret: &hmac::Key,
    users: &[Credentials],
) -> BTreeMap<(Hash, String), Vec<u8>> {
    let each = users.iter().flat_map(|user| Hash::ALL.map(|hash| (user, hash)));
    let salted = each.map(|(Credentials { user, password }, hash)| {
        let salt = salt_of(secret, escaped(user).as_bytes());
        ((hash, user.clone()), salted(hash, password, &salt))
    });
    salted.collect()
}
