//! Nonces.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use world::Env;

/// 18 random bytes in base64. In the real world they come from the system, because a world's numbers could be guessed
/// from its seed; in the virtual world they come from the world.
pub(crate) fn nonce(env: &Env) -> String {
    let mut bytes = [0; 18];
    if env.is_virtual() || SystemRandom::new().fill(&mut bytes).is_err() {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&env.random_u64().to_be_bytes()[..part.len()]);
        }
    }
    STANDARD.encode(bytes)
}
