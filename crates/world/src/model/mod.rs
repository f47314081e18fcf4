//! What the virtual world's links, disks, cores and network cards are like. Pure data, with one table of all
//! parameters: [`parameters`].

mod disk;
mod host;
mod link;
mod parameter;
mod table;
mod tcp;

pub use disk::{Disk, DiskScheduler};
pub(crate) use host::at_rate;
pub use host::{CoreCosts, Host, PacketCosts};
pub use link::{Direction, LinkConfig, LinkModel, LinkStats, LinkTimes};
pub use parameter::{ModelError, Parameter};
pub use table::parameters;
pub use tcp::{CongestionControl, Tcp};

/// All that can be said of a test bed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Models {
    /// The link between clusters.
    pub link: LinkModel,
    /// Every host: cores, disk, card.
    pub host: Host,
}
