//! The published row that a variant is compared with.

use crate::error::Error;
use crate::plan::document::PublishedTable;
use crate::plan::file::Plan;
use crate::plan::published::{Published, SECONDS, Table};

impl Plan {
    pub(super) fn published(&self, table: &PublishedTable) -> Result<Published, Error> {
        let figures = self.unit(&table.file, Table::named)?;
        for name in table.columns.get_ref().keys() {
            self.unit(name, |name| figures.check_column(name))?;
        }
        if let Some(figure) = &table.figure {
            self.unit(figure, |name| figures.check_column(name))?;
        }
        let values = self.texts(table.columns.get_ref(), "a column's value")?;
        let found = match &table.figure {
            None if figures.has_loads() => figures.load(&values),
            figure => figures.row(&values, figure.as_ref().map_or(SECONDS, |f| f.get_ref())),
        };
        let row = found.map_err(|why| self.error(table.columns.span(), why))?;
        Ok(Published { calibrated: table.calibrated, ..row })
    }
}
