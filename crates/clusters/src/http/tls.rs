//! TLS to live clusters: which authorities are trusted, and the certificate that is shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::{Error, Result};

/// How TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates of authorities to trust, PEM, in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client certificate, PEM, with the certificates that sign it.
    pub cert: Option<PathBuf>,
    /// The key of the client certificate, PEM.
    pub key: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
}

impl TlsOptions {
    /// The configuration for connections. Reads the files, and the system's certificate store only where it is needed.
    /// Fails if a file cannot be read or does not hold what it should, or the system has no store.
    pub fn config(&self) -> Result<Arc<ClientConfig>> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Tls(format!("cannot set up TLS: {error}")))?;
        let builder = if self.insecure {
            let verifier = Arc::new(TrustAnyone(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let config = match (&self.cert, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let own = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    Error::Tls(format!("{}: no private key in it: {error}", key.display()))
                })?;
                builder.with_client_auth_cert(certificates(cert)?, own).map_err(|error| {
                    let (cert, key) = (cert.display(), key.display());
                    Error::Tls(format!("{cert} and {key} do not belong together: {error}"))
                })?
            }
            _ => {
                return Err(Error::Tls("--cert and --key are given together or not at all".into()));
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.ca {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    Error::Tls(format!(
                        "{}: not a certificate of an authority: {error}",
                        path.display()
                    ))
                })?;
            }
            return Ok(roots);
        }
        if add_systems_own(&mut roots) == 0 {
            let text = "this system has no store of trusted authorities; give the cluster's with --ca FILE";
            return Err(Error::Tls(text.to_owned()));
        }
        Ok(roots)
    }
}

/// How many authorities this system trusts. Without one no `https` cluster can be reached but with `--ca`.
pub fn trusted_authorities() -> usize {
    add_systems_own(&mut RootCertStore::empty())
}

fn add_systems_own(roots: &mut RootCertStore) -> usize {
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs).0
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let shown = path.display();
    let read = |error| {
        let hint = "give the file of the authority that signed the cluster's, as --ca http_ca.crt";
        Error::Tls(format!("{shown}: cannot read certificates: {error}; {hint}"))
    };
    let found: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
        .map_err(read)?
        .collect::<Result<_, _>>()
        .map_err(read)?;
    if found.is_empty() {
        return Err(Error::Tls(format!("{shown}: no certificate in it (BEGIN CERTIFICATE, PEM)")));
    }
    Ok(found)
}

/// `--insecure`: the certificate is not looked at; signatures still are.
#[derive(Debug)]
struct TrustAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
