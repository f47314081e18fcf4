//! A run directory of what was seen: one variant called "watch", which report and show open like any other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clusters::lease_holder;
use insight::diagnosis::{NodePace, Series, node_paces};
use record::observation::{Observation, Recovery, Scope};
use record::{
    FORMAT, Line, Manifest, NodeInfo, NodeSample, Phase, RecoverySample, Status, VariantInfo,
    Writer,
};

use crate::runs;

const VARIANT: &str = "watch";
const LAP: u32 = 1;
/// Where many looks are made, one in so many milliseconds is kept, and each for a while after a change.
const KEPT_EVERY_MS: f64 = 10_000.0;
const KEPT_AFTER_CHANGE_MS: f64 = 30_000.0;

/// Writes looks as they come.
pub(crate) struct Recording {
    writer: Writer,
    manifest: Manifest,
    began: bool,
    /// Recoveries as they were told last.
    told: BTreeMap<String, Recovery>,
    /// The sum of those that ended and are no longer told.
    over: RecoverySample,
    /// When the last look was made that is kept, and when a setting was changed last.
    kept_ms: Option<f64>,
    changed_ms: Option<f64>,
    /// Settings that are not as they were found, as lines say it.
    changed: BTreeMap<String, String>,
}

impl Recording {
    /// Creates a run directory below `dir`, of a command called `name`.
    pub(crate) fn create(
        dir: &Path,
        name: &str,
        hosts: &str,
        first: &Observation,
    ) -> anyhow::Result<Self> {
        runs::refuse_file(dir)?;
        let (run, path) = lab::fresh(dir, name);
        let nodes = first
            .nodes
            .iter()
            .map(|node| NodeInfo { cluster: first.cluster.name.clone(), name: node.name.clone() });
        let set = first.settings.iter().flatten().filter(|(_, s)| s.scope != Scope::Default);
        let manifest = Manifest {
            plan: name.to_owned(),
            about: format!("{} as seen from outside.", super::title(&first.cluster)),
            target: hosts.to_owned(),
            started: lab::now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            status: Status::Running,
            machine: lab::machine::describe(),
            nodes: nodes.collect(),
            variants: vec![VariantInfo {
                name: VARIANT.to_owned(),
                settings: set.map(|(name, s)| (name.clone(), s.value.clone())).collect(),
                ..VariantInfo::default()
            }],
            ..Manifest::unknown(&run, FORMAT)
        };
        let writer = Writer::create(&path, &manifest)?;
        Ok(Recording {
            writer,
            manifest,
            began: false,
            told: BTreeMap::new(),
            over: RecoverySample::default(),
            kept_ms: None,
            changed_ms: None,
            changed: BTreeMap::new(),
        })
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> PathBuf {
        self.writer.dir().to_owned()
    }

    /// How whoever changes the cluster meanwhile is called in its lease.
    pub(crate) fn holder(&self) -> String {
        let run = self.writer.dir().file_name().unwrap_or_default();
        lease_holder(&run.to_string_lossy())
    }

    /// Appends one of many looks where it is time for one.
    pub(crate) fn look_in_time(
        &mut self,
        t_ms: f64,
        look: &Observation,
        series: &Series<'_>,
    ) -> anyhow::Result<()> {
        let ago = |then_ms: Option<f64>| then_ms.map_or(f64::INFINITY, |then_ms| t_ms - then_ms);
        let is_due =
            ago(self.kept_ms) >= KEPT_EVERY_MS || ago(self.changed_ms) <= KEPT_AFTER_CHANGE_MS;
        if is_due { self.look(t_ms, look, series) } else { Ok(()) }
    }

    /// Appends a look, and what charts draw of it, unless it was appended already. `series` ends with it.
    pub(crate) fn look(
        &mut self,
        t_ms: f64,
        look: &Observation,
        series: &Series<'_>,
    ) -> anyhow::Result<()> {
        if self.kept_ms.replace(t_ms) == Some(t_ms) {
            return Ok(());
        }
        let variant = || Some(VARIANT.to_owned());
        if !self.began {
            self.began = true;
            self.phase(t_ms, true)?;
        }
        self.writer.line(&Line::Observation { t_ms, observation: Box::new(look.clone()) })?;
        let sample = self.recovery_sample(look);
        self.writer.line(&Line::Recovery {
            t_ms,
            variant: VARIANT.to_owned(),
            lap: LAP,
            sample,
        })?;
        for pace in node_paces(series) {
            let Some(sample) = node_sample(look, &pace) else { continue };
            self.writer.line(&Line::Node { t_ms, variant: variant(), lap: LAP, sample })?;
        }
        Ok(())
    }

    /// Notes something worth telling.
    pub(crate) fn note(&mut self, t_ms: f64, text: &str) -> anyhow::Result<()> {
        let variant = Some(VARIANT.to_owned());
        Ok(self.writer.line(&Line::Note { t_ms, variant, text: text.to_owned() })?)
    }

    /// Notes that a setting has this value from now on; none where it is as it was found.
    pub(crate) fn changed(
        &mut self,
        t_ms: f64,
        name: &str,
        value: Option<&str>,
    ) -> anyhow::Result<()> {
        self.changed_ms = Some(t_ms);
        if let Some(what) = self.changed.remove(name) {
            self.differs(t_ms, what, false)?;
        }
        let Some(value) = value else { return Ok(()) };
        let what = format!("{name} = {value}");
        self.changed.insert(name.to_owned(), what.clone());
        self.differs(t_ms, what, true)
    }

    /// Notes that every setting is as it was found.
    pub(crate) fn put_back(&mut self, t_ms: f64) -> anyhow::Result<()> {
        let mut all = std::mem::take(&mut self.changed).into_values();
        all.try_for_each(|what| self.differs(t_ms, what, false))
    }

    fn differs(&mut self, t_ms: f64, what: String, begins: bool) -> anyhow::Result<()> {
        let variant = VARIANT.to_owned();
        Ok(self.writer.line(&Line::Fault { t_ms, variant, what, begins })?)
    }

    /// Ends it in order.
    pub(crate) fn end(self, t_ms: f64) -> anyhow::Result<PathBuf> {
        self.end_as(Status::Complete, t_ms)
    }

    /// The same of what did not have to come to its end.
    pub(crate) fn end_as(mut self, status: Status, t_ms: f64) -> anyhow::Result<PathBuf> {
        if self.began {
            self.phase(t_ms, false)?;
        }
        self.manifest.status = status;
        self.writer.manifest(&self.manifest)?;
        Ok(self.dir())
    }

    /// Ends it where it failed, and says why.
    pub(crate) fn fail(mut self, why: String, t_ms: f64) -> anyhow::Result<PathBuf> {
        self.manifest.failure = Some(why);
        self.end_as(Status::Failed, t_ms)
    }

    fn phase(&mut self, t_ms: f64, begins: bool) -> anyhow::Result<()> {
        let phase = Phase { name: "recover".to_owned(), begins };
        Ok(self.writer.line(&Line::Phase {
            t_ms,
            variant: Some(VARIANT.to_owned()),
            lap: LAP,
            phase,
        })?)
    }

    /// All recoveries together. Those that are over stay in the sum, or bytes would seem to vanish.
    fn recovery_sample(&mut self, look: &Observation) -> RecoverySample {
        let key = |recovery: &Recovery| {
            let (index, shard, target, start_ms) = recovery.key();
            format!("{index} {shard} {} {}", target.unwrap_or_default(), start_ms.unwrap_or(0))
        };
        let now: BTreeMap<String, Recovery> =
            look.recoveries.iter().map(|one| (key(one), one.clone())).collect();
        // One that only seemed to have ended may be told again by the next look.
        for (_, gone) in self.told.extract_if(.., |key, one| one.ended && !now.contains_key(key)) {
            add(&mut self.over, &gone);
        }
        self.told.extend(now);
        let mut sample = self.over.clone();
        self.told.values().for_each(|recovery| add(&mut sample, recovery));
        sample
    }
}

fn add(sample: &mut RecoverySample, recovery: &Recovery) {
    sample.recovered_bytes += recovery.recovered_bytes.unwrap_or(0);
    let reused = recovery.reused_bytes.unwrap_or(0);
    sample.total_bytes += recovery.total_bytes.unwrap_or(0).saturating_sub(reused);
    sample.recovered_files += recovery.recovered_files.unwrap_or(0);
    sample.total_files += recovery.total_files.unwrap_or(0);
    *sample.stages.entry(recovery.stage.clone()).or_default() += 1;
    for (limit, ns) in &recovery.charged_ns {
        *sample.charged_s.entry(*limit).or_default() += *ns as f64 / 1e9;
    }
}

fn node_sample(look: &Observation, pace: &NodePace) -> Option<NodeSample> {
    let node = look.nodes.iter().find(|node| node.name == pace.name)?;
    let cores = node.cores.unwrap_or(1) as f64;
    Some(NodeSample {
        cluster: look.cluster.name.clone(),
        node: node.name.clone(),
        cpu_cores: pace.cpu.map_or(0.0, |cpu| if pace.cpu_of_all { cpu * cores } else { cpu }),
        resident_bytes: node.resident_bytes.unwrap_or(0),
        heap_used_bytes: node.heap_used_bytes,
        gc_ms: node.heap_used_bytes.and(node.gc_ms),
        disk_read_bytes: node.read_kib.map(|kib| kib.saturating_mul(1024)),
        disk_written_bytes: node.write_kib.map(|kib| kib.saturating_mul(1024)),
        disk_busy_ms: node.io_time_ms,
        open_files: None,
        transport_rx_bytes: node.transport_rx_bytes.unwrap_or(0),
        transport_tx_bytes: node.transport_tx_bytes.unwrap_or(0),
        throttle_ms: node.throttle_ms.unwrap_or(0),
        machine_cpu: node.os_cpu_percent.map(|percent| percent as f64 / 100.0),
    })
}

#[cfg(test)]
mod tests {
    use insight::{Progress, Summary, curves};
    use record::RunDir;
    use record::observation::Node;

    use super::*;

    const MB: u64 = 1_000_000;

    /// A night of short recoveries: of those that are over the sum is kept, and one that comes back counts once.
    #[test]
    fn recoveries_that_are_over_are_kept_as_their_sum() {
        let dir = tempfile::tempdir().unwrap();
        let first = Observation::default();
        let mut recording = Recording::create(dir.path(), "watch", "es:9200", &first).unwrap();
        let one = |start_ms: u64, ended: bool| Recovery {
            start_ms: Some(start_ms),
            recovered_bytes: Some(if ended { 2 * MB } else { MB }),
            ended,
            ..Recovery::default()
        };
        let mut sum = |recoveries: &[Recovery]| {
            let look = Observation { recoveries: recoveries.to_vec(), ..Observation::default() };
            let bytes = recording.recovery_sample(&look).recovered_bytes;
            (bytes / MB, recording.told.len())
        };
        for n in 1..=100 {
            assert_eq!(sum(&[one(n - 1, true), one(n, false)]), (2 * n + 1, 2));
        }
        assert_eq!(sum(&[one(100, true)]), (202, 1));
        assert_eq!(sum(&[one(100, false)]), (201, 1));
        assert_eq!(sum(&[]), (201, 1));
    }

    /// The cluster fell silent after two seconds, and somebody went on looking.
    #[test]
    fn a_record_ends_when_the_looking_ended() {
        let dir = tempfile::tempdir().unwrap();
        let look = Observation::default();
        let mut recording = Recording::create(dir.path(), "watch", "es:9200", &look).unwrap();
        for t_ms in [1000.0, 3000.0] {
            recording.look(t_ms, &look, &Series::new([(t_ms, &look)])).unwrap();
        }
        let run = RunDir::open(&recording.end(10_000.0).unwrap()).unwrap();
        let summary = Summary::of(&run);
        match &summary.variants[0].progress {
            Progress::Partial { seconds, .. } => assert_eq!(*seconds, 9.0),
            other => panic!("a watch finishes no lap: {other:?}"),
        }
    }

    /// What a change brings shows in seconds, and a night is long.
    #[test]
    fn looks_are_kept_now_and_then_and_each_for_a_while_after_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let look = Observation::default();
        let mut recording = Recording::create(dir.path(), "steer", "es:9200", &look).unwrap();
        for s in 0..=65 {
            let t_ms = f64::from(s) * 1e3;
            match s {
                15 => recording.changed(t_ms, "limit", Some("8mb")).unwrap(),
                18 => recording.changed(t_ms, "limit", Some("16mb")).unwrap(),
                20 => recording.changed(t_ms, "limit", None).unwrap(),
                21 => recording.changed(t_ms, "slots", Some("4")).unwrap(),
                _ => {}
            }
            recording.look_in_time(t_ms, &look, &Series::new([(t_ms, &look)])).unwrap();
        }
        // The last look is kept, and once.
        for _ in 0..2 {
            recording.look(65e3, &look, &Series::new([(65e3, &look)])).unwrap();
        }
        recording.put_back(66e3).unwrap();
        let run = RunDir::open(&recording.end(67e3).unwrap()).unwrap();
        let kept_s = run.lines.iter().filter_map(|line| match line {
            Line::Observation { t_ms, .. } => Some((t_ms / 1e3) as u32),
            _ => None,
        });
        let expected: Vec<u32> = [0, 10].into_iter().chain(15..=51).chain([61, 65]).collect();
        assert_eq!(kept_s.collect::<Vec<_>>(), expected);
        let shades = &curves(&run, &Summary::of(&run))[0].shades;
        let shades = shades.iter().map(|shade| (shade.from_s, shade.to_s, shade.what.as_str()));
        let expected =
            [(15.0, 18.0, "limit = 8mb"), (18.0, 20.0, "limit = 16mb"), (21.0, 66.0, "slots = 4")];
        assert_eq!(shades.collect::<Vec<_>>(), expected);
    }

    /// 70 MB were there when somebody began to look, and each second brings one more.
    #[test]
    fn a_record_draws_what_came_since_its_first_look_and_the_heap_and_disks_of_nodes() {
        let look = |s: u64| Observation {
            nodes: vec![Node {
                name: "b".into(),
                heap_used_bytes: Some(400 * MB + s),
                gc_ms: Some(s * 100),
                read_kib: Some(s * 1000),
                write_kib: Some(s * 2000),
                io_time_ms: Some(s * 500),
                ..Node::default()
            }],
            recoveries: vec![Recovery {
                target: Some("b".into()),
                stage: "INDEX".into(),
                recovered_bytes: Some((70 + s) * MB),
                total_bytes: Some(1000 * MB),
                ..Recovery::default()
            }],
            ..Observation::default()
        };
        let looks: Vec<Observation> = (0..=5).map(look).collect();
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(dir.path(), "watch", "es:9200", &looks[0]).unwrap();
        let at = |s: usize| 500.0 + s as f64 * 1e3;
        let series = Series::new(looks.iter().enumerate().map(|(s, look)| (at(s), look)));
        for (s, look) in looks.iter().enumerate() {
            recording.look(at(s), look, &series.head(s + 1)).unwrap();
        }
        let run = RunDir::open(&recording.end(at(5)).unwrap()).unwrap();
        let drawn = &curves(&run, &Summary::of(&run))[0];
        let points: Vec<(f64, f64)> =
            drawn.recovered.iter().map(|point| (point.t_s, point.value)).collect();
        let expected: Vec<(f64, f64)> =
            (0..=5).map(|s| (f64::from(s), f64::from(s) * 1e6)).collect();
        assert_eq!(points, expected);
        let node = &drawn.nodes[0];
        let all =
            [&node.heap, &node.collecting, &node.disk_read, &node.disk_written, &node.disk_busy];
        let last = all.map(|points| points.last().unwrap().value);
        assert_eq!(last, [400_000_005.0, 0.1, 1_024_000.0, 2_048_000.0, 0.5]);
    }
}
