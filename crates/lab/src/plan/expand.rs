//! One variant for each value of a setting, so that a plan writes a case once.

use toml::Spanned;

use super::document::{EachTable, VariantTable};
use super::scalar;

/// Replaces each variant that has an `each` by one for each value, called `name: value`, of which the first is the
/// baseline of the others. Values that no setting can have are kept, and refused where settings are resolved.
pub(super) fn expand(variants: Vec<VariantTable>) -> Vec<VariantTable> {
    let mut expanded = Vec::with_capacity(variants.len());
    for mut variant in variants {
        match variant.each.take() {
            Some(each) => expanded.extend(one_for_each(&variant, &each)),
            None => expanded.push(variant),
        }
    }
    expanded
}

fn one_for_each(variant: &VariantTable, each: &EachTable) -> Vec<VariantTable> {
    let mut first = variant.beside.clone();
    let one = |value: &Spanned<toml::Value>| {
        let text = scalar::text(value.get_ref()).unwrap_or_default();
        let name = format!("{}: {text}", variant.name.get_ref());
        let name = Spanned::new(variant.name.span(), name);
        let beside = first.get_or_insert_with(|| name.clone()).clone();
        let mut one = variant.clone();
        one.beside = Some(beside).filter(|beside| beside.get_ref() != name.get_ref());
        one.settings.insert(each.setting.clone(), value.clone());
        one.name = name;
        one
    };
    each.values.iter().map(one).collect()
}
