//! `[[variant]]`: what each changes of the plan.

use std::collections::{BTreeMap, BTreeSet};

use record::text::has_hidden;

use super::parameters::parameters;
use super::test_bed::{test_bed, unknown_test_bed};
use crate::choices::unknown;
use crate::error::Error;
use crate::plan::document::{Parameters, VariantTable};
use crate::plan::file::Plan;
use crate::plan::parameter::{Parameter, ParameterScope};
use crate::plan::topology::{Cluster, LEADER};
use crate::plan::variant::Variant;

/// What variants start from: what the plan says for all of them.
struct Common {
    settings: BTreeMap<String, String>,
    parameters: Vec<Parameter>,
}

impl Plan {
    pub(super) fn variants(
        &self,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
        leader: Cluster,
        scale: f64,
    ) -> Result<Vec<Variant>, Error> {
        let variants = &self.document.variant;
        if variants.get_ref().is_empty() {
            return Err(self.error(variants.span(), "a plan has at least one [[variant]]"));
        }
        let common = Common {
            settings: self.settings(&self.document.settings, check_setting)?,
            parameters: self.common_parameters()?,
        };
        let mut names = BTreeSet::new();
        let mut resolved = Vec::new();
        for variant in variants.get_ref() {
            let name = &variant.name;
            if name.get_ref().is_empty() || !names.insert(name.get_ref()) {
                let message = "each variant has a name of its own; this one is empty or taken";
                return Err(self.error(name.span(), message));
            }
            if has_hidden(name.get_ref()) {
                let message = "a variant's name has only characters that can be seen";
                return Err(self.error(name.span(), message));
            }
            resolved.push(self.variant(variant, &common, check_setting, leader, scale)?);
        }
        Ok(resolved)
    }

    fn variant(
        &self,
        variant: &VariantTable,
        common: &Common,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
        leader: Cluster,
        scale: f64,
    ) -> Result<Variant, Error> {
        let mut settings = common.settings.clone();
        settings.extend(self.settings(&variant.settings, check_setting)?);
        let own = self.parameters(ParameterScope::Everywhere, &variant.parameters)?;
        let own_parameters = own.iter().map(|parameter| parameter.name.clone()).collect();
        let published = variant.published.as_ref().map(|table| self.published(table));
        let replicas = variant.replicas.as_ref().map(|number| self.replicas(number, leader));
        let nodes: Vec<String> = (0..leader.nodes).map(|n| format!("{LEADER}-{n}")).collect();
        Ok(Variant {
            name: variant.name.get_ref().clone(),
            settings,
            parameters: common.parameters.iter().cloned().chain(own).collect(),
            own_parameters,
            published: published.transpose()?,
            baseline: self.baseline(variant)?,
            replicas: replicas.transpose()?,
            load: self.load(variant.load.as_ref(), &nodes, scale)?,
            faults: self.faults(&variant.fault, &self.fault_nodes())?,
        })
    }

    /// The variant that this one is compared with, which must stand before it.
    fn baseline(&self, variant: &VariantTable) -> Result<Option<String>, Error> {
        let Some(baseline) = &variant.beside else { return Ok(None) };
        let names = self.document.variant.get_ref().iter().map(|variant| variant.name.get_ref());
        let before: Vec<&str> =
            names.take_while(|name| *name != variant.name.get_ref()).map(String::as_str).collect();
        let name = baseline.get_ref();
        if before.contains(&name.as_str()) {
            return Ok(Some(name.clone()));
        }
        let said = unknown("no variant before this one is called", name, "There are", &before);
        Err(self.error(baseline.span(), said))
    }

    /// The plan's parameters of the virtual world, then those of its clusters.
    fn common_parameters(&self) -> Result<Vec<Parameter>, Error> {
        let document = &self.document;
        let mut all = self.test_bed()?;
        all.extend(self.parameters(ParameterScope::Everywhere, &document.parameters)?);
        all.extend(self.parameters(ParameterScope::Leader, &document.leader.parameters)?);
        if let Some(follower) = &document.follower {
            all.extend(self.parameters(ParameterScope::Follower, &follower.parameters)?);
        }
        Ok(all)
    }

    /// The parameters of the test bed that the plan names.
    fn test_bed(&self) -> Result<Vec<Parameter>, Error> {
        let Some(name) = &self.document.test_bed else { return Ok(Vec::new()) };
        let bed = test_bed(name.get_ref())
            .ok_or_else(|| self.error(name.span(), unknown_test_bed(name.get_ref())))?;
        bed.parameters()
    }

    fn parameters(
        &self,
        scope: ParameterScope,
        tables: &Parameters,
    ) -> Result<Vec<Parameter>, Error> {
        parameters(scope, tables, |span, message| self.error(span, message))
    }
}
