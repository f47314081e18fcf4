//! `[[variant]]`: what each changes of the plan.

use std::collections::BTreeSet;

use record::text::has_hidden;

use super::parameters::parameters;
use super::test_bed::{test_bed, unknown_test_bed};
use super::together::{Together, every};
use crate::error::Result;
use crate::plan::document::{Parameters, VariantTable};
use crate::plan::file::Plan;
use crate::plan::parameter::{Parameter, ParameterScope};
use crate::plan::topology::{Cluster, LEADER};
use crate::plan::variant::Variant;

impl Plan {
    pub(super) fn variants(
        &self,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
        leader: Cluster,
        scale: f64,
    ) -> Result<Vec<Variant>> {
        let variants = &self.document.variant;
        if variants.get_ref().is_empty() {
            return Err(self.error(variants.span(), "a plan has at least one [[variant]]"));
        }
        let settings = self.settings(&self.document.settings, check_setting);
        let common = (settings, self.common_parameters()).together();
        // Where what they share is wrong, their own is checked all the same.
        let (settings, parameters) =
            common.as_ref().map_or_else(|_| Default::default(), Clone::clone);
        let shared = Variant { settings, parameters, ..Variant::default() };
        let mut names = BTreeSet::new();
        let resolved = variants.get_ref().iter().map(|variant| {
            let is_first = names.insert(variant.name.get_ref());
            let name = self.variant_name(variant, is_first);
            let rest = self.variant(variant, &shared, check_setting, leader, scale);
            Ok((name, rest).together()?.1)
        });
        let resolved = every(resolved);
        Ok((common, resolved).together()?.1)
    }

    fn variant_name(&self, variant: &VariantTable, is_first: bool) -> Result<()> {
        let name = &variant.name;
        let message = match name.get_ref() {
            text if has_hidden(text) => {
                "a variant's name has only characters that can be seen".to_owned()
            }
            text if text.is_empty() || !is_first => {
                let other =
                    if text.is_empty() { "first".to_owned() } else { format!("{text} again") };
                format!(
                    "each variant has a name of its own; this one is empty or taken: write for example name = \"{other}\""
                )
            }
            _ => return Ok(()),
        };
        Err(self.error(name.span(), message))
    }

    /// A variant, which starts from what is `common` to all of them.
    fn variant(
        &self,
        variant: &VariantTable,
        common: &Variant,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
        leader: Cluster,
        scale: f64,
    ) -> Result<Variant> {
        let published = variant.published.as_ref().map(|table| self.published(table));
        let replicas = variant.replicas.as_ref().map(|number| self.replicas(number, leader));
        let nodes: Vec<String> = (0..leader.nodes).map(|n| format!("{LEADER}-{n}")).collect();
        let found = (
            self.settings(&variant.settings, check_setting),
            self.parameters(ParameterScope::Everywhere, &variant.parameters),
            published.transpose(),
            self.baseline(variant),
            replicas.transpose(),
            self.load(variant.load.as_ref(), &nodes, scale),
            self.faults(&variant.fault, &self.fault_nodes()),
            self.setting_changes(&variant.change, check_setting),
        );
        let (own_settings, own, published, baseline, replicas, load, faults, setting_changes) =
            found.together()?;
        let own_parameters = own.iter().map(|parameter| parameter.name.clone()).collect();
        Ok(Variant {
            name: variant.name.get_ref().clone(),
            settings: common.settings.clone().into_iter().chain(own_settings).collect(),
            parameters: common.parameters.iter().cloned().chain(own).collect(),
            own_parameters,
            published,
            baseline,
            replicas,
            load,
            faults,
            setting_changes,
        })
    }

    /// The variant that this one is compared with, which must stand before it.
    fn baseline(&self, variant: &VariantTable) -> Result<Option<String>> {
        let Some(baseline) = &variant.beside else { return Ok(None) };
        let names = self.document.variant.get_ref().iter().map(|variant| variant.name.get_ref());
        let before: Vec<&str> =
            names.take_while(|name| *name != variant.name.get_ref()).map(String::as_str).collect();
        let name = baseline.get_ref();
        if before.contains(&name.as_str()) {
            return Ok(Some(name.clone()));
        }
        Err(self.unknown("no variant before this one is called", baseline, "There are", &before))
    }

    /// The plan's parameters of the virtual world, then those of its clusters.
    fn common_parameters(&self) -> Result<Vec<Parameter>> {
        let document = &self.document;
        let follower = document.follower.as_ref().map_or(Ok(Vec::new()), |follower| {
            self.parameters(ParameterScope::Follower, &follower.parameters)
        });
        let all: Vec<_> = every([
            self.test_bed(),
            self.parameters(ParameterScope::Everywhere, &document.parameters),
            self.parameters(ParameterScope::Leader, &document.leader.parameters),
            follower,
        ])?;
        Ok(all.concat())
    }

    fn test_bed(&self) -> Result<Vec<Parameter>> {
        let Some(name) = &self.document.test_bed else { return Ok(Vec::new()) };
        let bed = test_bed(name.get_ref())
            .ok_or_else(|| self.error(name.span(), unknown_test_bed(name.get_ref())))?;
        bed.parameters()
    }

    pub(super) fn parameters(
        &self,
        scope: ParameterScope,
        tables: &Parameters,
    ) -> Result<Vec<Parameter>> {
        parameters(scope, tables, |span, message| self.error(span, message))
    }
}
