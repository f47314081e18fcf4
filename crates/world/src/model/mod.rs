//! What the virtual world's links, disks, cores and network cards are like. Pure data, with one table of all
//! parameters: [`parameters`].

mod disk;
mod host;
mod parameter;
mod spread;
mod tcp;

pub use disk::{Disk, DiskScheduler};
pub(crate) use host::at_rate;
pub use host::{CoreCosts, Host, PacketCosts};
pub use parameter::{ModelError, Parameter, parameters};
pub use spread::{gamma_factor, split_mix};
pub use tcp::{CongestionControl, Tcp};

use crate::LinkConfig;

/// What a link's connections and its queue are like, besides its round trip and rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkModel {
    /// Whether connections begin slowly and shrink after a loss, as [`LinkModel::tcp`] says.
    pub tcp_modelled: bool,
    /// How they do.
    pub tcp: Tcp,
    /// Rate in each direction, where it is the test bed's and not the plan's to say. Who opens the link applies it.
    pub rate_bytes_per_s: Option<u64>,
    /// The receiver's window; none leaves what the link says.
    pub max_window_bytes: Option<u64>,
    /// Bytes that wait in front of the line; what comes on top is lost. None is without bound.
    pub queue_bytes: Option<u64>,
}

impl LinkModel {
    /// A link with this behaviour.
    pub fn apply(&self, mut link: LinkConfig) -> LinkConfig {
        link.window_bytes = self.max_window_bytes.or(link.window_bytes);
        link.queue_bytes = self.queue_bytes;
        link.tcp = self.tcp_modelled.then(|| self.tcp.clone());
        link
    }
}

/// All that can be said of a test bed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Models {
    /// The link between clusters.
    pub link: LinkModel,
    /// Every host: cores, disk, card.
    pub host: Host,
}
