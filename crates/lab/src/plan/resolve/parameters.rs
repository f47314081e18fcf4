//! `[virtual]`: parameters of the virtual world, which stay text that was checked.

use std::ops::Range;

use toml::Spanned;
use world::model::{ModelError, Models};

use super::together::every;
use crate::error::{Error, Result};
use crate::plan::document::{ParameterTable, Parameters};
use crate::plan::parameter::{Parameter, ParameterScope};
use crate::plan::scalar;

/// Checks every parameter. `error` makes an error at a place of the text that they stand in.
pub(super) fn parameters(
    scope: ParameterScope,
    tables: &Parameters,
    error: impl Fn(Range<usize>, String) -> Error,
) -> Result<Vec<Parameter>> {
    let parameter = |(name, table): (&Spanned<String>, &ParameterTable)| {
        let value = scalar::text(table.value.get_ref()).map_err(|found| {
            let message =
                format!("a parameter is a string, a number, true or false, found {found}");
            error(table.value.span(), message)
        })?;
        // `models` applies it later and relies on this check.
        Models::default().set(name.get_ref(), &value).map_err(|wrong| {
            let unknown = matches!(wrong, ModelError::Unknown { .. });
            let span = if unknown { name.span() } else { table.value.span() };
            error(span, wrong.to_string())
        })?;
        if scope != ParameterScope::Everywhere && name.get_ref().starts_with("link.") {
            let message = "the link belongs to no cluster; write this in [virtual]";
            return Err(error(name.span(), message.to_owned()));
        }
        if table.source.get_ref().trim().is_empty() {
            let message = "say where the value comes from".to_owned();
            return Err(error(table.source.span(), message));
        }
        Ok(Parameter {
            scope,
            name: name.get_ref().clone(),
            value,
            source: table.source.get_ref().clone(),
            calibrated_on: table.calibrated_on.clone(),
        })
    };
    every(tables.iter().map(parameter))
}
