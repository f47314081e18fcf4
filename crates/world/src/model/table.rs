//! The one table of model parameters: names, units, meanings, bounds, defaults and their sources. A new parameter is a
//! field of its model and a row here.

use record::names::did_you_mean;

use super::Models;
use super::parameter::{Field, ModelError, Parameter};

/// All parameters, in the order of link, disk, cores, packets, card.
pub fn parameters() -> &'static [Parameter] {
    &TABLE
}

impl Models {
    /// Sets a parameter from text. Nothing changes on an error.
    ///
    /// # Errors
    /// An unknown name, a text that is no such value, a value out of range; the message says what is accepted.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ModelError> {
        let found = parameters().iter().find(|parameter| parameter.name == name);
        let parameter = found.ok_or_else(|| ModelError::Unknown {
            name: name.to_owned(),
            hint: did_you_mean(name, parameters().iter().map(|parameter| parameter.name)),
        })?;
        parameter.set(self, text)?;
        self.link.tcp_modelled |= parameter.path.starts_with("link.tcp.");
        Ok(())
    }
}

/// Rates from 1 kB/s to 1 TB/s: below, a run would not end; above, say "unlimited".
const RATES: (f64, f64) = (1e3, 1e12);
/// Where bounds are a matter of names alone.
const NAMES: (f64, f64) = (0.0, 0.0);
const MEASURED: &str = "measured on the machine of docs/benchmarks";
const ASSUMED: &str = "assumed";
const BUCKETS: &str = "this engine's bucket server on the machine of docs/benchmarks, rounded";

macro_rules! row {
    ($name:literal, $unit:literal, $range:expr, $kind:ident($($place:tt)+), $source:expr, $meaning:literal) => {
        Parameter {
            name: $name,
            unit: $unit,
            meaning: $meaning,
            source: $source,
            range: $range,
            path: stringify!($($place)+),
            field: |models| Field::$kind(&mut models.$($place)+),
        }
    };
}

#[rustfmt::skip]
static TABLE: [Parameter; 53] = [
    row!("link.tcp", "on or off", NAMES, Switch(link.tcp_modelled),
        "off: as the emulated link of the embedded target, whose ends are on one machine",
        "Whether connections over the link have TCP's windows; setting any parameter of TCP turns it on."),
    row!("link.rate_bytes_per_s", "bytes/s", RATES, MaybeRate(link.rate_bytes_per_s), "as the plan's link says",
        "Rate of the link in each direction, all connections together."),
    row!("link.segment_bytes", "bytes", (64.0, 65536.0), Segment(link.tcp.segment_bytes),
        "an Ethernet frame of 1500 bytes less IP, TCP and timestamps", "Payload of a TCP segment."),
    row!("link.initial_window_segments", "segments", (1.0, 1000.0), Count(link.tcp.initial_window_segments),
        "RFC 6928",
        "Segments that a new connection sends before the first acknowledgement."),
    row!("link.slow_start_after_idle", "on or off", NAMES, Switch(link.tcp.slow_start_after_idle),
        "Linux net.ipv4.tcp_slow_start_after_idle = 1",
        "Whether the window halves for every retransmission timeout that a connection was idle."),
    row!("link.min_rto", "time", (1e-3, 10.0), Time(link.tcp.min_rto), "Linux TCP_RTO_MIN",
        "The part of the retransmission timeout that does not shrink with the round trip."),
    row!("link.congestion_control", "name", NAMES, Control(link.tcp.congestion_control),
        "Linux net.ipv4.tcp_congestion_control since 2.6.19", "How the window shrinks after a loss and grows again."),
    row!("link.loss", "share", (0.0, 0.1), Number(link.tcp.loss), "a clean line",
        "Share of the segments that the line loses, besides what overflows its queue."),
    row!("link.max_window_bytes", "bytes", (1448.0, 1.1e12), MaybeBytes(link.max_window_bytes),
        "as the plan's link says",
        "The receiver's window: bytes that a connection may have under way."),
    row!("link.queue_bytes", "bytes", (1448.0, 1.1e12), MaybeBytes(link.queue_bytes),
        "no bound, as the emulated link",
        "Bytes that wait in front of the line; what comes on top is lost."),
    row!("disk.read_bytes_per_s", "bytes/s", RATES, Rate(host.disk.read_bytes_per_s), MEASURED,
        "Sequential reads, all requests together."),
    row!("disk.write_bytes_per_s", "bytes/s", RATES, Rate(host.disk.write_bytes_per_s), MEASURED,
        "Sequential writes, all requests together."),
    row!("disk.seek", "time", (0.0, 1.0), Time(host.disk.seek), MEASURED,
        "What a request costs before its first byte."),
    row!("disk.sync", "time", (0.0, 10.0), Time(host.disk.sync), MEASURED,
        "What making earlier writes durable costs."),
    row!("disk.request_bytes", "bytes", (4096.0, 1.1e9), Bytes(host.disk.request_bytes),
        "Linux /sys/block/*/queue/max_sectors_kb = 1280", "Larger operations are split into requests of this size."),
    row!("disk.queue_depth", "operations", (1.0, 4096.0), Count(host.disk.queue_depth), "one at a time, as measured",
        "Operations that the device serves side by side; they share its rate."),
    row!("disk.scheduler", "name", NAMES, Scheduler(host.disk.scheduler),
        "Linux since 5.0 has no other for a fast device",
        "The kernel's order of requests; cfq serves one process at a time and idles after each read or sync, and \
         deadline does as noop."),
    row!("disk.slice_idle", "time", (0.0, 1.0), Time(host.disk.slice_idle),
        "Linux block/cfq-iosched.c: cfq_slice_idle = HZ / 125",
        "How long cfq leaves the device idle after a request, in the hope that the same process asks again."),
    row!("cores.count", "cores", (1.0, 4096.0), Count(host.cores), ASSUMED, "Cores of a host."),
    row!("cores.hash_bytes_per_s", "bytes/s", RATES, Rate(host.costs.hash_bytes_per_s), MEASURED,
        "Checksums, on one core."),
    row!("cores.copy_bytes_per_s", "bytes/s", RATES, Rate(host.costs.copy_bytes_per_s), MEASURED,
        "Copies of memory, on one core."),
    row!("cores.lz4_bytes_per_s", "bytes/s", RATES, Rate(host.costs.lz4_bytes_per_s), MEASURED,
        "Compressing with LZ4, on one core."),
    row!("cores.zstd_bytes_per_s", "bytes/s", RATES, Rate(host.costs.zstd_bytes_per_s), MEASURED,
        "Compressing with Zstandard at level 1, on one core."),
    row!("cores.decompress_speedup", "times", (0.01, 1000.0), Number(host.costs.decompress_speedup), MEASURED,
        "How many times as fast decompressing is as compressing."),
    row!("cores.index_document", "time", (0.0, 1.0), Time(host.costs.index_document), MEASURED,
        "Indexing, for each document, on one core."),
    row!("cores.index_bytes_per_s", "bytes/s", RATES, Rate(host.costs.index_bytes_per_s), MEASURED,
        "Indexing, for the bytes of the sources, on one core."),
    row!("cores.parse_bytes_per_s", "bytes/s", RATES, Rate(host.costs.parse_bytes_per_s), MEASURED,
        "Parsing JSON, on one core."),
    row!("cores.search_document", "time", (0.0, 1.0), Time(host.costs.search_document),
        "assumed: what a common word's posting costs to score; searches declare their documents",
        "Searching, for each document that is looked at, on one core."),
    row!("cores.search_bytes_per_s", "bytes/s", RATES, Rate(host.costs.search_bytes_per_s),
        "assumed; searches declare their bytes", "Searching, for the bytes that are read, on one core."),
    row!("search.cpu", "time", (0.0, 3600.0), Time(host.costs.search),
        "none: searches declare their documents and bytes",
        "Searching a shard, beside what documents and bytes take, on one core; the mean."),
    row!("search.spread", "", (0.0, 10.0), Number(host.costs.search_spread),
        "none: the same search takes the same time",
        "Standard deviation over mean of what searches take, gamma-distributed; 1 is exponential."),
    row!("cores.competitors", "processes", (0.0, 100_000.0), Count(host.competitors), "none: the host is ours alone",
        "Processes of others that are always ready to run; searches and other work share the cores with them in \
         equal parts."),
    row!("cores.spread", "", (0.0, 1.0), Number(host.spread), "none: hosts of one kind are alike",
        "Standard deviation over mean of what the same work takes on the hosts, gamma-distributed; drawn for each, \
         and in each lap anew."),
    row!("cores.message", "time", (0.0, 1.0), Time(host.costs.message),
        "a system call and a task's wake-up on the machine of docs/benchmarks",
        "Sending or receiving a message, whatever its size, on one core."),
    row!("cores.dispatch", "time", (0.0, 1.0), Time(host.costs.dispatch),
        "none: this engine's loop takes a message up at once",
        "What a received message waits for a thread: selectors, queues of thread pools, pauses. No core works \
         meanwhile."),
    row!("recovery.open_copy", "time", (0.0, 3600.0), Time(host.costs.open_copy),
        "none: it is what the steps of a recovery take",
        "What a copy that recovers from another, or from its own files, takes apart from its bytes and operations: \
         updates of the cluster state, opening, the next round of the allocator."),
    row!("recovery.new_copy", "time", (0.0, 3600.0), Time(host.costs.new_copy),
        "none: it is what the steps of a recovery take",
        "What a copy takes besides where it begins without files: none is there to come back to."),
    row!("recovery.each_file", "time", (0.0, 60.0), Time(host.costs.each_file),
        "none: it is what the steps of a recovery take",
        "What each file that comes takes apart from its bytes and round trips: sync, rename, reading its checksum."),
    row!("recovery.first_copy", "time", (0.0, 3600.0), Time(host.costs.first_copy),
        "none: nodes of this engine are compiled before they start",
        "What a copy takes besides that begins to recover from another before any has on a node which has just started: \
         nothing is loaded or compiled there yet. Those of one round wait for that together."),
    row!("recovery.unlisted_copy", "time", (0.0, 3600.0), Time(host.costs.unlisted_copy),
        "none: nodes of this engine hear of a copy before it asks them",
        "What a copy that begins without files waits where its source has not heard of it yet: the sources that \
         narrows.recovery.hears_last._name names. One that takes its primary's place waits no longer than \
         indices.recovery.retry_delay_state_sync."),
    row!("recovery.unmarked_share", "", (0.0, 1.0), Number(host.costs.unmarked_share),
        "none: sources of this engine have targets wait for the state",
        "Share of the primaries that move whose target asks before their node has applied the state, and then asks \
         again after indices.recovery.retry_delay_state_sync. Drawn for each, but where a node that hears last asks or \
         is asked."),
    row!("recovery.compound_files", "on or off", NAMES, Switch(host.compound_files),
        "off: this engine's index library has no such format",
        "Whether a segment of a copy is three files, as in Lucene's compound format, and not six."),
    row!("cores.send_bytes_per_s", "bytes/s", RATES, MaybeRate(host.costs.send_bytes_per_s),
        "a bare socket over loopback in docs/benchmarks",
        "Sending a message's bytes: framing, copying; one connection's messages are on one core at a time."),
    row!("cores.receive_bytes_per_s", "bytes/s", RATES, MaybeRate(host.costs.receive_bytes_per_s),
        "a bare socket over loopback in docs/benchmarks",
        "Receiving a message's bytes; one connection's messages are on one core at a time."),
    row!("cores.encrypt_bytes_per_s", "bytes/s", RATES, MaybeRate(host.costs.encrypt_bytes_per_s),
        "none: connections of this engine have no TLS",
        "Encrypting a message's bytes (TLS between nodes), besides what sending them takes."),
    row!("cores.decrypt_bytes_per_s", "bytes/s", RATES, MaybeRate(host.costs.decrypt_bytes_per_s),
        "none: connections of this engine have no TLS",
        "Decrypting a message's bytes (TLS between nodes), besides what receiving them takes."),
    row!("packets.read", "time", (0.0, 1.0), Time(host.costs.packets.read), BUCKETS,
        "A thread that takes a stream of packets in: reading the connection once, however much has come."),
    row!("packets.receive", "time", (0.0, 1.0), Time(host.costs.packets.receive), BUCKETS,
        "A thread that takes a stream of packets in, for each packet."),
    row!("packets.apply", "time", (0.0, 1.0), Time(host.costs.packets.apply), BUCKETS,
        "Taking a version of a document into its bucket, on the thread that received it."),
    row!("packets.send", "time", (0.0, 1.0), Time(host.costs.packets.send), BUCKETS,
        "A thread that sends a stream of packets, for each packet."),
    row!("packets.relay", "time", (0.0, 1.0), Time(host.costs.packets.relay), BUCKETS,
        "A thread that decodes packets of a stream and passes each on by itself, for each packet."),
    row!("card.bytes_per_s", "bytes/s", RATES, Rate(host.card_bytes_per_s), "10 gigabit Ethernet",
        "Rate of a host's network card, each way."),
    row!("card.delay", "time", (0.0, 1.0), Time(host.card_delay), ASSUMED,
        "Delay through a card and half the switch behind it; a round trip within a site has four."),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::DiskScheduler;

    #[test]
    fn every_value_reads_back_as_it_is_shown() {
        let mut models = Models::default();
        for parameter in parameters() {
            let shown = parameter.text(&models);
            models.set(parameter.name, &shown).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parameter.text(&models), shown, "{}", parameter.name);
        }
        assert!(models.link.tcp_modelled, "naming a parameter of TCP turns it on");
        models.set("link.tcp", "off").unwrap();
        assert_eq!(models, Models::default());
    }

    #[test]
    fn times_are_shown_in_their_largest_unit_and_read_back() {
        let mut models = Models::default();
        let seek = parameters().iter().find(|p| p.name == "disk.seek").unwrap();
        for (said, shown) in [
            ("0ms", "0s"),
            ("8ms", "8ms"),
            ("42400micros", "42.4ms"),
            ("88200ns", "88.2µs"),
            ("1234567ns", "1234.567µs"),
            ("999ns", "999ns"),
        ] {
            models.set("disk.seek", said).unwrap();
            let before = models.clone();
            assert_eq!(seek.text(&models), shown);
            models.set("disk.seek", shown).unwrap();
            assert_eq!(models, before, "{shown}");
        }
    }

    #[test]
    fn every_parameter_has_a_place_of_its_own() {
        for parameter in parameters() {
            let bounds = parameter.bounds();
            let other = match (parameter.name, parameter.text(&Models::default()).as_str()) {
                ("disk.scheduler", _) => "cfq",
                ("link.congestion_control", _) => "reno",
                (_, "on") => "off",
                (_, "off") => "on",
                _ => {
                    let first = bounds.split(" or ").next().unwrap();
                    let last = first.split(" to ").nth(usize::from(bounds.contains(" to ")));
                    last.unwrap_or("").trim_end_matches(',')
                }
            };
            let mut models = Models::default();
            models.set(parameter.name, other).unwrap_or_else(|error| panic!("{error}"));
            let changed = |p: &&Parameter| p.text(&models) != p.text(&Models::default());
            let names: Vec<&str> = parameters().iter().filter(changed).map(|p| p.name).collect();
            // TCP's parameters turn it on besides.
            let expected: &[&str] = if names.contains(&"link.tcp") && names.len() > 1 {
                &["link.tcp", parameter.name]
            } else {
                &[parameter.name]
            };
            assert_eq!(names, expected, "{} = {other}", parameter.name);
        }
    }

    #[test]
    fn takes_what_the_field_writes() {
        let mut models = Models::default();
        for (name, text) in [
            ("link.initial_window_segments", "4"),
            ("link.max_window_bytes", "14480b"),
            ("link.loss", "0.1%"),
            ("disk.seek", "8ms"),
            ("disk.read_bytes_per_s", "66mb"),
            ("card.bytes_per_s", "10gbit"),
            ("disk.scheduler", "cfq"),
            ("cores.send_bytes_per_s", "unlimited"),
        ] {
            models.set(name, text).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(models.link.tcp.initial_window_segments, 4);
        assert!(models.link.tcp_modelled);
        assert_eq!(models.link.max_window_bytes, Some(14480));
        assert!((models.link.tcp.loss - 0.001).abs() < 1e-12);
        assert_eq!(models.host.disk.seek, Duration::from_millis(8));
        assert_eq!(models.host.disk.read_bytes_per_s, 66 << 20);
        assert_eq!(models.host.card_bytes_per_s, 1_250_000_000);
        assert_eq!(models.host.disk.scheduler, DiskScheduler::Cfq);
        assert_eq!(models.host.costs.send_bytes_per_s, None);
    }

    #[test]
    fn refuses_with_meaning_and_bounds() {
        let mut models = Models::default();
        let mut said = |name, text| models.set(name, text).unwrap_err().to_string();
        assert_eq!(
            said("link.loss", "0.5"),
            "link.loss = \"0.5\" is out of range: Share of the segments that the line loses, besides what \
             overflows its queue. It is 0 to 0.1"
        );
        assert_eq!(
            said("disk.seek", "soon"),
            "disk.seek = \"soon\": What a request costs before its first byte. Write a time, for example \
             8ms or 20micros; 0s to 1s"
        );
        assert!(said("disk.schedular", "cfq").starts_with(
            "there is no model parameter \"disk.schedular\"; did you mean \"disk.scheduler\""
        ));
        assert!(said("disk.scheduler", "bfq").ends_with("noop or deadline or cfq"));
        assert!(said("cores.count", "0").contains("1 to 4096"));
        assert!(said("cores.count", "2.5").contains("a whole number"));
        for nonsense in ["NaN", "inf", "", "-1"] {
            assert!(models.set("link.loss", nonsense).is_err(), "{nonsense}");
        }
        assert_eq!(models, Models::default());
    }
}
