//! What the source documents conclude from their figures, as inequalities that can be checked.
//!
//! A conclusion says where it stands, what it claims, which numbers of ours speak of it, and what they have to be.
//! Where the text gives a number, ours is within a tenth of it; where the text says that something helps or hurts, ours
//! has at least half of the document's own effect, as a factor; where it has words alone, the bound is ours.

mod article;
mod benchmark_plan;
mod claim;
mod conclusion;
mod dcp_rebalance;
mod elsewhere;
mod judge;
mod kind;
mod life_after_ec2;
mod replica_selection;

pub use conclusion::{
    Bound, Conclusion, Document, Expected, Figure, Measure, Quantity, RowName, When,
};
pub use elsewhere::Elsewhere;
pub use judge::Judged;

/// The documents, in the order of the page.
pub const DOCUMENTS: &[Document] = &[
    benchmark_plan::DOCUMENT,
    article::DOCUMENT,
    replica_selection::DOCUMENT,
    dcp_rebalance::DOCUMENT,
    life_after_ec2::DOCUMENT,
];

/// Plans without published rows of which conclusions speak, and the part of its size of which one run stands for each:
/// some take minutes as they are.
pub const PARTS: &[(&str, f64)] = &[
    ("copy-one-file", 1.0),
    ("dcp-larger-items", 1.0),
    ("dcp-memory", 1.0),
    ("follow-large", 1.0),
    ("follow-small-and-medium", 1.0),
    ("shard-recovery-streams", 0.01),
    ("stability", 0.05),
    ("stability-restarts", 0.05),
];

/// Every conclusion, in the order of the documents.
pub fn conclusions() -> impl Iterator<Item = &'static Conclusion> {
    DOCUMENTS.iter().flat_map(|document| document.conclusions)
}
