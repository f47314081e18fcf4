//! What a node has measured of compression on each path, for settings that say `auto`.

use std::collections::BTreeMap;

use policy::transfer::compression::AutoCompression;

/// What is known of each path by the alias of the cluster at its end; none is this one.
pub(crate) type Paths = BTreeMap<Option<String>, AutoCompression>;
