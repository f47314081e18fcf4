//! Draining a bucket, in both worlds: everything comes, nothing is kept, no rate is passed.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, set, settings};
use dcp::Error;
use dcp::client::{ClientOptions, Tls};
use dcp::codec::VbucketState;
use dcp::drain::{Drain, DrainReport, DrainSettings};
use world::Env;

testbed::both_worlds!(
    everything_comes_over_each_connection,
    a_rate_is_not_passed,
    what_is_written_from_now_on_is_followed,
    a_vbucket_that_moves_is_named,
    nothing_to_drain_is_an_error;
    simulated: a_slow_drain_is_not_taken_for_gone,
);

fn drain_settings() -> DrainSettings {
    DrainSettings::new(64 << 10, "drain")
}

async fn drained(env: &Env, options: &ClientOptions, settings: &DrainSettings) -> DrainReport {
    let mut drain = Drain::start(env, options, settings).await.unwrap();
    drain.finish().await.unwrap();
    drain.report()
}

async fn everything_comes_over_each_connection(env: Env) {
    let bench = Bench::start(&env, settings(10, 2 << 20)).await;
    bench.fill(0..5000, 300).await;
    let before = bench.bucket.seqnos(None);
    for connections in [1, 3, 64] {
        let settings = DrainSettings { connections, ..drain_settings() };
        let report = drained(&env, &bench.options(), &settings).await;
        assert_eq!(report.connections.len(), usize::from(connections.min(10)));
        assert_eq!(report.items(), 5000);
        assert!(report.bytes() > 5000 * 300);
        assert_eq!((report.broken().count(), report.not_active.len()), (0, 0));
        for connection in &report.connections {
            for (vb, of) in &connection.vbuckets {
                assert_eq!((of.items, Some(of.seqno)), (500, bench.bucket.high_seqno(*vb)));
            }
        }
        let json = report.json(false);
        assert_eq!(json["items"], 5000);
        assert_eq!(json["connections"][0]["vbuckets"][0]["ended"], "ok");
    }
    // A drain only reads.
    assert_eq!(bench.bucket.seqnos(None), before);
    let some = DrainSettings { vbuckets: Some(vec![1, 7, 99]), ..drain_settings() };
    let report = drained(&env, &bench.options(), &some).await;
    assert_eq!((report.items(), report.not_active), (1000, vec![99]));
}

async fn a_rate_is_not_passed(env: Env) {
    let bench = Bench::start(&env, settings(4, 16 << 20)).await;
    bench.fill(0..1000, 400).await;
    let settings =
        DrainSettings { rate_bytes_per_s: Some(1e6), connections: 2, ..drain_settings() };
    let report = drained(&env, &bench.options(), &settings).await;
    assert_eq!(report.items(), 1000);
    let bytes_per_s = report.bytes() as f64 / report.seconds;
    assert!(bytes_per_s <= 1e6, "{bytes_per_s} bytes/s");
}

/// What comes in the time of two NOOPs is less than what a producer sends at once.
async fn a_slow_drain_is_not_taken_for_gone(env: Env) {
    let bench = Bench::start(&env, settings(4, 16 << 20)).await;
    bench.fill(0..500, 1000).await;
    let rate = 5000.0;
    let settings =
        DrainSettings { rate_bytes_per_s: Some(rate), window_bytes: 1 << 20, ..drain_settings() };
    let report = drained(&env, &bench.options(), &settings).await;
    assert_eq!((report.items(), report.broken().count()), (500, 0));
    let least_s = report.bytes() as f64 / rate;
    assert!((least_s..1.2 * least_s).contains(&report.seconds), "{} s", report.seconds);
}

async fn what_is_written_from_now_on_is_followed(env: Env) {
    let bench = Bench::start(&env, settings(4, 16 << 20)).await;
    bench.fill(0..100, 100).await;
    let settings = DrainSettings { follow: true, ..drain_settings() };
    let mut drain = Drain::start(&env, &bench.options(), &settings).await.unwrap();
    let soon = Duration::from_millis(300);
    assert!(env.timeout(soon, drain.finish()).await.is_err(), "it has no end");
    assert_eq!(drain.report().items(), 0);
    for n in 0..50 {
        set(&bench.bucket, 2, &format!("new{n}"), "x").unwrap();
    }
    for _ in 0..200 {
        assert!(env.timeout(soon, drain.finish()).await.is_err(), "it has no end");
        if drain.report().items() >= 50 {
            break;
        }
    }
    assert_eq!(drain.report().items(), 50);
}

async fn a_vbucket_that_moves_is_named(env: Env) {
    let bench = Bench::start(&env, settings(4, 16 << 20)).await;
    let settings = DrainSettings { follow: true, ..drain_settings() };
    let mut drain = Drain::start(&env, &bench.options(), &settings).await.unwrap();
    let soon = Duration::from_millis(300);
    assert!(env.timeout(soon, drain.finish()).await.is_err());
    let mut client = bench.client().await;
    while client.stats("dcp").await.unwrap()["eq_dcpq:drain-1:num_streams"] != "4" {
        env.sleep(soon).await;
    }
    (0..4).for_each(|vb| bench.bucket.set_state(vb, VbucketState::Dead).unwrap());
    drain.finish().await.unwrap();
    let report = drain.report();
    let broken: Vec<_> = report.broken().collect();
    assert_eq!(broken[3], (3, "the vbucket moved or changed its state"));
}

async fn nothing_to_drain_is_an_error(env: Env) {
    let bench = Bench::start(&env, settings(4, 16 << 20)).await;
    (0..4).for_each(|vb| bench.bucket.set_state(vb, VbucketState::Replica).unwrap());
    let refused = Drain::start(&env, &bench.options(), &drain_settings()).await.err().unwrap();
    assert!(matches!(refused, Error::Settings(_)), "{refused}");
    let nobody = ClientOptions { address: nowhere(&env), ..bench.options() };
    let refused = Drain::start(&env, &nobody, &drain_settings()).await.err().unwrap();
    assert!(refused.to_string().starts_with("connect to"), "{refused}");
}

/// An address at which nobody listens.
fn nowhere(env: &Env) -> String {
    match env.is_virtual() {
        true => "main:1".to_owned(),
        false => format!("127.0.0.1:{}", testbed::free_port()),
    }
}

/// Speaks TLS in front of a server that does not.
async fn tls_in_front(
    env: &Env,
    to: String,
) -> (u16, rustls::pki_types::CertificateDer<'static>, world::Task<()>) {
    let authority = testbed::tls::Authority::new();
    let acceptor = tokio_rustls::TlsAcceptor::from(authority.config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let env_of = env.clone();
    let serving = env.spawn("speaks TLS", async move {
        let mut open = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, to) = (acceptor.clone(), to.clone());
            open.push(env_of.spawn("forwards", async move {
                // Clients that do not trust us go away.
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                let mut inside = tokio::net::TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            }));
        }
    });
    (port, authority.certificate, serving)
}

#[test]
fn tls_is_spoken_with_whom_we_trust() {
    world::real_world::run(7, async |env| {
        let bench = Bench::start(&env, settings(4, 16 << 20)).await;
        bench.fill(0..200, 300).await;
        let (port, certificate, _task) =
            tls_in_front(&env, bench.server.address().to_owned()).await;
        let trusting = |certificates: Vec<rustls::pki_types::CertificateDer<'static>>| {
            let mut roots = rustls::RootCertStore::empty();
            certificates.into_iter().for_each(|one| roots.add(one).unwrap());
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            ClientOptions {
                address: format!("localhost:{port}"),
                tls: Some(Tls { config: Arc::new(config), verified: true }),
                ..bench.options()
            }
        };
        let report = drained(&env, &trusting(vec![certificate]), &drain_settings()).await;
        assert_eq!(report.items(), 200);
        let stranger = Drain::start(&env, &trusting(Vec::new()), &drain_settings()).await;
        let said = stranger.err().unwrap().to_string();
        assert!(said.starts_with("speak TLS with localhost"), "{said}");
    });
}
