//! What it concludes: the talk on recovering a code search.

use record::Limit;

use super::claim::{claim, figure, not_measured, one, slower};
use super::conclusion::Bound::{About, AtLeast, AtMost, Between};
use super::conclusion::Expected::{Fails, Holds, HoldsBut};
use super::conclusion::{Conclusion, Document, Measure, Quantity, When};

pub(super) const DOCUMENT: Document = Document {
    id: "life-after-ec2",
    title: "Life After EC2",
    by: "@drewr, 2013",
    plans: &[SHARDS, RAISED, STREAMS, ONE_FILE],
    conclusions: CONCLUSIONS,
};

const SHARDS: &str = "shard-recovery";
const RAISED: &str = "shard-recovery-raised";
const STREAMS: &str = "shard-recovery-streams";
const ONE_FILE: &str = "copy-one-file";
/// What the node that restarts receives in the ten seconds with the most.
const RESTARTED: Quantity = Quantity::Received(When::Peak, "leader-7");

const MINIMAL: &str = "The slide has no figure: a tenth is ours. Ours are far below it in the busiest five \
                       minutes, as the throttle of 20 MB/s lets nothing else be. \
                       Disks of the sources are no row: in a run of 2026-11-28 the busiest was busy for 16 % of the time.";

const INTERLEAVED: &str = "No setting here is that one: files that a recovery fetches at a time stand for it, and a hundredth of the size was \
                           run. What it did for interleaving has no figure. Four nodes restart, as in shard-recovery; where \
                           one does, 24 are 1.4 times as fast as 12, as they keep more of the sources' disks busy.";

#[rustfmt::skip]
const CONCLUSIONS: &[Conclusion] = &[
    claim("slide 5", "After 45 minutes not a single shard has recovered",
        one(SHARDS, "20mb, the default", Quantity::DoneAfter(45.0 * 60.0)), AtMost(0.0), Holds),
    claim("slide 5", "Meanwhile the load on the machines is minimal: below a tenth of the 32 cores of the node that restarted",
        one(RAISED, "20mb, the default", Quantity::Cores(When::Peak, "leader-7")), AtMost(3.2), HoldsBut(MINIMAL)),
    claim("slide 5", "... as are disk and network: it receives below a tenth of 10 Gbit/s, and writes that",
        one(RAISED, "20mb, the default", RESTARTED), AtMost(125.0), HoldsBut(MINIMAL)),
    claim("slide 6", "After five hours 5 of 128 shards have recovered",
        one(SHARDS, "20mb, the default", Quantity::DoneAfter(5.0 * 3600.0)), Between(4.0, 6.0),
        Fails("Six copies at a time share the throttle evenly here, so that all six end together, after 8 h. One after \
         another (the variant 20mb, one at a time) three are done by then and a fourth 20 minutes later: five shards of \
         100 GB in 5 h are 27.8 MB/s, which is more than the throttle. Smaller ones may have come first, or on more nodes: \
         the slides do not say.")),
    claim("slide 6", "At this rate it will take a full week",
        one(SHARDS, "20mb, the default", Quantity::Seconds), About(604_800.0), HoldsBut("Bytes over the throttle.")),
    claim("slides 9, 10 and 35", "A network of 10 Gbit/s is not that slow: the link holds less than half of the time",
        one(SHARDS, "2gb", Quantity::HeldBy(Limit::LinkRate)), AtMost(0.5), Holds),
    claim("slides 10, 34 and 35", "A file that scp copies between two nodes comes at 66 MB/s, as a disk is read for it",
        one(ONE_FILE, "cfq", Quantity::NodeRate), About(66.0),
        HoldsBut("The copy of a shard of one file, without a throttle, stands for scp. It is the disk that holds it: by the \
         kernel's defaults CFQ reads 63.5 MB/s for one process.")),
    claim("slide 13", "What is being copied grows by 20M/s: 630 MB in 30 s",
        one(SHARDS, "20mb, the default", Quantity::NodeRate), About(20.97), HoldsBut("It is the throttle.")),
    claim("slide 27", "hot_threads was right: the rate limiter holds it",
        one(SHARDS, "20mb, the default", Quantity::HeldBy(Limit::Throttle)), AtLeast(0.9), Holds),
    claim("slides 28 and 29", "Raising the throttle to 500mb is progress",
        slower(SHARDS, "20mb, the default", "500mb"), AtLeast(1.5), Holds),
    claim("slides 28 and 29", "... also while copies recover: their node receives more than before",
        Measure::Ratio(figure(RAISED, "raised meanwhile", RESTARTED), figure(RAISED, "20mb, the default", RESTARTED)),
        AtLeast(1.5), HoldsBut("When it was raised is not published, so that peaks are compared, and no times.")),
    claim("slides 30 and 31", "2gb brings no more: nodes basically bored",
        slower(SHARDS, "500mb", "2gb"), Between(0.9, 1.1), Holds),
    claim("slides 28, 30 and 31", "... also with concurrent_streams of 12, then 24, which were to handle interleaving",
        slower(STREAMS, "500mb, 12 streams", "2gb, 24 streams"), Between(0.9, 1.1), HoldsBut(INTERLEAVED)),
    claim("slide 31", "Nothing else is throttled: max_bytes_per_sec holds it for less than a tenth of the time",
        one(SHARDS, "2gb", Quantity::HeldBy(Limit::Throttle)), AtMost(0.1),
        HoldsBut("The slide has no figure: a tenth is ours. At 2gb the throttle lets through ten times what comes.")),
    not_measured("slide 31", "Only one thread is active, and writes are very erratic",
        "The chart has no scale, and copies here are tasks: no thread is theirs that could be counted. It would need a \
         pool of threads for recoveries, and samples of it."),
    claim("slides 33 to 44", "... because reading the disk through CFQ is the limit",
        one(SHARDS, "2gb", Quantity::HeldBy(Limit::DiskRead)), AtLeast(0.5), Holds),
    claim("slides 48 to 53", "noop removes the limit", slower(SHARDS, "2gb", "2gb, noop"), AtLeast(1.5), Holds),
    claim("slides 51 to 53", "... also trickled through the nodes while copies recover: their node receives more than before",
        Measure::Ratio(figure(RAISED, "raised, then noop node by node", RESTARTED),
            figure(RAISED, "raised meanwhile", RESTARTED)),
        AtLeast(1.5), HoldsBut("When each node was changed is not published, so that peaks are compared, and no times.")),
    claim("slides 48 and 49", "deadline made no difference: one file takes as long as through cfq",
        slower(ONE_FILE, "cfq", "deadline"), Between(0.9, 1.1),
        Fails("Linux's deadline does not idle after a read, so that in this model it is noop. To tell them apart it would \
         need the place on disk of each request. Beside which of the two it made none is not said: beside noop it makes \
         none here, by its name alone.")),
    claim("slide 15", "node_concurrent_recoveries of 6 did not help: as long as with 2, the default",
        slower(SHARDS, "20mb, two at a time", "20mb, the default"), Between(0.9, 1.1), Holds),
    claim("slide 55", "The defaults are tuned for EC2: not for this cluster, where 2gb and noop are progress",
        slower(SHARDS, "20mb, the default", "2gb, noop"), AtLeast(1.5),
        HoldsBut("Whether they fit EC2 is not measured: how long anything took there is not published.")),
    claim("slides 56 to 59", "indices.* is still node-level: each node receives what max_bytes_per_sec allows",
        one(SHARDS, "20mb, the default", Quantity::NodeRate), About(20.97), HoldsBut("It is the throttle.")),
    not_measured("slides 56 to 59", "With RAID or SSD noop, otherwise experiment",
        "The first half is a row of its own (slides 48 to 53). The model's disks have no seek that depends on where they \
         read last, which is what another scheduler would be for."),
];
