//! The command `narrows`. All of it is in the library, which cargo compiles beside the last of those that it uses; a
//! binary would wait for all of them.

use std::process::ExitCode;

/// Takes and gives back memory faster than the C library's, which returns it to the kernel between one batch and the
/// next.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    narrows::main()
}
