//! An authority of a test's own.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};

/// An authority and a certificate for localhost that it signed, as `ca.pem`, `cert.pem` and `key.pem`.
pub struct Authority {
    dir: tempfile::TempDir,
    /// The authority's certificate.
    pub certificate: CertificateDer<'static>,
    /// Of a server with the certificate that it signed.
    pub config: Arc<ServerConfig>,
    /// The same, and clients need one, too.
    pub demanding: Arc<ServerConfig>,
    /// Of a server with the authority's own certificate, as `openssl req -x509` makes it.
    pub of_authority: Arc<ServerConfig>,
}

impl Authority {
    /// A new one, which nobody trusts yet.
    #[expect(clippy::new_without_default, reason = "each is another")]
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca_secret = ca_key.serialize_pem();
        let ca = CertifiedIssuer::self_signed(params, ca_key).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let own = names.signed_by(&key, &ca).unwrap();
        let files = [("ca", ca.pem()), ("cert", own.pem()), ("key", key.serialize_pem())];
        for (name, text) in files {
            std::fs::write(dir.path().join(format!("{name}.pem")), text).unwrap();
        }
        let certificate = ca.der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let roots = Arc::new(roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let config = |verifier, shown: &CertificateDer<'static>, secret: &str| {
            let secret = PrivateKeyDer::from_pem_slice(secret.as_bytes()).unwrap();
            let builder = ServerConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_client_cert_verifier(verifier);
            Arc::new(builder.with_single_cert(vec![shown.clone()], secret).unwrap())
        };
        let anyone = WebPkiClientVerifier::no_client_auth;
        let secret = key.serialize_pem();
        let demanding = config(verifier.build().unwrap(), own.der(), &secret);
        let of_authority = config(anyone(), ca.der(), &ca_secret);
        let config = config(anyone(), own.der(), &secret);
        Authority { dir, certificate, config, demanding, of_authority }
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("plain names").to_owned()
    }
}
