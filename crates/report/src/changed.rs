//! What is not as in the plan because of the place where it ran.

use insight::Summary;

use crate::style::plain;

/// What is not as in the plan, in the words of every table.
pub(crate) fn not_as_planned<'a>(summary: &'a Summary<'_>) -> impl Iterator<Item = String> + 'a {
    summary.manifest.changes.iter().map(|change| format!("Not as in the plan: {}", plain(change)))
}
