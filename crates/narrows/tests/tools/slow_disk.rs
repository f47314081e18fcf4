//! A disk whose rates are set, as the kernel counts it; and what is left of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clusters::{DiskRates, SlowDisk};
use tempfile::TempDir;

use crate::common::{BINARY, children_of, signal, until};

const RATES: DiskRates = DiskRates { read_bytes_per_s: 16_000_000, write_bytes_per_s: 8_000_000 };
const FILE_BYTES: usize = 12 << 20;

/// In a directory that goes after it.
fn made() -> (TempDir, SlowDisk) {
    let dir = tempfile::tempdir().unwrap();
    let disk = SlowDisk::make(dir.path(), Path::new(BINARY)).unwrap();
    (dir, disk)
}

/// What a device has done.
struct Counted {
    read_bytes: u64,
    written_bytes: u64,
    busy: Duration,
}

/// A line of it has both numbers of a device, its name, and its counts.
fn counted(disk: &SlowDisk) -> Counted {
    let (major, minor) = disk.device();
    let text = fs::read_to_string("/proc/diskstats").unwrap();
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let named = [major.to_string(), minor.to_string()];
    let line = lines.find(|line| line[..2] == named).expect("the device is counted");
    let number = |at: usize| line[at].parse::<u64>().unwrap();
    // Sectors are of 512 bytes.
    Counted {
        read_bytes: number(5) * 512,
        written_bytes: number(9) * 512,
        busy: Duration::from_millis(number(12)),
    }
}

#[track_caller]
fn took_as_long(busy: Duration, bytes: u64, bytes_per_s: u64) {
    assert!(bytes >= FILE_BYTES as u64, "{bytes} bytes");
    let at_least = 0.8 * bytes as f64 / bytes_per_s as f64;
    assert!(busy.as_secs_f64() >= at_least, "{bytes} bytes in {busy:?}");
}

pub fn a_slow_disk_is_busy_for_as_long_as_its_rate_says() {
    let (_dir, disk) = made();
    let file = disk.path().join("file");
    disk.set(Some(RATES)).unwrap();
    let before = counted(&disk);
    fs::write(&file, vec![7; FILE_BYTES]).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    let written = counted(&disk);
    let bytes = written.written_bytes - before.written_bytes;
    took_as_long(written.busy - before.busy, bytes, RATES.write_bytes_per_s);
    // The file system writes little besides.
    assert!(bytes <= FILE_BYTES as u64 * 11 / 10, "{bytes} bytes");
    // What was just written is in memory no more.
    disk.set(Some(RATES)).unwrap();
    assert_eq!(fs::read(&file).unwrap().len(), FILE_BYTES);
    let read = counted(&disk);
    let bytes = read.read_bytes - written.read_bytes;
    took_as_long(read.busy - written.busy, bytes, RATES.read_bytes_per_s);
    // What others write is counted, too, whatever the node does.
    disk.write_beside(2).unwrap();
    until("neighbours write", || {
        counted(&disk).written_bytes > read.written_bytes + 2 * FILE_BYTES as u64
    });
    disk.write_beside(0).unwrap();
    assert!(!disk.path().join("neighbour").exists());
}

/// The holder goes with the runner, too, whose end it sees; here neither can undo anything.
pub fn nothing_of_a_slow_disk_is_left_when_its_holder_or_its_server_is_killed() {
    for kills_server in [false, true] {
        let (dir, disk) = made();
        disk.set(Some(RATES)).unwrap();
        // More than may wait in memory is on its way.
        fs::write(disk.path().join("file"), vec![7; 2 << 20]).unwrap();
        let (_, minor) = disk.device();
        let device = PathBuf::from(format!("/sys/block/loop{minor}/loop"));
        assert!(device.exists());
        let holder = disk.holder();
        let is_server = |id: &u32| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.starts_with(BINARY.as_bytes())
        };
        let server = children_of(holder).into_iter().find(is_server).expect("somebody serves it");
        if kills_server {
            signal(server, "KILL");
        }
        signal(holder, "KILL");
        until("its loop device is free", || !device.exists());
        until("nobody serves it", || !is_server(&server));
        drop(disk);
        let limit = format!("/sys/class/bdi/7:{minor}/strict_limit");
        assert_eq!(fs::read_to_string(limit).unwrap().trim(), "0");
        // It would be refused where anything is mounted below it.
        dir.close().unwrap();
    }
}
