//! How fast each corpus is generated on one core, and how large its documents are.
//!
//! `cargo bench -p lab --bench corpus_speed`

use std::time::Instant;

use lab::corpus::Corpus;

fn main() {
    println!(
        "{:<10} {:>12} {:>9} {:>11} {:>11}",
        "corpus", "docs/s", "MB/s", "bytes/doc", "original"
    );
    for corpus in Corpus::ALL {
        let mut out = Vec::new();
        // The first documents build the tables.
        corpus.documents(42, 0, 100, &mut out);
        let chunk = (4_000_000.0 / corpus.mean_bytes()) as u64;
        let (mut documents, mut bytes) = (0, 0);
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < 1.0 {
            out.clear();
            corpus.documents(42, documents, chunk, &mut out);
            documents += chunk;
            bytes += out.len();
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{:<10} {:>12.0} {:>9.0} {:>11.2} {:>11.2}",
            corpus.name(),
            documents as f64 / seconds,
            bytes as f64 / 1e6 / seconds,
            bytes as f64 / documents as f64,
            corpus.mean_bytes(),
        );
    }
}
