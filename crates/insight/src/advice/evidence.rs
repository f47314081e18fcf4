//! What verdict and advice on a variant rest on, and what speaks against all limits that did not hold it.

use record::{Limit, units};
use serde::Serialize;

use super::lift::{Held, REPOSITORY, SCHEDULER};
use crate::bounds::TOLERANCE;
use crate::diagnosis::{By, Evidence, SLOTS};
use crate::inferred::NEAR_CEILING;
use crate::summary::Summary;
use crate::trace::Trace;
use crate::words::{self, percent};

/// A limit that took less of the time than this is no evidence.
pub(super) const EVIDENCE: f64 = 0.02;

/// A limit that did not hold, or held for less of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherLimit {
    /// The limit.
    pub limit: Limit,
    /// What kind of reason speaks against it.
    pub by: By,
    /// The reason: the share of the time that it took, of its rate that was used, or what is not told.
    pub why: String,
}

impl Held<'_> {
    /// What verdict and advice rest on.
    pub(super) fn evidence(
        &self,
        trace: Option<&Trace<'_>>,
        summary: &Summary<'_>,
    ) -> Vec<Evidence> {
        let figures = self.figures;
        let (api, field) = match trace.filter(|trace| !trace.following.is_empty()) {
            None => ("row", "bytes / seconds"),
            Some(trace) if trace.files().is_some() => ("samples", "files / seconds"),
            Some(_) => ("row", "bytes / seconds, following included"),
        };
        let mut evidence = vec![Evidence::new(
            api,
            field,
            format!(
                "{} in {}: {}",
                units::show_bytes(figures.bytes),
                units::show_seconds(figures.seconds),
                words::rate(figures.bytes_per_s)
            ),
        )];
        let charged = figures.limits.iter().filter(|share| share.share >= EVIDENCE);
        let charged: Vec<String> = charged
            .map(|share| format!("{} {}", share.limit.label(), percent(share.share)))
            .collect();
        if !charged.is_empty() {
            let is_seen = summary.manifest.target == "opensearch";
            let field = if is_seen { "seen from outside" } else { "charged" };
            let mut value = charged.join(", ");
            if self.copying < 1.0 - EVIDENCE {
                let copying = percent(self.copying);
                value += &format!(" of the {copying} of the time in which copies were made");
            }
            evidence.push(Evidence::new("time", field, value));
        }
        evidence.extend(self.link_evidence());
        if let Some(ms) = trace.and_then(Trace::throttled_ms) {
            let summed = words::summed_pauses(ms as u64, figures.seconds * 1e3, None);
            let value = format!("the most throttled node: {summed}");
            evidence.push(Evidence::new("samples", "throttle_ms", value));
        }
        if let Some((node, cores)) = &self.bounds.busiest {
            let value =
                format!("{node}, the busiest node: {} cores on average", words::cores(*cores));
            evidence.push(Evidence::new("samples", "cpu_cores", value));
        }
        let knobs = self.knobs();
        let chunks = knobs.chunks.map(|(name, ..)| name);
        let rules = [knobs.rate.map(|(name, _)| name), chunks, knobs.chunk.0];
        for name in rules.into_iter().flatten().chain([SCHEDULER, SLOTS.0, REPOSITORY]) {
            if let Some(value) = self.settings.get(name) {
                evidence.push(Evidence::new("plan", name, value));
            }
        }
        evidence
    }

    /// The other limits: by the time that each took or, where nothing tells that, by what it lets through.
    pub(super) fn ruled_out(&self) -> Vec<OtherLimit> {
        let held = self.figures.verdict.limit;
        let others = Limit::ALL.into_iter().filter(|limit| Some(*limit) != held);
        let against = |limit| {
            let (by, why) = self.against(limit);
            OtherLimit { limit, by, why }
        };
        others.map(against).collect()
    }

    fn against(&self, limit: Limit) -> (By, String) {
        let figures = self.figures;
        let own = figures.limits.iter().find(|one| one.limit == limit).map(|one| one.share);
        let is_told = match &self.account {
            Some(account) => account.tells(limit),
            // What precedes and follows the files is charged to what it waits for.
            None => !figures.limits.is_empty() && limit != Limit::Coordination,
        };
        if let Some(share) = own.or(is_told.then_some(0.0)) {
            let by = if share < EVIDENCE { By::Figure } else { By::Weaker };
            return (by, format!("took {} of the time", percent(share)));
        }
        let Some(ceiling) = self.bounds.ceiling(limit) else {
            return (By::Untold, "this target does not tell the time that it took".to_owned());
        };
        let used = match self.bounds.link_used(figures.link_share) {
            Some(used) if limit == Limit::LinkRate => used,
            _ => figures.bytes_per_s / ceiling.rate_bytes_per_s,
        };
        if limit == Limit::LinkRate && used > TOLERANCE {
            let why = format!("{}, and bytes are told before compression", ceiling.text);
            return (By::Untold, why);
        }
        let by = if used < NEAR_CEILING { By::Figure } else { By::Weaker };
        (by, format!("{}, of which {} was used", ceiling.text, percent(used)))
    }

    fn link_evidence(&self) -> Option<Evidence> {
        let rate = self.bounds.link_bytes_per_s?;
        let rtt =
            self.bounds.rtt_ms.map_or_else(String::new, |rtt| format!(" over {}", words::rtt(rtt)));
        let used = self.bounds.link_used(self.figures.link_share);
        let used = used.map_or_else(String::new, |share| match share {
            share if share > TOLERANCE => ", with bytes told before compression".to_owned(),
            share => format!(", of which {} was used", percent(share)),
        });
        Some(Evidence::new("link", "rate", format!("{}{rtt}{used}", words::rate(rate))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::LimitShare;

    use super::super::lift::tests::{figures, slow_ocean};
    use super::*;
    use crate::elapsed::Elapsed;
    use crate::variant::Finished;

    #[test]
    fn every_other_limit_has_a_reason_why_it_did_not_hold() {
        let (settings, bounds) = (BTreeMap::new(), slow_ocean());
        let against = |figures: &Finished, account: Option<Elapsed>, limit: Limit| {
            let held =
                Held { settings: &settings, figures, bounds: &bounds, account, copying: 1.0 };
            let others = held.ruled_out();
            assert_eq!(others.len(), Limit::ALL.len() - 1);
            let one = others.into_iter().find(|one| one.limit == limit).unwrap();
            (one.by, one.why)
        };
        let mut figures = figures(Some(Limit::Latency), 0.7, 4e6);
        let others = [(Limit::Throttle, 0.29), (Limit::Cpu, 0.01)];
        figures.limits.extend(others.map(|(limit, share)| LimitShare { limit, share }));
        let told = |limit| against(&figures, None, limit);
        assert_eq!(told(Limit::Throttle), (By::Weaker, "took 29 % of the time".to_owned()));
        assert_eq!(told(Limit::Cpu), (By::Figure, "took 1.0 % of the time".to_owned()));
        assert_eq!(told(Limit::Memory), (By::Figure, "took 0 % of the time".to_owned()));
        assert_eq!(told(Limit::Coordination).0, By::Untold);
        // Seen from outside: disks are not.
        let seen = |limit| against(&figures, Some(Elapsed::default()), limit);
        assert_eq!((seen(Limit::Slots).0, seen(Limit::DiskRead).0), (By::Figure, By::Untold));
        // Nothing is charged: what settings and link let through tells.
        figures.limits.clear();
        let (by, why) = against(&figures, None, Limit::LinkRate);
        assert_eq!(
            (by, why.as_str()),
            (By::Figure, "the link at 125 MB/s, of which 3.2 % was used")
        );
        assert_eq!(against(&figures, None, Limit::Throttle).0, By::Weaker);
        figures.link_share = Some(1.44);
        let (by, why) = against(&figures, None, Limit::LinkRate);
        let says = "the link at 125 MB/s, and bytes are told before compression";
        assert_eq!((by, why.as_str()), (By::Untold, says));
        assert_eq!(against(&figures, None, Limit::Cpu).0, By::Untold);
    }
}
