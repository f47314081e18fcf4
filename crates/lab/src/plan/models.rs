//! The virtual world of a variant: the parameters of its plan, applied in order.

use world::model::{Models, parameters};

use super::parameter::{Parameter, ParameterScope};
use super::variant::Variant;

/// What the link, and the hosts in `scope`, are like.
pub fn models(variant: &Variant, scope: ParameterScope) -> Models {
    let mut models = Models::default();
    for parameter in applying(variant, scope) {
        let set = models.set(&parameter.name, &parameter.value);
        set.expect("a resolved plan's parameters were set once already");
    }
    models
}

/// A parameter as a variant uses it, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInUse {
    /// Which hosts it is for.
    pub scope: ParameterScope,
    /// Name.
    pub name: &'static str,
    /// Value, with its unit or as a plain number.
    pub value: String,
    /// Unit.
    pub unit: &'static str,
    /// Where the value comes from.
    pub source: String,
    /// The published rows that it was fitted to; empty where it was not fitted.
    pub calibrated_on: Vec<String>,
}

/// Every parameter of the world as a variant uses it, those that its plan sets first; defaults of all hosts
/// after them.
pub fn models_in_use(variant: &Variant) -> Vec<ModelInUse> {
    let mut rows = Vec::new();
    for scope in [ParameterScope::Everywhere, ParameterScope::Leader, ParameterScope::Follower] {
        let models = models(variant, scope);
        for row in parameters() {
            let given = |p: &&Parameter| p.scope == scope && p.name == row.name;
            // A variant's parameter for all hosts overrides its plan's parameter for one cluster.
            let Some(last) = variant.parameters.iter().rfind(given) else { continue };
            rows.push(ModelInUse {
                scope,
                name: row.name,
                value: row.text(&models),
                unit: row.unit,
                source: last.source.clone(),
                calibrated_on: last.calibrated_on.clone(),
            });
        }
    }
    let defaults = models(variant, ParameterScope::Everywhere);
    for row in parameters() {
        if rows
            .iter()
            .any(|known| known.scope == ParameterScope::Everywhere && known.name == row.name)
        {
            continue;
        }
        rows.push(ModelInUse {
            scope: ParameterScope::Everywhere,
            name: row.name,
            value: row.text(&defaults),
            unit: row.unit,
            source: row.source.to_owned(),
            calibrated_on: Vec::new(),
        });
    }
    rows
}

fn applying(variant: &Variant, scope: ParameterScope) -> impl Iterator<Item = &Parameter> {
    variant
        .parameters
        .iter()
        .filter(move |p| p.scope == ParameterScope::Everywhere || p.scope == scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(scope: ParameterScope, name: &str, value: &str) -> Parameter {
        let (name, value, source) = (name.to_owned(), value.to_owned(), "a test".to_owned());
        Parameter { scope, name, value, source, calibrated_on: Vec::new() }
    }

    fn variant() -> Variant {
        Variant {
            parameters: vec![
                parameter(ParameterScope::Everywhere, "cores.count", "16"),
                parameter(ParameterScope::Everywhere, "disk.scheduler", "cfq"),
                parameter(ParameterScope::Leader, "cores.count", "4"),
                parameter(ParameterScope::Everywhere, "disk.scheduler", "noop"),
            ],
            own_parameters: vec!["disk.scheduler".to_owned()],
            ..Variant::default()
        }
    }

    #[test]
    fn a_cluster_goes_before_the_plan_and_the_variant_before_both() {
        let cores = |scope| models(&variant(), scope).host.cores;
        assert_eq!(
            (
                cores(ParameterScope::Everywhere),
                cores(ParameterScope::Leader),
                cores(ParameterScope::Follower)
            ),
            (16, 4, 16)
        );
        let disk = models(&variant(), ParameterScope::Follower).host.disk;
        assert_eq!(disk.scheduler, world::model::DiskScheduler::Noop);
    }

    #[test]
    fn every_parameter_is_listed_with_its_source() {
        let rows = models_in_use(&variant());
        let of = |scope, name| {
            let row = rows.iter().find(|row| row.scope == scope && row.name == name).unwrap();
            (row.value.as_str(), row.source.as_str())
        };
        assert_eq!(of(ParameterScope::Everywhere, "cores.count"), ("16", "a test"));
        assert_eq!(of(ParameterScope::Leader, "cores.count"), ("4", "a test"));
        assert_eq!(of(ParameterScope::Everywhere, "disk.scheduler"), ("noop", "a test"));
        assert_eq!(rows.len(), parameters().len() + 1);
        assert!(rows.iter().all(|row| !row.source.is_empty() && !row.value.is_empty()));
    }
}
