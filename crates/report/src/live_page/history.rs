//! What is kept of a cluster: the figures of the last hour, a frame for each of their points, and the last events.

use std::collections::VecDeque;
use std::sync::Arc;

use insight::diagnosis::Event;
use serde::Serialize;
use serde_json::json;

use super::compact::Compact;
use super::frame::{Frame, nodes_json};
use crate::screen::Nodes;

/// Events that are kept.
const EVENTS_MAX: usize = 400;
/// Frames take a tenth of their size so, and hardly any time.
const LEVEL: i32 = 1;

/// The last hour of one cluster.
#[derive(Default)]
pub struct History {
    figures: Compact,
    frames: VecDeque<Kept>,
    events: VecDeque<At>,
    /// The last frame without its nodes, and these.
    last: Option<(String, Arc<Nodes>)>,
    /// The same nodes, as they are kept.
    nodes: Arc<[u8]>,
}

/// A frame that can be had again.
struct Kept {
    at_ms: u64,
    rate_bytes_per_s: f64,
    packed: Box<[u8]>,
    /// Its nodes, which the frames after it have, too, until they are asked for again.
    nodes: Arc<[u8]>,
}

/// An event with its time, in milliseconds since 1970.
#[derive(Clone, Debug, Serialize)]
struct At {
    at_ms: u64,
    #[serde(flatten)]
    event: Event,
}

impl History {
    /// Takes a frame in with what happened before it; returns what pages that are open are to be sent: of nodes only
    /// what is new.
    ///
    /// # Panics
    /// Never: what a frame consists of can be written as JSON.
    pub fn push(&mut self, frame: &Frame, events: Vec<Event>) -> String {
        let text = serde_json::to_string(frame).expect("texts and numbers");
        let figures = frame.figures();
        let figures = figures.iter().map(|(name, figure)| (name.as_str(), *figure));
        let begins = self.figures.push(frame.at_ms, figures);
        let is_new = |(_, nodes): &(String, Arc<Nodes>)| !Arc::ptr_eq(nodes, &frame.nodes);
        let has_new_nodes = self.last.as_ref().is_none_or(is_new);
        if has_new_nodes {
            self.nodes = packed(nodes_json(&frame.nodes)).into();
        }
        self.keep(frame, begins, &text);
        let events: Vec<At> =
            events.into_iter().map(|event| At { at_ms: frame.at_ms, event }).collect();
        let said = serde_json::to_string(&events).expect("texts and numbers");
        self.events.extend(events);
        self.events.drain(..self.events.len().saturating_sub(EVENTS_MAX));
        let sent = match has_new_nodes {
            true => with_nodes(&text, nodes_json(&frame.nodes)),
            false => text.clone(),
        };
        self.last = Some((text, frame.nodes.clone()));
        format!("{{\"frame\":{sent},\"events\":{said}}}")
    }

    /// Keeps one frame for each point: that with the highest rate, as the chart shows peaks.
    fn keep(&mut self, frame: &Frame, begins: bool, text: &str) {
        let rate_bytes_per_s = frame.rate_bytes_per_s();
        let is_higher =
            self.frames.back().is_none_or(|kept| rate_bytes_per_s > kept.rate_bytes_per_s);
        if !begins {
            if !is_higher {
                return;
            }
            self.frames.pop_back();
        }
        let nodes = self.nodes.clone();
        let packed = packed(text);
        self.frames.push_back(Kept { at_ms: frame.at_ms, rate_bytes_per_s, packed, nodes });
        self.thin();
    }

    /// Leaves one frame for each point, where two points became one or the oldest is forgotten.
    fn thin(&mut self) {
        let times = self.figures.times();
        if self.frames.len() <= times.len() {
            return;
        }
        let point = |at_ms: u64| times.partition_point(|from| *from <= at_ms);
        let mut kept: VecDeque<Kept> = VecDeque::with_capacity(times.len());
        for frame in self.frames.drain(..).filter(|frame| point(frame.at_ms) > 0) {
            match kept.back_mut().filter(|last| point(last.at_ms) == point(frame.at_ms)) {
                Some(last) if frame.rate_bytes_per_s > last.rate_bytes_per_s => *last = frame,
                Some(_) => {}
                None => kept.push_back(frame),
            }
        }
        self.frames = kept;
    }

    /// All that a page needs to begin with.
    ///
    /// # Panics
    /// Never: what is kept can be written as JSON.
    pub fn all(&self) -> String {
        let whole = |(text, nodes): &(String, Arc<Nodes>)| with_nodes(text, nodes_json(nodes));
        let last = self.last.as_ref().map_or_else(|| "null".to_owned(), whole);
        let rest = json!({"history": self.figures.points(), "events": self.events});
        let rest = rest.to_string();
        format!("{{\"frame\":{last},{}", &rest[1..])
    }

    /// The frame that was kept nearest to a moment, as JSON; none before the first look.
    pub fn at(&self, at_ms: u64) -> Option<String> {
        let nearest = self.frames.iter().min_by_key(|kept| kept.at_ms.abs_diff(at_ms))?;
        Some(with_nodes(&unpacked(&nearest.packed)?, &unpacked(&nearest.nodes)?))
    }
}

/// A frame with its nodes.
fn with_nodes(frame: &str, nodes: &str) -> String {
    format!("{},\"nodes\":{nodes}}}", frame.strip_suffix('}').unwrap_or(frame))
}

/// Compressing what is in memory does not fail; what it failed for could merely not be had again.
fn packed(text: &str) -> Box<[u8]> {
    // It has the room of the whole text until then.
    zstd::bulk::compress(text.as_bytes(), LEVEL).unwrap_or_default().into_boxed_slice()
}

fn unpacked(packed: &[u8]) -> Option<String> {
    if packed.is_empty() {
        return None;
    }
    String::from_utf8(zstd::stream::decode_all(packed).ok()?).ok()
}
