//! Copies that are on no node, come up or move: which they are, and why.

use std::collections::BTreeSet;
use std::sync::Arc;

use record::observation::{Health, Lack, Move, WaitingCopy};
use serde_json::json;
use world::Time;

use super::{NAMED_MAX, Sampler};
use crate::live::pacing::{Question, rest_after};
use crate::live::parse;
use crate::live::questions::{FILTERS_FILTER, LEASES_FILTER, SHARD_COLUMNS, escape};
use crate::reading::EXPLAIN;
use crate::{Error, Result};

impl Sampler {
    /// Copies that wait, and copies that move.
    pub(super) async fn unsettled(
        &mut self,
        health: Option<&Health>,
        slow: bool,
        now: Time,
    ) -> Result<()> {
        let Some(health) = health else {
            // Unknown is not none: what waited is kept, and asked for again as soon as there is a health.
            self.counted = None;
            return Ok(());
        };
        let counts = [health.unassigned, health.initializing, health.relocating];
        if counts == [Some(0); 3] {
            (self.last.waiting, self.last.moves, self.counted) =
                (Arc::default(), Arc::default(), None);
            self.unsettled_at = None;
            self.gaps.remove("/_cat/shards");
            self.gaps.remove(EXPLAIN);
            return Ok(());
        }
        let is_changed = self.counted.is_none()
            || (self.counted != Some(counts) && self.pacing.is_due(Question::Waiting, now));
        let rest = rest_after(self.rows);
        if (slow || is_changed) && self.pacing.has_rested(Question::Waiting, now, rest) {
            self.pacing.ask(Question::Waiting, now);
            let path = format!("/_cat/shards?format=json&h={SHARD_COLUMNS}");
            let answer: Option<parse::Unsettled> = self.read("/_cat/shards", &path).await?;
            self.counted = Some(counts);
            // What waited before is kept, and asked for as rarely as if it had been told.
            let Some(parse::Unsettled { rows, mut waiting, mut moves }) = answer else {
                return Ok(());
            };
            self.rows = rows;
            self.gaps.remove(EXPLAIN);
            for copies in self.turns.choose(&mut waiting, &self.last.waiting) {
                let [copy, same @ ..] = copies else { continue };
                self.explain(copy).await?;
                copy.lacks = self.lack(copy).await?;
                for other in same {
                    *other = WaitingCopy { reason: other.reason.take(), ..copy.clone() };
                }
            }
            self.filters(&mut moves).await?;
            (self.last.waiting, self.last.moves) = (waiting.into(), moves.into());
            self.unsettled_at = Some(now);
        }
        Ok(())
    }

    /// What a copy that waits for its node to come back lacks.
    async fn lack(&self, copy: &WaitingCopy) -> Result<Option<Lack>> {
        let Some(node) = &copy.left else { return Ok(None) };
        if copy.delay_left_ms.is_none() {
            return Ok(None);
        }
        let path =
            format!("/{}/_stats?level=shards&filter_path={LEASES_FILTER}", escape(&copy.index));
        let answer = self.try_ask(&path).await?;
        Ok(answer.and_then(|answer| parse::lack(copy, node, &answer)))
    }

    /// The allocation filters of indices whose copies move.
    async fn filters(&self, moves: &mut [Move]) -> Result<()> {
        let indices: BTreeSet<&str> =
            moves.iter().map(|one| one.index.as_str()).take(NAMED_MAX).collect();
        if indices.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = indices.into_iter().map(escape).collect();
        let names = names.join(",");
        let path = format!("/{names}/_settings?flat_settings=true&filter_path={FILTERS_FILTER}");
        let answer = self.try_ask(&path).await?;
        let all = answer.as_ref().map(parse::allocation_filters).unwrap_or_default();
        for one in moves {
            one.filters = all.get(&one.index).cloned().unwrap_or_default();
        }
        Ok(())
    }

    async fn explain(&mut self, copy: &mut WaitingCopy) -> Result<()> {
        let body = json!({"index": copy.index, "shard": copy.shard, "primary": copy.primary});
        match self.client.ask("POST", EXPLAIN, &body).await {
            Ok(answer) => parse::explain_into(copy, &answer),
            // It was assigned in the meantime.
            Err(Error::Refused { status: 400 | 404, .. }) => {}
            Err(error) => self.lose(EXPLAIN, error).await?,
        }
        Ok(())
    }
}
