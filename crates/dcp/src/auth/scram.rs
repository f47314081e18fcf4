//! SCRAM (RFC 5802), without channel binding.

use std::cell::RefCell;
use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

use super::{Credentials, Hash};

/// Rounds of PBKDF2, as RFC 7677 has them at least.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("it is more than zero");
/// With fewer rounds, whoever sees a proof could try too many passwords: a server that asks for one may want just that.
/// Couchbase asks for 4000 and more.
const MIN_ITERATIONS: u32 = 1000;
/// The rounds of about a second, in which the thread does nothing else: a server that asks for more wants to keep its
/// client busy.
const MAX_ITERATIONS: u32 = 1_000_000;
/// `n,,` in base64: no channel binding.
const NO_BINDING: &str = "biws";

fn sign(hash: Hash, key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hash.hmac(), key), text).as_ref().to_vec()
}

/// Salted passwords that a thread's clients remember: a second connection saves the 4096 rounds (RFC 5802, section 3,
/// allows it).
const REMEMBERED: usize = 16;

/// The inputs of a salted password.
#[derive(Clone, PartialEq, Eq)]
struct Salting {
    hash: Hash,
    password: String,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl Salting {
    fn salted(&self) -> Vec<u8> {
        let mut out = vec![0; salted_bytes(self.hash)];
        let (algorithm, password) = (self.hash.pbkdf2(), self.password.as_bytes());
        pbkdf2::derive(algorithm, self.iterations, &self.salt, password, &mut out);
        out
    }

    /// The same, computed once on each thread.
    fn remembered(self) -> Vec<u8> {
        thread_local! {
            static KNOWN: RefCell<Vec<(Salting, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
        }
        KNOWN.with_borrow_mut(|known| {
            if let Some((_, salted)) = known.iter().find(|(of, _)| *of == self) {
                return salted.clone();
            }
            let salted = self.salted();
            known.truncate(REMEMBERED - 1);
            known.insert(0, (self, salted.clone()));
            salted
        })
    }
}

fn salted_bytes(hash: Hash) -> usize {
    hash.hmac().digest_algorithm().output_len()
}

/// A salted password, which the server computes once.
pub fn salted(hash: Hash, password: &str, salt: &[u8]) -> Vec<u8> {
    let (password, salt) = (password.to_owned(), salt.to_owned());
    Salting { hash, password, salt, iterations: ITERATIONS }.salted()
}

/// The client's proof and the server's signature over the messages.
fn prove(hash: Hash, salted: &[u8], messages: &str) -> (Vec<u8>, Vec<u8>) {
    let client_key = sign(hash, salted, b"Client Key");
    let stored_key = digest::digest(hash.hmac().digest_algorithm(), &client_key);
    let signature = sign(hash, stored_key.as_ref(), messages.as_bytes());
    let proof = client_key.iter().zip(signature).map(|(key, sign)| key ^ sign).collect();
    let server_key = sign(hash, salted, b"Server Key");
    (proof, sign(hash, &server_key, messages.as_bytes()))
}

/// The attributes of a message, `a=value`, in their order.
fn attributes(message: &str) -> impl Iterator<Item = (&str, &str)> {
    message.split(',').filter_map(|part| part.split_once('='))
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    attributes(message).find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// A user's name as SCRAM escapes it.
pub(crate) fn escaped(user: &str) -> String {
    user.replace('=', "=3D").replace(',', "=2C")
}

/// The client's side.
#[derive(Debug)]
pub struct ScramClient {
    hash: Hash,
    credentials: Credentials,
    nonce: String,
    /// The signature that the server has to send.
    expected: Option<Vec<u8>>,
}

impl ScramClient {
    /// One exchange; `nonce` is used once and has no comma.
    pub fn new(hash: Hash, credentials: Credentials, nonce: String) -> ScramClient {
        ScramClient { hash, credentials, nonce, expected: None }
    }

    fn first_bare(&self) -> String {
        format!("n={},r={}", escaped(&self.credentials.user), self.nonce)
    }

    /// The first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    /// The second message, to the server's first. Fails with what is wrong with the server's message.
    pub fn answer(&mut self, server_first: &[u8]) -> Result<String, &'static str> {
        let server_first =
            std::str::from_utf8(server_first).map_err(|_| "its message is no text")?;
        let nonce = attribute(server_first, "r").ok_or("its message has no nonce")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("its nonce does not go on from ours");
        }
        let salt = attribute(server_first, "s").and_then(|salt| STANDARD.decode(salt).ok());
        let salt = salt.ok_or("its message has no salt")?;
        let iterations = attribute(server_first, "i").and_then(|text| text.parse::<u32>().ok());
        let iterations = iterations
            .filter(|rounds| (MIN_ITERATIONS..=MAX_ITERATIONS).contains(rounds))
            .and_then(NonZeroU32::new)
            .ok_or("it has to ask for 1000 to 1000000 rounds of SCRAM")?;
        let bare = format!("c={NO_BINDING},r={nonce}");
        let messages = format!("{},{server_first},{bare}", self.first_bare());
        let password = self.credentials.password.clone();
        let salted = Salting { hash: self.hash, password, salt, iterations }.remembered();
        let (proof, expected) = prove(self.hash, &salted, &messages);
        self.expected = Some(expected);
        Ok(format!("{bare},p={}", STANDARD.encode(proof)))
    }

    /// Checks that the server knows the password, too. Fails with what is wrong with its last message.
    pub fn check(&self, server_final: &[u8]) -> Result<(), &'static str> {
        let server_final =
            std::str::from_utf8(server_final).map_err(|_| "its message is no text")?;
        let proof = attribute(server_final, "v").and_then(|text| STANDARD.decode(text).ok());
        let proof = proof.ok_or("it gave no proof")?;
        match &self.expected {
            Some(expected) if super::is_same(expected, &proof) => Ok(()),
            _ => Err("its proof is wrong"),
        }
    }
}

/// The server's side, after the client's first message.
#[derive(Debug)]
pub struct ScramServer {
    user: String,
    known: bool,
    proof: Vec<u8>,
    signature: Vec<u8>,
    /// The client's last message without its proof.
    bare: String,
    /// The server's first message.
    challenge: String,
}

impl ScramServer {
    /// Reads the client's first message. `salted_of` gives the [`salted`] passwords of users. Unknown users fail only
    /// in [`ScramServer::finish`], after equal work, so that timing reveals nothing. None if the message is malformed.
    pub fn begin(
        hash: Hash,
        client_first: &[u8],
        nonce: &str,
        salt: &[u8],
        salted_of: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Option<ScramServer> {
        let client_first = std::str::from_utf8(client_first).ok()?;
        let bare = client_first.strip_prefix("n,,").or(client_first.strip_prefix("y,,"))?;
        let binding = STANDARD.encode(&client_first[..3]);
        let user = attribute(bare, "n")?.replace("=2C", ",").replace("=3D", "=");
        let nonce = format!("{}{nonce}", attribute(bare, "r").filter(|nonce| !nonce.is_empty())?);
        let challenge = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(salt));
        let last = format!("c={binding},r={nonce}");
        let messages = format!("{bare},{challenge},{last}");
        let salted = salted_of(&user);
        let known = salted.is_some();
        let salted = salted.unwrap_or_else(|| vec![0; salted_bytes(hash)]);
        let (proof, signature) = prove(hash, &salted, &messages);
        Some(ScramServer { user, known, proof, signature, bare: last, challenge })
    }

    /// The server's first message.
    pub fn challenge(&self) -> &str {
        &self.challenge
    }

    /// Checks the client's last message. Returns the user and the server's last message; none if the client does not
    /// know the password.
    pub fn finish(self, client_final: &[u8]) -> Option<(String, String)> {
        let client_final = std::str::from_utf8(client_final).ok()?;
        let (bare, proof) = client_final.rsplit_once(",p=")?;
        let proof = STANDARD.decode(proof).ok()?;
        let right = bare == self.bare && super::is_same(&self.proof, &proof);
        (right && self.known).then(|| (self.user, format!("v={}", STANDARD.encode(self.signature))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(hash: Hash, user: &str, password: &str, nonce: &str) -> ScramClient {
        let credentials = Credentials { user: user.to_owned(), password: password.to_owned() };
        ScramClient::new(hash, credentials, nonce.to_owned())
    }

    /// The examples of RFC 5802, section 5, and of RFC 7677, section 3.
    #[test]
    fn follows_the_examples_of_the_standards() {
        for (hash, nonce, first, last, end) in [
            (
                Hash::Sha1,
                "fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ),
            (
                Hash::Sha256,
                "rOprNGfwEbeRWgbNEkqO",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ),
        ] {
            let mut client = client(hash, "user", "pencil", nonce);
            assert_eq!(client.first(), format!("n,,n=user,r={nonce}"));
            assert_eq!(client.answer(first.as_bytes()).unwrap(), last);
            client.check(end.as_bytes()).unwrap();
            assert!(client.check(b"v=AAAA").is_err());
            let salt = STANDARD.decode(attribute(first, "s").unwrap()).unwrap();
            let theirs = attribute(first, "r").unwrap().strip_prefix(nonce).unwrap();
            let known = |user: &str| (user == "user").then(|| salted(hash, "pencil", &salt));
            let server = |first: &str| {
                ScramServer::begin(hash, first.as_bytes(), theirs, &salt, known).unwrap()
            };
            assert_eq!(server(&client.first()).challenge(), first);
            let finished = server(&client.first()).finish(last.as_bytes());
            assert_eq!(finished, Some(("user".to_owned(), end.to_owned())));
        }
    }

    #[test]
    fn only_who_knows_the_password_gets_in() {
        let known = |user: &str| (user == "a,b=c").then(|| salted(Hash::Sha512, "right", b"salt"));
        for (user, given, gets_in) in [
            ("a,b=c", "right", true),
            ("a,b=c", "wrong", false),
            ("nobody", "right", false),
            ("nobody", "", false),
        ] {
            let mut client = client(Hash::Sha512, user, given, "mine");
            let first = client.first();
            let server =
                ScramServer::begin(Hash::Sha512, first.as_bytes(), "theirs", b"salt", known);
            let server = server.unwrap();
            let last = client.answer(server.challenge().as_bytes()).unwrap();
            let finished = server.finish(last.as_bytes());
            assert_eq!(finished.is_some(), gets_in, "{user} {given}");
            if let Some((name, end)) = finished {
                assert_eq!(name, user);
                client.check(end.as_bytes()).unwrap();
            }
        }
    }

    #[test]
    fn wrong_messages_are_refused() {
        let none = |_: &str| None;
        for first in [&b""[..], b"n,,", b"p=tls-unique,,n=a,r=b", b"n,,n=a", b"n,,n=a,r=", b"\xff"]
        {
            assert!(ScramServer::begin(Hash::Sha1, first, "x", b"s", none).is_none(), "{first:?}");
        }
        for first in [
            "", "r=mine,s=AAAA,i=4096", "r=other,s=AAAA,i=4096", "r=minex,s=?,i=4096",
            "r=minex,s=AAAA,i=0", "r=minex,s=AAAA,i=1", "r=minex,s=AAAA,i=999",
            "r=minex,s=AAAA,i=1000001", "r=minex,s=AAAA,i=4000000000",
        ] {
            let answer = client(Hash::Sha1, "a", "b", "mine").answer(first.as_bytes());
            assert!(answer.is_err(), "{first}");
        }
        client(Hash::Sha1, "a", "b", "mine").answer(b"r=minex,s=AAAA,i=1000").unwrap();
        let server = || {
            let known = |_: &str| Some(salted(Hash::Sha1, "b", b"s"));
            ScramServer::begin(Hash::Sha1, b"n,,n=a,r=mine", "x", b"s", known).unwrap()
        };
        for last in [&b""[..], b"c=biws,r=minex", b"c=biws,r=minex,p=!", b"c=eSws,r=minex,p=AAAA"] {
            assert_eq!(server().finish(last), None, "{last:?}");
        }
    }

    #[test]
    fn what_is_remembered_is_what_would_be_made() {
        let of = |password: &str, salt: &[u8]| Salting {
            hash: Hash::Sha256,
            password: password.to_owned(),
            salt: salt.to_owned(),
            iterations: NonZeroU32::MIN,
        };
        for round in 0..2 {
            for n in 0..2 * REMEMBERED as u8 {
                for password in ["a", "b"] {
                    let salting = of(password, &[n]);
                    assert_eq!(salting.clone().remembered(), salting.salted(), "{round} {n}");
                }
            }
        }
    }
}
