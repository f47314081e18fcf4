//! How full a disk may be: a share that is used, or bytes that stay free.

use record::units::{parse_size, show_size_setting};

const WHOLE: f64 = 1e6;
pub(super) const LOW: &str = "cluster.routing.allocation.disk.watermark.low";
pub(super) const HIGH: &str = "cluster.routing.allocation.disk.watermark.high";

/// A mark on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watermark {
    /// So much of the disk may be used, in millionths.
    Used(u64),
    /// So many bytes stay free.
    Free(u64),
}

impl Watermark {
    /// Reads a percentage (`85%`), a share (`0.85`) or bytes (`10gb`). The error says what is accepted.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse::<f64>().ok(),
        };
        if let Some(share) = share.filter(|share| (0.0..=1.0).contains(share)) {
            return Ok(Watermark::Used((share * WHOLE).round() as u64));
        }
        let bytes = parse_size(text).ok().filter(|_| share.is_none());
        bytes.map(Watermark::Free).ok_or_else(|| {
            "write what may be used, such as 85%, or what stays free, such as 10gb".to_owned()
        })
    }

    /// Bytes that are free on a disk of this size when it is just at the mark.
    pub fn free_bytes(self, total_bytes: u64) -> u64 {
        match self {
            Watermark::Used(millionths) => {
                (total_bytes as f64 * (1.0 - millionths as f64 / WHOLE)).round() as u64
            }
            Watermark::Free(bytes) => bytes,
        }
    }
}

/// As settings are written.
impl std::fmt::Display for Watermark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Watermark::Used(millionths) => write!(f, "{}%", *millionths as f64 / (WHOLE / 100.0)),
            Watermark::Free(bytes) => f.write_str(&show_size_setting(*bytes)),
        }
    }
}

/// The marks of the disks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// A node that is above it is given no copy.
    pub low: Watermark,
    /// From a node that is above it copies are moved.
    pub high: Watermark,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_used_and_bytes_are_free() {
        for (text, mark, written, free) in [
            ("85%", Watermark::Used(850_000), "85%", 150),
            ("0.925", Watermark::Used(925_000), "92.5%", 75),
            ("0.5kb", Watermark::Free(512), "512b", 512),
        ] {
            assert_eq!(Watermark::read(text), Ok(mark), "{text}");
            assert_eq!(mark.to_string(), written);
            assert_eq!(mark.free_bytes(1000), free);
        }
        for wrong in ["101%", "85", "-1", "much", ""] {
            assert!(Watermark::read(wrong).is_err(), "{wrong}");
        }
    }
}
