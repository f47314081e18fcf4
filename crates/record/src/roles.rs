//! Roles of nodes, as Elasticsearch and OpenSearch call them.

/// Nodes of partially mounted indices: a cache fills their disks, whatever is on them.
pub const FROZEN: &str = "data_frozen";
/// Nodes of indices that are hardly searched.
pub const COLD: &str = "data_cold";

/// Whether a role lets a node hold copies; tiers of Elasticsearch do.
pub fn holds_data(role: &str) -> bool {
    role == "data" || role.starts_with("data_")
}

/// Whether a role lets a node hold copies of a new index, which prefers the tier of contents where there are tiers.
pub fn holds_new_indices(role: &str) -> bool {
    matches!(role, "data" | "data_content")
}

/// Whether a node holds copies of these tiers alone; not where its roles are not told.
pub fn is_dedicated_to(tiers: &[&str], roles: &[String]) -> bool {
    let mut data = roles.iter().filter(|role| holds_data(role)).peekable();
    data.peek().is_some() && data.all(|role| tiers.contains(&role.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dedicated_node_holds_nothing_else() {
        let is_frozen = |roles: &[&str]| {
            let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
            is_dedicated_to(&[FROZEN], &roles)
        };
        assert!(is_frozen(&["data_frozen", "ingest"]));
        for other in [&[][..], &["master"], &["data_frozen", "data_cold"], &["data", "data_frozen"]]
        {
            assert!(!is_frozen(other), "{other:?}");
        }
    }
}
