//! The virtual world of a variant: the parameters of its plan, applied in order.

use record::ModelInfo;
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

/// Every parameter of the world as a variant uses it, those that its plan sets first; defaults of all hosts
/// after them.
pub fn models_in_use(variant: &Variant) -> Vec<ModelInfo> {
    // A variant's parameter for all hosts overrides its plan's parameter for one cluster.
    let given = |scope: ParameterScope, name: &str| {
        variant.parameters.iter().rfind(|p| p.scope == scope && p.name == name)
    };
    let mut rows = Vec::new();
    let mut list = |scope: ParameterScope, are_given: bool| {
        let models = models(variant, scope);
        for row in parameters() {
            let given = given(scope, row.name);
            if given.is_some() != are_given {
                continue;
            }
            let fitted = given.filter(|given| !given.calibrated_on.is_empty());
            rows.push(ModelInfo {
                hosts: scope.name().to_owned(),
                name: row.name.to_owned(),
                value: row.text(&models),
                unit: row.unit.to_owned(),
                source: given.map_or(row.source, |given| &given.source).to_owned(),
                calibrated_on: fitted.map(|given| given.calibrated_on.join(", ")),
            });
        }
    };
    for scope in [ParameterScope::Everywhere, ParameterScope::Leader, ParameterScope::Follower] {
        list(scope, true);
    }
    list(ParameterScope::Everywhere, false);
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
        let of = |hosts: &str, name: &str| {
            let row = rows.iter().find(|row| row.hosts == hosts && row.name == name).unwrap();
            (row.value.as_str(), row.source.as_str())
        };
        assert_eq!(of("all", "cores.count"), ("16", "a test"));
        assert_eq!(of("leader", "cores.count"), ("4", "a test"));
        assert_eq!(of("all", "disk.scheduler"), ("noop", "a test"));
        assert_eq!(rows.len(), parameters().len() + 1);
        assert!(rows.iter().all(|row| !row.source.is_empty() && !row.value.is_empty()));
    }
}
