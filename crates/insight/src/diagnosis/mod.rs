//! What holds a live cluster's recoveries, copies and followers, told from observations alone.
//!
//! | module | holds |
//! | --- | --- |
//! | `table`, `class` | the table of causes, one line each, and the names that are made of it |
//! | `causes` | a file for each cause: its rule with its thresholds, and its judges |
//! | `cause`, `rule`, `threshold` | what such a file declares |
//! | `series`, `node_span` | looks in order of time, and what changed between them; one node in them |
//! | `copying`, `busy`, `replaying`, `waiting`, `following`, `streaming` | what judges look at |
//! | `deciders` | what keeps copies from nodes, and what each asks for |
//! | `moving`, `snapshots` | what goes on beside recoveries: copies that move, snapshots that are taken |
//! | `watermarks` | disks that are too full, and what the cluster forbids meanwhile |
//! | `begun_anew` | recoveries that are given up and begin anew |
//! | `manager_queue` | tasks that wait for the manager |
//! | `repository_limit` | a restore or a snapshot at the rate of its repository: the cause `rate_limit` asks it |
//! | `answers`, `rivals` | what judges of rival causes say, and what speaks against each |
//! | `unanswered` | what a look has no answer to |
//! | `ceilings` | which limits are near besides: a gain is promised up to the nearest, and it is the next |
//! | `knobs` | which settings rule which recovery |
//! | `advised` | the values that were advised before, which stay while one looks |
//! | `alike` | findings of one cause at several places, which are said once |
//! | `recovery`, `diagnose` | asking the judges, and what is made of their answers |
//! | [`probe`] | changing a setting for seconds, to tell apart what looks the same |
//! | `pace`, `node_pace`, `flow` | rates and times to go; what each node does now, and what goes from node to node |
//! | `green` | when the cluster will be green |
//! | `changes` | what changed from one diagnosis to another |
//! | `events` | what happened between two looks |
//! | `steering` | [`Onlooker`]: observations as looks of `policy::steering` |
//! | [`score`], `baselines` | scores of verdicts on known causes; what simpler tools would say |
//!
//! Two looks are needed: counters alone say nothing. The traps of the field are kept: source and target pauses are
//! summed, a limiter is a node's and not a shard's, pauses of several threads may exceed the time, and a setting
//! that was acknowledged counts only if the rate obeys it.

mod advised;
mod alike;
mod answers;
mod baselines;
mod begun_anew;
mod busiest;
mod busy;
mod cause;
mod causes;
mod ceilings;
mod changes;
mod class;
mod copying;
mod deciders;
mod diagnose;
mod events;
mod finding;
mod flow;
mod following;
mod green;
mod knobs;
mod manager_queue;
mod moving;
mod node_pace;
mod node_span;
mod pace;
pub mod probe;
mod recovery;
mod replaying;
mod repository_limit;
mod rivals;
mod rule;
pub mod score;
mod series;
mod snapshots;
mod steering;
mod streaming;
mod table;
mod threshold;
mod unanswered;
mod waiting;
mod watermarks;

pub use advised::Advised;
pub use alike::Alike;
pub use baselines::{highest_utilisation, settings_lint};
pub use changes::{Changes, Pair, changes};
pub use class::Class;
pub use diagnose::{Diagnosis, OfNodes, diagnose, diagnose_again, recorded, untold};
pub use events::{Event, EventFinder, Topic};
pub use finding::{Evidence, Finding, Gain, Lift, Next};
pub use flow::{Flow, flows};
pub use green::{TimeToGreen, time_to_green};
pub(crate) use knobs::{Knobs, SLOTS, to_step};
pub use node_pace::{NodePace, node_paces};
pub use pace::{Pace, paces};
pub use rivals::{By, Rivals, RuledOut};
pub use rule::Rule;
pub use series::Series;
pub use steering::Onlooker;
pub use threshold::Threshold;
pub(crate) use threshold::{CPU_BUSY, GIVEN_BACK};
pub use unanswered::tells_of_recoveries;

/// Every number that notes compare with, for operators.
pub const NOTE_THRESHOLDS: &[Threshold] =
    &[manager_queue::WAITED_MS, manager_queue::TASKS, manager_queue::LOOKS, snapshots::STILL_S];
