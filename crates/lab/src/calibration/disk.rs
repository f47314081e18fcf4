//! The disk: in elapsed time, past the page cache where the system lets us.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use super::measurement::{Measurement, named};
use crate::error::{Error, Result};

const PIECE_BYTES: usize = 1 << 20;
/// Pieces of the file that is written and read.
const FILE_PIECES: u64 = 128;
const SMALL_BYTES: usize = 4 << 10;
const SMALL_READS: u64 = 256;
const SYNCS: u32 = 50;

pub(super) fn measure(dir: &Path, laps: u32) -> Result<Vec<Measurement>> {
    let mut read =
        named("disk.read_bytes_per_s", "128 MiB in pieces of 1 MiB, not from the page cache");
    let mut write =
        named("disk.write_bytes_per_s", "128 MiB in pieces of 1 MiB, and a sync at the end");
    let mut seek =
        named("disk.seek", "4 KiB here and there, not from the page cache, less its bytes");
    let mut sync = named("disk.sync", "a sync after 4 KiB were appended");
    let path = dir.join("disk");
    let failed = |source| Error::Io { what: "measure the disk with", path: path.clone(), source };
    for lap in 0..laps {
        write.laps.push(write_lap(&path).map_err(failed)?);
        let read_rate = read_lap(&path).map_err(failed)?;
        read.laps.push(read_rate);
        let small = small_read_lap(&path, u64::from(lap)).map_err(failed)?;
        seek.laps.push((small - SMALL_BYTES as f64 / read_rate).max(1e-9));
        sync.laps.push(sync_lap(&path).map_err(failed)?);
    }
    Ok(vec![read, write, seek, sync])
}

fn write_lap(path: &Path) -> io::Result<f64> {
    let mut file = File::create(path)?;
    // Not all the same: some disks make little of that.
    let mut piece: Vec<u8> = (0..PIECE_BYTES).map(|n| ((n * n) >> 7) as u8).collect();
    let began = Instant::now();
    for n in 0..FILE_PIECES {
        piece[..8].copy_from_slice(&n.to_le_bytes());
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(file_bytes() / began.elapsed().as_secs_f64())
}

fn file_bytes() -> f64 {
    (FILE_PIECES * PIECE_BYTES as u64) as f64
}

/// Opens the file with none of it in the page cache.
fn open_cold(path: &Path, advice: Advice) -> io::Result<File> {
    let file = File::open(path)?;
    // What is not on the disk yet cannot be dropped.
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    fadvise(&file, 0, None, advice)?;
    Ok(file)
}

fn read_lap(path: &Path) -> io::Result<f64> {
    let file = open_cold(path, Advice::Sequential)?;
    let mut piece = vec![0; PIECE_BYTES];
    let began = Instant::now();
    for n in 0..FILE_PIECES {
        file.read_exact_at(&mut piece, n * PIECE_BYTES as u64)?;
    }
    Ok(file_bytes() / began.elapsed().as_secs_f64())
}

/// Seconds that a small read takes.
fn small_read_lap(path: &Path, lap: u64) -> io::Result<f64> {
    let file = open_cold(path, Advice::Random)?;
    let mut piece = vec![0; SMALL_BYTES];
    let places = FILE_PIECES * (PIECE_BYTES / SMALL_BYTES) as u64;
    let began = Instant::now();
    for n in 0..SMALL_READS {
        // Multiplicative hashing: every place once, in no order.
        let place = (n + lap * SMALL_READS).wrapping_mul(0x9E37_79B9_7F4A_7C15) % places;
        file.read_exact_at(&mut piece, place * SMALL_BYTES as u64)?;
    }
    Ok(began.elapsed().as_secs_f64() / SMALL_READS as f64)
}

/// Seconds that a sync takes.
fn sync_lap(path: &Path) -> io::Result<f64> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    let piece = vec![0xa5; SMALL_BYTES];
    let mut took = Duration::ZERO;
    for _ in 0..SYNCS {
        file.write_all(&piece)?;
        let began = Instant::now();
        file.sync_data()?;
        took += began.elapsed();
    }
    Ok(took.as_secs_f64() / f64::from(SYNCS))
}
