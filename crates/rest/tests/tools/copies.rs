//! A copy on a disk that fills up.

use store::WriteRequest;
use testbed::SmallDisk;
use world::real_world;

use crate::copies_common::{Numbers, create, open};

fn noise(numbers: &mut Numbers, id: u64) -> WriteRequest {
    WriteRequest::append(
        format!("id{id}").into(),
        format!("{{\"body\":\"{}\"}}", numbers.noise(20_000)).into(),
    )
}

pub fn a_full_disk_is_an_error_and_what_was_acknowledged_stays() {
    let mount = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(mount.path(), 24 << 20).unwrap();
    let dir = mount.path().join("copy");
    let acknowledged = real_world::run(1, async |env| {
        let shard = create(&env, &dir).await;
        let (mut numbers, mut acknowledged) = (Numbers(1), 0);
        let error = loop {
            if let Err(error) = shard.index(vec![noise(&mut numbers, acknowledged)]).await {
                break error;
            }
            if let Err(error) = shard.sync().await {
                break error;
            }
            acknowledged += 1;
            if acknowledged % 10 == 0
                && let Err(error) = shard.flush().await
            {
                break error;
            }
        };
        assert!(error.to_string().contains("copy"), "{error}");
        acknowledged
    });
    assert!(acknowledged > 20, "{acknowledged}");
    disk.resize(64 << 20).unwrap();
    real_world::run(2, async |env| {
        let shard = open(&env, &dir).await.unwrap();
        assert!(shard.max_seq_no().is_some_and(|max| max + 1 >= acknowledged), "{acknowledged}");
    });
}
