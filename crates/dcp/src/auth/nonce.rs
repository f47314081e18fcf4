//! Numbers that are drawn once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use world::Env;

/// Random bytes. In the real world they come from the system, because a world's numbers could be guessed from its seed,
/// and come again where a process begins again with it; in the virtual world they come from the world.
fn fresh<const N: usize>(env: &Env) -> [u8; N] {
    let mut bytes = [0; N];
    if env.is_virtual() || SystemRandom::new().fill(&mut bytes).is_err() {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&env.random_u64().to_be_bytes()[..part.len()]);
        }
    }
    bytes
}

/// 18 of them in base64.
pub(crate) fn nonce(env: &Env) -> String {
    STANDARD.encode(fresh::<18>(env))
}

/// A number that no other process draws, nor this one again.
pub(crate) fn fresh_u64(env: &Env) -> u64 {
    u64::from_be_bytes(fresh(env))
}
