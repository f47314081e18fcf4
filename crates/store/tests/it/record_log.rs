//! The log of records: what was synced is there again, in either world.

use std::path::PathBuf;

use crate::common::on_real_files;
use store::{Location, Record, RecordLog};
use world::Env;

#[derive(Clone, Debug, PartialEq)]
struct Line(u64, Vec<u8>);

impl Record for Line {
    fn payload_bytes(&self) -> usize {
        8 + self.1.len()
    }
    fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.0.to_le_bytes());
        buffer.extend_from_slice(&self.1);
    }
    fn decode(payload: &[u8]) -> Option<Self> {
        let (number, rest) = payload.split_first_chunk::<8>()?;
        Some(Line(u64::from_le_bytes(*number), rest.to_vec()))
    }
    fn plausible(payload: &[u8]) -> bool {
        payload.len() >= 8 && payload[7] == 0
    }
}

fn lines(from: u64, to: u64) -> Vec<Line> {
    (from..to).map(|n| Line(n, vec![n as u8; (n % 300) as usize])).collect()
}

async fn open(env: &Env, dir: &std::path::Path) -> (RecordLog<Line>, Vec<(Location, Line)>, u64) {
    let mut seen = Vec::new();
    let (log, torn) =
        RecordLog::open(env, dir, |location, line| seen.push((location, line))).await.unwrap();
    (log, seen, torn)
}

crate::in_both_worlds!(gives_back_what_was_appended, removes_whole_files);

async fn gives_back_what_was_appended(env: Env, dir: PathBuf) {
    let (log, seen, _) = open(&env, &dir).await;
    assert!(seen.is_empty());
    let mut places = log.append(lines(0, 500)).await.unwrap();
    log.sync().await.unwrap();
    places.extend(log.append(lines(500, 900)).await.unwrap());
    // Read back before a sync, scattered and in runs.
    let picked: Vec<usize> = (0..900).filter(|n| n % 7 < 4).rev().chain(10..60).collect();
    let read = log.read(picked.iter().map(|n| places[*n]).collect()).await.unwrap();
    let all = lines(0, 900);
    assert_eq!(read, picked.iter().map(|n| all[*n].clone()).collect::<Vec<_>>());
    log.sync().await.unwrap();
    drop(log);
    let (log, seen, torn) = open(&env, &dir).await;
    assert_eq!(torn, 0);
    assert_eq!(seen.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>(), all);
    assert_eq!(seen.iter().map(|(place, _)| *place).collect::<Vec<_>>(), places);
    assert_eq!(log.read(vec![places[899]]).await.unwrap(), [all[899].clone()]);
}

async fn removes_whole_files(env: Env, dir: PathBuf) {
    let (log, _, _) = open(&env, &dir).await;
    let places = log.append(lines(0, 10)).await.unwrap();
    log.sync().await.unwrap();
    log.remove(log.newest()).await.unwrap();
    assert_eq!(log.read(vec![places[3]]).await.unwrap(), lines(3, 4));
    drop(log);
    let (log, seen, _) = open(&env, &dir).await;
    assert_eq!(seen.len(), 10);
    log.remove(places[0].generation).await.unwrap();
    assert!(log.read(vec![places[3]]).await.is_err());
    drop(log);
    assert!(open(&env, &dir).await.1.is_empty());
}

#[test]
fn what_was_not_synced_goes_with_the_host() {
    world::virtual_world::run(7, async |env| {
        let host = env.host("a");
        let (log, _, _) = open(&host, std::path::Path::new("/data")).await;
        log.append(lines(0, 3)).await.unwrap();
        log.sync().await.unwrap();
        log.append(lines(3, 5)).await.unwrap();
        env.kill_host("a");
        drop(log);
        let (_, seen, _) = open(&env.host("a"), std::path::Path::new("/data")).await;
        assert_eq!(seen.len(), 3);
    });
}

#[test]
fn a_torn_end_is_cut_and_other_damage_is_named() {
    on_real_files(async |env, dir| {
        let (log, _, _) = open(&env, &dir).await;
        log.append(lines(200, 203)).await.unwrap();
        assert!(RecordLog::<Line>::open(&env, &dir, |_, _| ()).await.is_err());
        drop(log);
        let path = dir.join("records-1.log");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let (log, seen, torn) = open(&env, &dir).await;
        assert_eq!((seen.len(), torn), (2, 8 + 8 + 202 - 5));
        drop(log);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = RecordLog::<Line>::open(&env, &dir, |_, _| ()).await.err().unwrap();
        assert!(error.to_string().contains("records-1.log is damaged at byte 8"), "{error}");
    });
}

/// A sync that failed leaves it in memory, where the next one takes it for written.
#[test]
fn what_may_not_be_durable_is_written_again() {
    on_real_files(async |env, dir| {
        let (log, _, _) = open(&env, &dir).await;
        log.append(lines(0, 3)).await.unwrap();
        drop(log);
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        let path = dir.join("records-1.log");
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(long_ago).unwrap();
        assert_eq!(open(&env, &dir).await.1.len(), 3);
        assert!(file.metadata().unwrap().modified().unwrap() > long_ago);
    });
}

/// The log begins another file every 64 MiB.
#[test]
fn a_file_that_could_not_be_begun_is_begun_again() {
    on_real_files(async |env, dir| {
        let (log, _, _) = open(&env, &dir).await;
        for n in 0..4 {
            log.append(vec![Line(n, vec![0; 16 << 20])]).await.unwrap();
        }
        // As a disk leaves it that was full when the file was made.
        std::fs::write(dir.join("records-2.log"), "nrw").unwrap();
        std::fs::hard_link(dir.join("records-2.log"), dir.join("left")).unwrap();
        let places = log.append(lines(4, 9)).await.unwrap();
        assert_eq!((log.newest(), places[0].generation), (2, 2));
        assert_eq!(std::fs::read(dir.join("left")).unwrap(), b"nrw", "another file has its name");
        assert_eq!(log.read(places).await.unwrap(), lines(4, 9));
        log.sync().await.unwrap();
        drop(log);
        let (_, seen, torn) = open(&env, &dir).await;
        assert_eq!((seen.len(), torn), (9, 0));
    });
}
