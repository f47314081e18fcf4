//! What can hold a recovery, a copy or a follower back, by name.

use serde::{Deserialize, Serialize};

macro_rules! class {
    ($($class:ident: $file:ident,)*) => {
        /// The name of a cause. Its [`super::Rule`] says how it is recognised and what lifts it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Class {
            $(#[doc = concat!("Recognised in `causes/", stringify!($file), ".rs`.")] $class,)*
        }

        impl Class {
            /// Every class, in the order of the table.
            pub const ALL: &'static [Class] = &[$(Class::$class),*];
        }
    };
}

super::table::table!(class);
