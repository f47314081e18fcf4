//! `[[fault]]`, of the plan, of variants, and of the action `fault`.

use clusters::FaultKind;
use record::units::{parse_duration, parse_size};
use toml::Spanned;

use super::together::{Together, every};
use crate::error::Result;
use crate::plan::document::{FAULT, FaultTable};
use crate::plan::fault::{Fault, LINK};
use crate::plan::file::Plan;

impl Plan {
    /// The faults of the plan, then those of a variant.
    pub(super) fn faults(&self, own: &[FaultTable], nodes: &[String]) -> Result<Vec<Fault>> {
        every(self.document.fault.iter().chain(own).map(|table| self.fault(table, nodes)))
    }

    /// A fault. `nodes` are the names that it can have: nodes, and clusters.
    pub(super) fn fault(&self, table: &FaultTable, nodes: &[String]) -> Result<Fault> {
        let at = table.at.as_ref().map(|at| self.unit(at, parse_duration));
        let lasts = table.lasts.as_ref().map(|lasts| self.time(&FAULT, "lasts", lasts));
        let kind = self.fault_kind(table).and_then(|kind| {
            let rest = (self.check_fault_keys(table, kind), self.fault_node(table, kind, nodes));
            Ok((kind, rest.together()?.1))
        });
        let ((kind, node), at, lasts) = (kind, at.transpose(), lasts.transpose()).together()?;
        Ok(Fault { node, kind, at: at.unwrap_or_default(), lasts })
    }

    fn fault_kind(&self, table: &FaultTable) -> Result<FaultKind> {
        let lacks = |message: &str| self.error(table.kind.span(), message);
        Ok(match table.kind.get_ref().as_str() {
            "slow" => FaultKind::Slow { factor: self.factor(table)? },
            "load" => FaultKind::Load {
                processes: match &table.processes {
                    Some(processes) => self.number(&FAULT, "processes", processes)?,
                    None => return Err(lacks("say how many processes: processes = 32")),
                },
                factor: self.factor(table)?,
            },
            "pause" => FaultKind::Pause,
            "cut" => FaultKind::Cut,
            "fail" => FaultKind::Fail,
            "stop" => FaultKind::Stop,
            "kill" => FaultKind::Kill,
            "full_disk" => {
                let free = table.free.as_ref();
                let free = free.ok_or_else(|| lacks("say what is left: free = \"100mb\""))?;
                FaultKind::FullDisk { free_bytes: self.unit(free, parse_size)? }
            }
            "clock" => {
                let by = table.by.as_ref();
                let by = by.ok_or_else(|| lacks("say how far: by = \"1h\", or by = \"-1h\""))?;
                FaultKind::Clock { by_ms: self.jump(by)? }
            }
            _ => {
                let known = &FaultKind::NAMES;
                return Err(self.unknown("no fault is called", &table.kind, "Faults", known));
            }
        })
    }

    /// Refuses keys that the kind of fault does not have.
    fn check_fault_keys(&self, table: &FaultTable, kind: FaultKind) -> Result<()> {
        let is_load = matches!(kind, FaultKind::Load { .. });
        let has_factor = is_load || matches!(kind, FaultKind::Slow { .. });
        let is_full_disk = matches!(kind, FaultKind::FullDisk { .. });
        let is_clock = matches!(kind, FaultKind::Clock { .. });
        self.only(&table.factor, has_factor, "only \"slow\" and \"load\" have a factor")?;
        self.only(&table.processes, is_load, "only \"load\" has processes")?;
        self.only(&table.free, is_full_disk, "only \"full_disk\" leaves room free")?;
        self.only(&table.by, is_clock, "only a \"clock\" is set by a time")
    }

    fn only<T>(&self, given: &Option<Spanned<T>>, fits: bool, message: &str) -> Result<()> {
        match given {
            Some(given) if !fits => Err(self.error(given.span(), message)),
            _ => Ok(()),
        }
    }

    fn fault_node(&self, table: &FaultTable, kind: FaultKind, nodes: &[String]) -> Result<String> {
        let lacks = match (&table.node, kind) {
            (Some(node), _) => return self.node_called(node, nodes),
            (None, FaultKind::Cut) if self.document.link.is_some() => return Ok(LINK.to_owned()),
            (None, FaultKind::Cut) => "say which node is cut off; the plan has no [link] to cut",
            (None, _) => "say which node has the fault, or name a cluster for all of its nodes",
        };
        Err(self.error(table.kind.span(), lacks))
    }

    /// How far a clock jumps, in milliseconds; back where it begins with a minus.
    fn jump(&self, by: &Spanned<String>) -> Result<i64> {
        let (sign, text) = match by.get_ref().strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, by.get_ref().as_str()),
        };
        let time = self.time(&FAULT, "by", &Spanned::new(by.span(), text.to_owned()))?;
        Ok(sign * time.as_millis() as i64)
    }

    fn factor(&self, table: &FaultTable) -> Result<f64> {
        let Some(factor) = &table.factor else {
            return Err(self.error(table.kind.span(), "say how slow: factor = 4"));
        };
        self.real(&FAULT, "factor", factor)
    }
}
