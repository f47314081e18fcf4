//! Peer recovery over plain loopback, checksums included, against bytes through a bare socket and into a bare file.
//!
//! `cargo bench -p narrows --bench peer_recovery`; NARROWS_DOCUMENTS sets the size, NARROWS_LAPS how often.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use clusters::{Clusters, EmbeddedClusters};
use lab::corpus::Corpus;
use serde_json::{Value, json};
use testbed::bench::Table;

const TABLE: Table = Table {
    page: "peer_recovery",
    name: "measured",
    columns: &[
        "setting", "MB", "files, MB/s", "of a bare socket", "whole, MB/s", "window, MB",
        "memory above idle, MB",
    ],
};

fn main() {
    let documents = common::sized("NARROWS_DOCUMENTS", 12_000_000);
    let laps = common::sized("NARROWS_LAPS", 3);
    let socket = bare_socket();
    TABLE.begin();
    let bare = |name: &str, rate: f64| {
        TABLE.row(&[name, "", &format!("{:.0}", rate / 1e6), "", "", "", ""]);
    };
    bare("a bare socket over loopback", socket);
    world::real_world::run(1, async |env| {
        let mut target = common::start(&env, &[("c", 2)], None).await;
        common::create(&target, "c", Corpus::Geopoint, 1).await;
        common::index(&target, "c", Corpus::Geopoint, documents, 4, 5000).await;
        // Beside a merge it would be the merge that is measured.
        common::settle(&target, "c").await;
        for lap in 1..=laps {
            bare(&format!("lap {lap}: a bare file, synced"), bare_file());
            for (name, scheduler, chunk) in [
                ("adaptive", "adaptive", "512kb"),
                ("512 KB x 2 (the field's default)", "file_window", "512kb"),
                ("512 KB x 1", "sequential", "512kb"),
            ] {
                let settings = json!({ "persistent": {
                    "indices.recovery.max_bytes_per_sec": "-1",
                    "indices.recovery.chunk_size": chunk,
                    "narrows.recovery.scheduler": scheduler,
                } });
                common::ask(&target, "c", "PUT", "/_cluster/settings", settings).await;
                recover(&target, &env, name, socket).await;
            }
        }
        target.stop().await;
    });
}

async fn recover(target: &EmbeddedClusters, env: &world::Env, name: &str, socket: f64) {
    let before = common::anonymous(target, "c").await;
    let replicas = |n: u32| json!({ "index.number_of_replicas": n });
    common::ask(target, "c", "PUT", "/a/_settings", replicas(1)).await;
    let mut peak = before;
    let row = loop {
        env.sleep(Duration::from_millis(25)).await;
        peak = peak.max(common::anonymous(target, "c").await);
        let answer = common::ask(target, "c", "GET", "/a/_recovery", Value::Null).await;
        let rows = answer["a"]["shards"].as_array().cloned().unwrap_or_default();
        let peer = rows.into_iter().find(|row| row["type"] == "PEER");
        if let Some(row) = peer.filter(|row| row["stage"] == "DONE") {
            break row;
        }
    };
    let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    let bytes = number("/index/size/recovered_in_bytes");
    let files_s = number("/index/total_time_in_millis") / 1e3;
    let total_s = number("/total_time_in_millis") / 1e3;
    let mb = |bytes: f64| format!("{:.1}", bytes / 1e6);
    TABLE.row(&[
        name.to_owned(),
        mb(bytes),
        mb(bytes / files_s),
        format!("{:.2}", bytes / files_s / socket),
        mb(bytes / total_s),
        mb(number("/narrows/in_flight_bytes_max")),
        mb(peak.saturating_sub(before) as f64),
    ]);
    common::ask(target, "c", "PUT", "/a/_settings", replicas(0)).await;
    env.sleep(Duration::from_millis(500)).await;
}

/// Bytes a second that one connection over loopback carries, without anything else.
fn bare_socket() -> f64 {
    const BYTES: usize = 2 << 30;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let sender = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it connects");
        let piece = vec![7u8; 1 << 20];
        for _ in 0..BYTES / piece.len() {
            stream.write_all(&piece).expect("it is sent");
        }
    });
    let (mut stream, _) = listener.accept().expect("it is accepted");
    let mut buffer = vec![0u8; 1 << 20];
    let began = Instant::now();
    while stream.read(&mut buffer).expect("it is read") > 0 {}
    sender.join().expect("it ends");
    BYTES as f64 / began.elapsed().as_secs_f64()
}

/// Bytes a second that one thread writes into a new file, the sync at the end included.
fn bare_file() -> f64 {
    const BYTES: usize = 600 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let piece = vec![7u8; 1 << 20];
    let began = Instant::now();
    let mut file = std::fs::File::create(dir.path().join("bare")).expect("a file");
    for _ in 0..BYTES / piece.len() {
        file.write_all(&piece).expect("it is written");
    }
    file.sync_all().expect("it is synced");
    BYTES as f64 / began.elapsed().as_secs_f64()
}
