//! How many bytes may still be written to a virtual host's disk.

use std::path::Path;

use world::Env;

use crate::error::io;
use crate::{Error, Result};

/// Where the limit stands on the virtual disk.
const PATH: &str = "/.space";
/// "No space left on device", as the system counts its errors.
const ENOSPC: i32 = 28;

/// The limit; none where the disk never fills up.
type FreeBytes = Option<u64>;

/// Limits how many bytes of copies can still be written to this host's disk; then writes fail as on a full disk. `None`
/// lifts the limit. Removing files frees nothing. False in the real world, where it does nothing. For faults in
/// experiments.
pub fn set_disk_free_bytes(env: &Env, free_bytes: Option<u64>) -> bool {
    let Some(disk) = env.virtual_disk() else { return false };
    *disk.get::<FreeBytes>(PATH).borrow_mut() = free_bytes;
    true
}

/// Takes room for `bytes` that are about to be written to `path`.
pub(crate) fn take(env: &Env, path: &Path, bytes: u64) -> Result<()> {
    let disk = env.virtual_disk().filter(|disk| disk.contains(PATH));
    let Some(disk) = disk else { return Ok(()) };
    let space = disk.get::<FreeBytes>(PATH);
    let Some(free_bytes) = &mut *space.borrow_mut() else { return Ok(()) };
    match free_bytes.checked_sub(bytes) {
        Some(left) => {
            *free_bytes = left;
            Ok(())
        }
        None => Err::<(), Error>(io("write", path)(std::io::Error::from_raw_os_error(ENOSPC))),
    }
}
