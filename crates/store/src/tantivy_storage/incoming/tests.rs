use std::fs;
use std::process::Command;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::*;

fn commit() -> Commit {
    let file = FileMeta { name: "f".into(), len: 4, xxh3: xxh3_64(b"fine") };
    Commit { files: vec![file].into(), ..Commit::default() }
}

async fn begin(env: &Env, copy: &Path) -> FileIncoming {
    // A process that another test starts has the lock of the one before as well, until it runs its program.
    drop(files::until_free(copy).unwrap());
    FileIncoming::begin(env, copy, &commit()).await.unwrap()
}

async fn write(incoming: &FileIncoming) {
    incoming.write(0, 0, Chunk::Bytes(Bytes::from_static(b"fine"))).await.unwrap();
}

/// A device takes no sync: whatever is read back of a file that failed at it may be in memory alone.
#[test]
fn nothing_is_kept_of_a_file_that_could_not_be_synced() {
    let dir = tempfile::tempdir().unwrap();
    world::real_world::run(7, |env| async move {
        let copy = dir.path().join("copy");
        let break_disk = |incoming: &FileIncoming| {
            let device = File::open("/dev/null").unwrap();
            incoming.files[0].borrow_mut().handle = Some(Arc::new(device));
        };

        let ends_early = begin(&env, &copy).await;
        write(&ends_early).await;
        let note = ends_early.files[0].borrow().note(&commit().files[0]);
        ends_early.note(note).await.unwrap();
        break_disk(&ends_early);
        ends_early.sync_part(0).await;
        drop(ends_early);

        let whole = begin(&env, &copy).await;
        assert_eq!(whole.have(0), 0, "a part of it failed");
        write(&whole).await;
        whole.finish(0).await.unwrap();
        drop(whole);

        let installs = begin(&env, &copy).await;
        assert!(installs.is_finished(0));
        break_disk(&installs);
        installs.install(&commit()).await.unwrap_err();
        drop(installs);

        let given_up = begin(&env, &copy).await;
        assert_eq!(given_up.have(0), 0, "all of it failed");
        write(&given_up).await;
        given_up.finish(0).await.unwrap();
        drop(given_up);
        let given_up = begin(&env, &copy).await;
        break_disk(&given_up);
        let listed = commit();
        tokio::select! {
            biased;
            _ = given_up.install(&listed) => panic!("another thread syncs"),
            () = std::future::ready(()) => {}
        }
        drop(given_up);
        files::until_free(&copy).unwrap();
        assert_eq!(begin(&env, &copy).await.have(0), 0, "nobody waited for the sync");
    });
}

#[test]
fn a_note_that_could_not_be_written_takes_no_later_one_along() {
    let dir = tempfile::tempdir().unwrap();
    world::real_world::run(7, |env| async move {
        let copy = dir.path().join("copy");
        let incoming = begin(&env, &copy).await;
        write(&incoming).await;
        incoming.journal_len.set(incoming.journal_len.get() + 40);
        incoming.finish(0).await.unwrap();
        drop(incoming);
        assert!(begin(&env, &copy).await.is_finished(0));
    });
}

/// The reception waits for a file of the older copy, which is a pipe.
#[test]
fn a_reception_that_was_given_up_keeps_others_out_until_its_work_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    world::real_world::run(7, |env| async move {
        let copy = dir.path().join("copy");
        let (older, incoming) = (commits::dir(&copy, 1), copy.join(INCOMING));
        files::make_dir(&older).unwrap();
        fs::create_dir(&incoming).unwrap();
        let pipe = older.join("f");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let meta = FileMeta { name: "f".into(), len: 0, xxh3: xxh3_64(b"") };
        let listed = vec![meta.clone()].into();
        let commit = Commit { generation: 1, files: listed, ..Commit::default() };
        commits::publish(&copy, &StoredCommit::new(commit.clone(), 1)).unwrap();
        // So many bytes are hashed on another thread.
        let mut notes = Vec::new();
        put_note(&mut notes, &Note { meta, prefix: 1 << 30, prefix_xxh3: 0 });
        fs::write(incoming.join(JOURNAL), notes).unwrap();
        let unlisted = incoming.join("unlisted");
        fs::write(&unlisted, "").unwrap();
        let is_under_way = async {
            while unlisted.exists() {
                env.sleep(Duration::from_millis(1)).await;
            }
            env.sleep(Duration::from_millis(100)).await;
        };
        tokio::select! {
            _ = FileIncoming::begin(&env, &copy, &commit) => panic!("it waits for the pipe"),
            () = is_under_way => {}
        }
        let locked = files::lock_dir(&copy);
        let _pipe = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        assert!(matches!(locked, Err(Error::InUse { .. })), "{locked:?}");
        assert!(files::until_free(&copy).unwrap().is_some());
    });
}

/// Whoever is told nothing must not go on as if it had been synced.
#[test]
fn a_file_is_not_synced_twice_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    world::real_world::run(7, |env| async move {
        let incoming = begin(&env, &dir.path().join("copy")).await;
        write(&incoming).await;
        incoming.files[0].borrow_mut().syncing = true;
        incoming.sync_part(0).await;
        assert!(incoming.files[0].borrow().syncing, "the first one goes on");
    });
}

/// A kill came before the journal said that the file is the older copy's; its note is of what was there before.
#[test]
fn a_file_that_an_older_copy_lends_is_kept_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (path, older) = (dir.path().join("f"), dir.path().join("older"));
    let meta = commit().files[0].clone();
    let part = Note { meta: meta.clone(), prefix: 2, prefix_xxh3: xxh3_64(b"fi") };
    for (bytes, have) in [(b"fine", 4), (b"fire", 0)] {
        files::remove_file(&path).unwrap();
        fs::write(&older, bytes).unwrap();
        fs::hard_link(&older, &path).unwrap();
        let kept = keep(&path, &meta, Some(&part), Some(&older)).unwrap();
        let is_whole = have == meta.len;
        assert_eq!((kept.hashed, kept.finished, path.exists()), (have, is_whole, is_whole));
    }
}

/// Reading a directory fails, as reading a bad sector does.
#[test]
fn a_file_of_an_older_copy_that_cannot_be_read_is_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let (path, older) = (dir.path().join("f"), dir.path().join("older"));
    fs::create_dir(&older).unwrap();
    let len = fs::metadata(&older).unwrap().len();
    let meta = FileMeta { len, ..commit().files[0].clone() };
    let kept = keep(&path, &meta, None, Some(&older)).unwrap();
    assert_eq!((kept.hashed, path.exists()), (0, false));
}

/// A chunk that came twice may still be on its way into the file that goes.
#[test]
fn a_file_is_dropped_once_nobody_writes_into_it() {
    let dir = tempfile::tempdir().unwrap();
    world::real_world::run(7, |env| async move {
        let incoming = begin(&env, &dir.path().join("copy")).await;
        write(&incoming).await;
        let writes = incoming.turns[0].lock().await;
        let mut forgets = std::pin::pin!(incoming.forget(0));
        tokio::select! {
            biased;
            _ = &mut forgets => panic!("it waited for nobody"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(incoming.have(0), 4);
        drop(writes);
        forgets.await.unwrap();
        assert_eq!((incoming.have(0), incoming.dir.join("f").exists()), (0, false));
    });
}
