//! Why a host was not reached, and what to do.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use rustls::CertificateError;

use super::LiveClient;
use crate::Error;
use crate::http::{Address, HttpClient, TlsOptions};

/// How long a host may take to answer in the protocol that was not meant.
const OTHER_PROTOCOL: Duration = Duration::from_secs(3);
const CERTIFICATE_WANTED: &str =
    "asks for a client certificate that it knows; give it with --cert FILE and --key FILE";

impl LiveClient {
    /// Why a connection failed. The usual mistake is the wrong protocol, so the other one is tried.
    pub(super) async fn why_not(&self, address: &Address, source: io::Error) -> Error {
        let of_tls = source.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        if let Some(why) = of_tls.and_then(|error| untrusted(error, &address.host)) {
            return Error::Peer { address: address.to_string(), why };
        }
        // In TLS 1.3 a server refuses the client certificate only after the handshake is complete for the client.
        if source.to_string().contains("CertificateRequired") {
            return Error::Peer {
                address: address.to_string(),
                why: CERTIFICATE_WANTED.to_owned(),
            };
        }
        let is_refused = matches!(
            source.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::TimedOut
        );
        if !is_refused && !self.env.is_virtual() && self.speaks_the_other(address).await {
            let why = if address.tls {
                "answers in plain HTTP where TLS was spoken; write http://"
            } else {
                "speaks TLS where plain HTTP was spoken; write https:// (and --ca FILE if its authority is your own)"
            };
            return Error::Peer { address: address.to_string(), why: why.to_owned() };
        }
        // hyper's words; a node's transport port answers "This is not an HTTP port".
        if source.to_string().contains("invalid HTTP version") {
            let why = "speaks no HTTP: it may be the port at which nodes speak to each other (9300); write where REST \
                       does, as http://HOST:9200";
            return Error::Peer { address: address.to_string(), why: why.to_owned() };
        }
        Error::Connection { address: address.to_string(), source }
    }

    /// Whether a host that is addressed with TLS answers in plain HTTP, or the reverse. No credentials are sent.
    async fn speaks_the_other(&self, address: &Address) -> bool {
        let client = HttpClient::new(self.env.clone()).with_answer_bytes_max(1 << 20);
        let client = if address.tls {
            client
        } else {
            let anyone = TlsOptions { insecure: true, ..TlsOptions::default() };
            let Ok(config) = anyone.config() else { return false };
            client.with_tls(config)
        };
        let authority = address.authority();
        let asking = client.send(&authority, "GET", "/", Bytes::new());
        matches!(
            self.env.timeout(self.within_look(OTHER_PROTOCOL.min(self.timeout)), asking).await,
            Ok(Ok(_))
        )
    }
}

/// Why one side of a TLS connection does not trust the other, and what to do; none for other errors of TLS.
fn untrusted(error: &rustls::Error, host: &str) -> Option<String> {
    use rustls::{AlertDescription as Alert, Error as Tls};
    Some(match error {
        Tls::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "shows a certificate that none of the trusted authorities signed; give its authority's \
             certificate with --ca FILE"
                .to_owned()
        }
        Tls::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!(
            "shows a certificate that is not for \"{host}\"; use the name that it was made for"
        ),
        Tls::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "shows a certificate that has expired; renew it, or say --insecure to look regardless"
            .to_owned(),
        // webpki's own error, which rustls gives no name of its own; no --ca helps.
        Tls::InvalidCertificate(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "shows the certificate of an authority (CA:TRUE) as its own, which is not accepted; give it one without \
             that, or say --insecure to look regardless"
                .to_owned()
        }
        Tls::InvalidCertificate(other) => {
            format!(
                "shows a certificate that cannot be trusted ({other}); give its authority with --ca FILE"
            )
        }
        Tls::AlertReceived(
            Alert::CertificateRequired | Alert::BadCertificate | Alert::UnknownCA,
        ) => CERTIFICATE_WANTED.to_owned(),
        _ => return None,
    })
}
