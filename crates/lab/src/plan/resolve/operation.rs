//! `[[operation]]`: what a load can send.

use std::collections::BTreeMap;

use record::units::parse_size;
use serde_json::json;
use toml::{Spanned, Value};

use super::together::every;
use crate::error::Result;
use crate::load::{Check, Content, Draw, Operation};
use crate::plan::document::{COST, CostTable, OperationTable};
use crate::plan::file::Plan;
use crate::plan::scalar;
use crate::track::{count_all, to_whom};

impl Plan {
    pub(super) fn operations_called(&self, named: &[Spanned<String>]) -> Result<Vec<Operation>> {
        let known: Vec<&str> =
            self.document.operation.iter().map(|table| table.name.get_ref().as_str()).collect();
        let one = |name: &Spanned<String>| {
            let found = self.document.operation.iter().find(|t| t.name.get_ref() == name.get_ref());
            match found {
                Some(table) => self.operation(table),
                None => Err(self.unknown("no operation is called", name, "Operations", &known)),
            }
        };
        every(named.iter().map(one))
    }

    /// The same operations where documents have sizes and no words: searches that count, at the cost that their table
    /// declares, and counts of all documents. Other requests are what they are.
    pub(super) fn as_costs(&self, named: &[Spanned<String>]) -> Result<Vec<Operation>> {
        let mut operations = Vec::new();
        for table in &self.document.operation {
            let mut operation = self.operation(table)?;
            operations.push(match &operation.content {
                Content::Pattern { path, parameters, check: Check::Search, .. } => {
                    let body = match &table.cost {
                        Some(cost) => self.cost(cost)?,
                        None => json!({ "size": 0 }).to_string(),
                    };
                    let content = Content::Pattern {
                        method: "POST".to_owned(),
                        path: to_whom(path),
                        bodies: vec![body],
                        parameters: parameters.clone(),
                        check: Check::Search,
                    };
                    Operation { name: operation.name.clone(), content }
                }
                _ => {
                    count_all(&mut operation.content);
                    operation
                }
            });
        }
        let of = |name: &Spanned<String>| operations.iter().find(|o| o.name == *name.get_ref());
        Ok(named.iter().filter_map(of).cloned().collect())
    }

    fn cost(&self, table: &CostTable) -> Result<String> {
        let documents = table.documents.as_ref();
        let documents: Result<u64> =
            documents.map_or(Ok(0), |count| self.number(&COST, "documents", count));
        let bytes = table.bytes.as_ref().map_or(Ok(0), |bytes| self.unit(bytes, parse_size));
        let (documents, bytes) = (documents?, bytes?);
        let cost = json!({ "documents": documents, "bytes": bytes });
        Ok(json!({ "size": 0, "ext": { "narrows": { "cost": cost } } }).to_string())
    }

    fn index_of(&self, table: &OperationTable) -> String {
        table.index.clone().unwrap_or_else(|| {
            let names = self.document.index.iter();
            names.map(|index| index.name.get_ref().as_str()).collect::<Vec<_>>().join(",")
        })
    }

    fn operation(&self, table: &OperationTable) -> Result<Operation> {
        let index = self.index_of(table);
        let mut parameters = BTreeMap::new();
        for (name, values) in &table.parameters {
            parameters.insert(name.get_ref().clone(), self.draw(values)?);
        }
        let path = table.path.clone().unwrap_or_else(|| "/{index}/_search".to_owned());
        if let Some(own) = table.index.as_ref().filter(|_| !path.contains("{index}")) {
            let message = format!(
                "index = \"{own}\" changes nothing of the path {path}; write {{index}} into that, or leave index out"
            );
            return Err(self.error(table.name.span(), message));
        }
        let path = path.replace("{index}", &index);
        let bodies: Vec<String> = table.body.iter().chain(&table.bodies).cloned().collect();
        let check = Check::of(&path);
        let default = if bodies.is_empty() && !check.is_of_searches() { "GET" } else { "POST" };
        let method = table.method.as_deref().unwrap_or(default).to_uppercase();
        let content = Content::Pattern { method, path, bodies, parameters, check };
        let operation = Operation { name: table.name.get_ref().clone(), content };
        match operation.requests(0, 0, 1) {
            Ok(_) => Ok(operation),
            Err(error) => Err(self.error(table.name.span(), error.to_string())),
        }
    }

    /// `{ from = 1, to = 100 }`, or a list of texts and numbers.
    fn draw(&self, values: &Spanned<Value>) -> Result<Draw> {
        let wrong = || {
            let message = "a parameter is a range { from = 1, to = 100 } or a list of values";
            self.error(values.span(), message)
        };
        match values.get_ref() {
            Value::Table(range) => {
                let end = |name: &str| range.get(name).and_then(Value::as_integer);
                match (end("from"), end("to")) {
                    (Some(from), Some(to)) if from <= to && range.len() == 2 => {
                        Ok(Draw::Integer { from, to })
                    }
                    _ => Err(wrong()),
                }
            }
            Value::Array(list) if !list.is_empty() => {
                let texts: Result<Vec<String>, _> = list.iter().map(scalar::text).collect();
                texts.map(Draw::Choice).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }
}
