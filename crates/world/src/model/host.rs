//! What a host's cores and network card are like.

use std::time::Duration;

use record::random::gamma_factor;

use super::Disk;
use crate::work::{Codec, Work};

/// What work costs a core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreCosts {
    /// Checksums.
    pub hash_bytes_per_s: u64,
    /// Copies of memory.
    pub copy_bytes_per_s: u64,
    /// LZ4, compressing.
    pub lz4_bytes_per_s: u64,
    /// Zstandard, compressing.
    pub zstd_bytes_per_s: u64,
    /// Decompressing, as a multiple of compressing.
    pub decompress_speedup: f64,
    /// Indexing, for each document.
    pub index_document: Duration,
    /// Indexing, for the bytes of the sources.
    pub index_bytes_per_s: u64,
    /// Parsing JSON.
    pub parse_bytes_per_s: u64,
    /// Searching, for each document that is visited.
    pub search_document: Duration,
    /// Searching, for the bytes that are read.
    pub search_bytes_per_s: u64,
    /// Searching a shard, in addition to its documents and bytes.
    pub search: Duration,
    /// How much searches differ: standard deviation over mean of their times.
    pub search_spread: f64,
    /// Sending or receiving a message, whatever its size.
    pub message: Duration,
    /// How long a received message waits for a thread. No core works meanwhile, and messages wait concurrently.
    pub dispatch: Duration,
    /// How long a copy that recovers from a peer takes besides its bytes and operations. No core works meanwhile.
    pub open_copy: Duration,
    /// How much longer it takes where the copy begins without files. No core works meanwhile.
    pub new_copy: Duration,
    /// How much longer it takes for each file that comes, besides its bytes and round trips. No core works meanwhile.
    pub each_file: Duration,
    /// How much longer it takes while no copy has come to its node from a peer since that started. No core works
    /// meanwhile.
    pub first_copy: Duration,
    /// How long a copy without files waits whose source applies the cluster state after it. No core works meanwhile.
    pub unlisted_copy: Duration,
    /// How many primaries that move ask before their source has applied the cluster state, of 1.
    pub unmarked_share: f64,
    /// Sending a message's bytes: framing, copying. None is without limit.
    pub send_bytes_per_s: Option<u64>,
    /// Receiving a message's bytes. None is without limit.
    pub receive_bytes_per_s: Option<u64>,
    /// Encrypting the bytes of a message that is sent. None where they are sent as they are.
    pub encrypt_bytes_per_s: Option<u64>,
    /// Decrypting the bytes of a message that came. None where they come as they are.
    pub decrypt_bytes_per_s: Option<u64>,
    /// What packets of document streams cost.
    pub packets: PacketCosts,
}

/// What packets of document streams (Couchbase's DCP) cost a core. Their bytes cost what bytes of messages do.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketCosts {
    /// A consumer's thread: reading a connection once, however much has arrived.
    pub read: Duration,
    /// A consumer's thread: a received packet.
    pub receive: Duration,
    /// A consumer's thread: applying a version to its bucket.
    pub apply: Duration,
    /// A producer's thread: a sent packet.
    pub send: Duration,
    /// A proxy's thread: a packet that is decoded and passed on.
    pub relay: Duration,
}

impl Default for PacketCosts {
    fn default() -> Self {
        PacketCosts {
            read: Duration::from_micros(2),
            receive: Duration::from_nanos(500),
            apply: Duration::from_micros(2),
            send: Duration::from_micros(1),
            relay: Duration::from_micros(5),
        }
    }
}

impl PacketCosts {
    fn slowed(&self, factor: f64) -> PacketCosts {
        PacketCosts {
            read: self.read.mul_f64(factor),
            receive: self.receive.mul_f64(factor),
            apply: self.apply.mul_f64(factor),
            send: self.send.mul_f64(factor),
            relay: self.relay.mul_f64(factor),
        }
    }
}

impl Default for CoreCosts {
    fn default() -> Self {
        CoreCosts {
            hash_bytes_per_s: 10_000_000_000,
            copy_bytes_per_s: 9_000_000_000,
            lz4_bytes_per_s: 1_100_000_000,
            zstd_bytes_per_s: 700_000_000,
            decompress_speedup: 3.0,
            index_document: Duration::from_micros(3),
            index_bytes_per_s: 100_000_000,
            parse_bytes_per_s: 400_000_000,
            search_document: Duration::from_nanos(20),
            search_bytes_per_s: 1_000_000_000,
            search: Duration::ZERO,
            search_spread: 0.0,
            message: Duration::from_micros(5),
            dispatch: Duration::ZERO,
            open_copy: Duration::ZERO,
            new_copy: Duration::ZERO,
            each_file: Duration::ZERO,
            first_copy: Duration::ZERO,
            unlisted_copy: Duration::ZERO,
            unmarked_share: 0.0,
            send_bytes_per_s: Some(4_500_000_000),
            receive_bytes_per_s: Some(4_500_000_000),
            encrypt_bytes_per_s: None,
            decrypt_bytes_per_s: None,
            packets: PacketCosts::default(),
        }
    }
}

/// How long `bytes` take at a rate.
pub(crate) fn at_rate(bytes: u64, bytes_per_s: u64) -> Duration {
    let rate = bytes_per_s.max(1);
    Duration::from_nanos(match bytes.checked_mul(1_000_000_000) {
        Some(product) => product / rate,
        None => {
            u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
        }
    })
}

impl CoreCosts {
    /// How long a core is occupied by `work`; none if a disk does it.
    pub fn of(&self, work: Work) -> Option<Duration> {
        let codec = |codec| match codec {
            Codec::Lz4 => self.lz4_bytes_per_s,
            Codec::Zstd => self.zstd_bytes_per_s,
        };
        let times = |each: Duration, count: u64| each * u32::try_from(count).unwrap_or(u32::MAX);
        Some(match work {
            Work::DiskRead { .. } | Work::DiskWrite { .. } | Work::DiskSync => return None,
            Work::Hash { bytes } => at_rate(bytes, self.hash_bytes_per_s),
            Work::Copy { bytes } => at_rate(bytes, self.copy_bytes_per_s),
            Work::Compress { bytes, codec: c } => at_rate(bytes, codec(c)),
            Work::Decompress { bytes, codec: c } => {
                at_rate(bytes, (codec(c) as f64 * self.decompress_speedup) as u64)
            }
            Work::Index { documents, bytes } => {
                times(self.index_document, documents) + at_rate(bytes, self.index_bytes_per_s)
            }
            Work::Parse { bytes } => at_rate(bytes, self.parse_bytes_per_s),
            Work::Search { documents, bytes } => {
                self.search
                    + times(self.search_document, documents)
                    + at_rate(bytes, self.search_bytes_per_s)
            }
            Work::ReceivePackets { reads, packets } => {
                times(self.packets.read, reads) + times(self.packets.receive, packets)
            }
            Work::ApplyItems { items } => times(self.packets.apply, items),
            Work::SendPackets { packets } => times(self.packets.send, packets),
            Work::RelayPackets { packets } => times(self.packets.relay, packets),
        })
    }

    /// The same on a core that takes `factor` times as long for everything.
    pub fn slowed(&self, factor: f64) -> CoreCosts {
        let rate = |bytes_per_s: u64| ((bytes_per_s as f64 / factor) as u64).max(1);
        CoreCosts {
            hash_bytes_per_s: rate(self.hash_bytes_per_s),
            copy_bytes_per_s: rate(self.copy_bytes_per_s),
            lz4_bytes_per_s: rate(self.lz4_bytes_per_s),
            zstd_bytes_per_s: rate(self.zstd_bytes_per_s),
            decompress_speedup: self.decompress_speedup,
            index_document: self.index_document.mul_f64(factor),
            index_bytes_per_s: rate(self.index_bytes_per_s),
            parse_bytes_per_s: rate(self.parse_bytes_per_s),
            search_document: self.search_document.mul_f64(factor),
            search_bytes_per_s: rate(self.search_bytes_per_s),
            search: self.search.mul_f64(factor),
            search_spread: self.search_spread,
            message: self.message.mul_f64(factor),
            dispatch: self.dispatch.mul_f64(factor),
            open_copy: self.open_copy.mul_f64(factor),
            new_copy: self.new_copy.mul_f64(factor),
            each_file: self.each_file.mul_f64(factor),
            first_copy: self.first_copy.mul_f64(factor),
            unlisted_copy: self.unlisted_copy,
            unmarked_share: self.unmarked_share,
            send_bytes_per_s: self.send_bytes_per_s.map(rate),
            receive_bytes_per_s: self.receive_bytes_per_s.map(rate),
            encrypt_bytes_per_s: self.encrypt_bytes_per_s.map(rate),
            decrypt_bytes_per_s: self.decrypt_bytes_per_s.map(rate),
            packets: self.packets.slowed(factor),
        }
    }

    /// How long a core is occupied by sending a message of `bytes`.
    pub fn send(&self, bytes: u64) -> Duration {
        self.message_at([self.send_bytes_per_s, self.encrypt_bytes_per_s], bytes)
    }

    /// How long a core is occupied by receiving a message of `bytes`.
    pub fn receive(&self, bytes: u64) -> Duration {
        self.message_at([self.receive_bytes_per_s, self.decrypt_bytes_per_s], bytes)
    }

    fn message_at(&self, rates: [Option<u64>; 2], bytes: u64) -> Duration {
        let times = rates.into_iter().flatten().map(|rate| at_rate(bytes, rate));
        self.message + times.sum::<Duration>()
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Cores.
    pub cores: u32,
    /// Processes of others that are always ready to run. The kernel shares the cores equally between them and us.
    pub competitors: u32,
    /// How much hosts of one kind differ: standard deviation over mean of the time that the same work takes on them.
    /// Each host's model is drawn with [`Host::drawn`].
    pub spread: f64,
    /// What work costs each of them.
    pub costs: CoreCosts,
    /// Whether a segment of a copy is three files, and not six.
    pub compound_files: bool,
    /// Its disk.
    pub disk: Disk,
    /// Rate of its network card, each way.
    pub card_bytes_per_s: u64,
    /// Delay through the card and half the switch behind it.
    pub card_delay: Duration,
}

impl Default for Host {
    fn default() -> Self {
        Host {
            cores: 4,
            competitors: 0,
            spread: 0.0,
            costs: CoreCosts::default(),
            compound_files: false,
            disk: Disk::default(),
            card_bytes_per_s: 1_250_000_000,
            card_delay: Duration::from_micros(25),
        }
    }
}

impl Host {
    /// Draws one host of the kind with `random` (uniform over all of `u64`): some are faster, some slower.
    pub fn drawn(&self, random: impl FnMut() -> u64) -> Host {
        let factor = gamma_factor(self.spread, random);
        let costs = if factor == 1.0 { self.costs.clone() } else { self.costs.slowed(factor) };
        Host { costs, ..self.clone() }
    }

    /// How many times as long work takes while so many threads of ours are ready to run: they share the cores equally
    /// with the competitors, as under the kernel's fair scheduler.
    pub fn stretch(&self, ready: f64) -> f64 {
        ((ready + f64::from(self.competitors)) / f64::from(self.cores.max(1))).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use record::random::split_mix;

    use super::*;

    #[test]
    fn cores_are_shared_once_more_is_ready_than_there_are() {
        let host = |competitors| Host { cores: 16, competitors, ..Host::default() };
        assert_eq!((host(0).stretch(3.0), host(0).stretch(24.0)), (1.0, 1.5));
        assert_eq!((host(32).stretch(1.0), host(32).stretch(16.0)), (33.0 / 16.0, 3.0));
    }

    #[test]
    fn hosts_of_one_kind_differ_as_much_as_they_should() {
        let kind = Host { spread: 0.1, ..Host::default() };
        let mut state = 5u64;
        let mut random = || split_mix(&mut state);
        let per_document = |host: &Host| host.costs.index_document.as_nanos() as f64;
        let times: Vec<f64> = (0..4000)
            .map(|_| per_document(&kind.drawn(&mut random)) / per_document(&kind))
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / times.len() as f64;
        assert!(
            (mean - 1.0).abs() < 0.01 && (variance.sqrt() - 0.1).abs() < 0.01,
            "{mean} {variance}"
        );
        assert_eq!(Host::default().drawn(&mut random), Host::default());
    }

    #[test]
    fn a_message_costs_its_bytes_and_a_fixed_part() {
        let costs = CoreCosts {
            message: Duration::from_micros(3),
            send_bytes_per_s: Some(100_000_000),
            receive_bytes_per_s: None,
            ..CoreCosts::default()
        };
        assert_eq!(costs.send(1_000_000), Duration::from_micros(10_003));
        assert_eq!(costs.receive(1_000_000), Duration::from_micros(3));
        let encrypts = CoreCosts {
            encrypt_bytes_per_s: Some(200_000_000),
            decrypt_bytes_per_s: Some(250_000_000),
            ..costs
        };
        assert_eq!(encrypts.send(1_000_000), Duration::from_micros(15_003));
        assert_eq!(encrypts.slowed(2.0).receive(1_000_000), Duration::from_micros(8_006));
    }
}
