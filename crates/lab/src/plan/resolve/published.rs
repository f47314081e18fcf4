//! The published row that a variant is compared with.

use super::together::every;
use crate::error::Result;
use crate::plan::document::PublishedTable;
use crate::plan::file::Plan;
use crate::plan::kinds::{kind, row_name};
use crate::plan::published::{Published, SECONDS, Table};
use crate::plan::resolved::Resolved;

impl Plan {
    pub(super) fn published(&self, table: &PublishedTable) -> Result<Published> {
        let figures = self.unit(&table.file, Table::named)?;
        let columns = table.columns.get_ref().keys().chain(&table.figure);
        let checked = columns.map(|name| self.unit(name, |name| figures.check_column(name)));
        every::<(), ()>(checked)?;
        let values = self.texts(table.columns.get_ref(), "a column's value")?;
        let found = match &table.figure {
            None if figures.has_loads() => figures.load(&values),
            figure => figures.row(&values, figure.as_ref().map_or(SECONDS, |f| f.get_ref())),
        };
        found.map_err(|why| self.error(table.columns.span(), why))
    }

    pub(super) fn check_fitted(&self) -> Result<()> {
        let document = &self.document;
        let checked = document.fitted.iter().map(|fitted| {
            if !document.settings.keys().any(|name| name.get_ref() == fitted.setting.get_ref()) {
                let message = "a fitted setting is one of the plan's own [settings]";
                return Err(self.error(fitted.setting.span(), message));
            }
            Ok(())
        });
        every(checked)
    }

    /// Says of each published row what our figure beside it is worth.
    pub(super) fn with_kinds(&self, mut plan: Resolved) -> Resolved {
        let document = &self.document;
        let settings = document.fitted.iter().map(|fitted| &fitted.calibrated_on);
        let segments = document.index.iter().filter_map(|index| index.full.as_ref());
        let changes = plan.variants.iter().flat_map(|variant| &variant.setting_changes);
        let hosts = changes.filter_map(|change| change.host.as_ref());
        let parameters = plan.variants.iter().flat_map(|variant| &variant.parameters);
        let parameters = parameters.chain(hosts.flat_map(|host| &host.parameters));
        let fitted: Vec<String> = settings
            .chain(segments.map(|full| &full.calibrated_on))
            .chain(parameters.map(|parameter| &parameter.calibrated_on))
            .flatten()
            .cloned()
            .collect();
        for variant in &mut plan.variants {
            if let Some(published) = &mut variant.published {
                published.info.kind =
                    kind(&row_name(&plan.name, &variant.name), &variant.settings, &fitted);
            }
        }
        plan
    }
}
