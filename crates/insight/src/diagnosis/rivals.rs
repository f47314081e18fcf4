//! What speaks against the causes that were not named. It is put into words once somebody reads it: a look at many
//! recoveries has thousands of reasons, and shows a handful.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::{Serialize, Serializer};

use super::class::Class;
use super::threshold::Threshold;
use crate::words;

/// A cause that was looked for and is not what holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuledOut {
    /// The cause.
    pub class: Class,
    /// What kind of reason speaks against it.
    pub by: By,
    /// The reason: the figure beside its threshold, or what is not told.
    pub why: String,
}

/// What kind of reason speaks against a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A figure is on the other side of its threshold.
    Figure,
    /// What would tell is missing: it may hold all the same.
    Untold,
    /// It was seen, and is weaker than what was named, or too weak to be named.
    Weaker,
}

impl By {
    /// The name for people.
    pub fn label(self) -> &'static str {
        match self {
            By::Figure => "ruled out",
            By::Untold => "not told",
            By::Weaker => "weaker",
        }
    }
}

type Make = Box<dyn FnOnce() -> Vec<RuledOut> + Send>;

/// Causes that were ruled out, as a slice.
#[derive(Clone)]
pub struct Rivals(Arc<LazyLock<Vec<RuledOut>, Make>>);

impl Rivals {
    pub(crate) fn later(make: impl FnOnce() -> Vec<RuledOut> + Send + 'static) -> Rivals {
        Rivals(Arc::new(LazyLock::new(Box::new(make))))
    }
}

impl From<Vec<RuledOut>> for Rivals {
    fn from(all: Vec<RuledOut>) -> Rivals {
        Rivals::later(|| all)
    }
}

impl Deref for Rivals {
    type Target = [RuledOut];

    fn deref(&self) -> &[RuledOut] {
        &self.0
    }
}

impl PartialEq for Rivals {
    fn eq(&self, other: &Rivals) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Rivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Rivals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

/// Why a judge does not name its cause.
pub(crate) struct Against {
    pub(crate) by: By,
    pub(crate) why: Why,
}

/// A reason, in words or still to be put into words.
pub(crate) enum Why {
    Said(String),
    Later(Box<dyn Fn() -> String + Send>),
    /// The node of this name tells nothing of this.
    Untold(String, &'static str),
}

impl Why {
    pub(crate) fn later(words: impl Fn() -> String + Send + 'static) -> Why {
        Why::Later(Box::new(words))
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Why::Said(words) => words.clone(),
            Why::Later(words) => words(),
            Why::Untold(node, what) => format!("{node} tells nothing of {what}"),
        }
    }
}

impl From<&str> for Why {
    fn from(words: &str) -> Why {
        Why::Said(words.to_owned())
    }
}

impl From<String> for Why {
    fn from(words: String) -> Why {
        Why::Said(words)
    }
}

impl Against {
    /// A figure that is on the other side of its threshold.
    pub(crate) fn figure(why: impl Into<Why>) -> Against {
        Against { by: By::Figure, why: why.into() }
    }

    /// A share of the time that would have to be larger. `what` takes so much of it, in words.
    pub(crate) fn below(what: impl Into<Why>, share: f64, least: Threshold) -> Against {
        let what = what.into();
        Against::figure(Why::later(move || too_little(&what.words(), share, least)))
    }

    /// The same of what takes the time of a node, in words that take the node's name.
    pub(crate) fn below_at(
        node: &str,
        what: fn(&str) -> String,
        share: f64,
        least: Threshold,
    ) -> Against {
        let node = node.to_owned();
        Against::figure(Why::later(move || too_little(&what(&node), share, least)))
    }

    /// Something that the cluster does not tell.
    pub(crate) fn untold(why: impl Into<Why>) -> Against {
        Against { by: By::Untold, why: why.into() }
    }

    /// Something that a node does not tell.
    pub(crate) fn untold_at(node: &str, what: &'static str) -> Against {
        Against::untold(Why::Untold(node.to_owned(), what))
    }
}

fn too_little(what: &str, share: f64, least: Threshold) -> String {
    let (share, least) = (words::percent(share), words::percent(least.value));
    format!("{what} {share} of the time ({least} would tell)")
}
