//! Text that nobody can guess.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use world::Env;

/// 18 random bytes in base64: of the system in the real world, where a world's own numbers could be guessed from its
/// seed; of the world in the virtual one.
pub(crate) fn nonce(env: &Env) -> String {
    let mut bytes = [0; 18];
    if env.is_virtual() || SystemRandom::new().fill(&mut bytes).is_err() {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&env.random_u64().to_be_bytes()[..part.len()]);
        }
    }
    STANDARD.encode(bytes)
}
