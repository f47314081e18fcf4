mod embedded;
mod live;
mod opensearch;
mod simulated;

pub use embedded::EmbeddedTarget;
pub use live::UrlTarget;
pub use opensearch::{DEFAULT_HEAP, OpenSearchTarget, Release};
pub use simulated::VirtualTarget;
