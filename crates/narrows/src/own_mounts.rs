//! A namespace of mounts for this process and its children alone, so that what is mounted goes when they have ended,
//! however they end.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

use crate::exit::refuse;

/// Says that this process has it already.
const HAS_OWN: &str = "NARROWS_HAS_OWN_MOUNTS";

/// Goes on in such a namespace: begins again through `unshare`, under the same process id, unless it did so already.
pub(crate) fn ensure() -> anyhow::Result<()> {
    if std::env::var_os(HAS_OWN).is_some() {
        return Ok(());
    }
    let Some(args) = machine::own_mounts() else {
        let text = "a full disk on processes is a small file system of the node's own, and this user may not mount one: \
                    run it as root, with util-linux there, or with --on virtual";
        refuse!("{text}");
    };
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new("unshare");
    command.args(args).arg(program).args(std::env::args_os().skip(1)).env(HAS_OWN, "1");
    // Comes back only if it failed.
    Err(command.exec()).context("begin again through unshare")
}
