//! What `steer` did to the cluster in the last hour, as the page shows it: read from the lines that it prints with
//! `--json`.

use insight::words;
use serde::{Deserialize, Serialize};

use crate::stored::epoch_ms;

/// Steps that are shown: the last ones.
const STEPS_MAX: usize = 50;
const HOUR_MS: u64 = 3_600_000;

/// A line, as far as it is read here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    time: String,
    step: String,
    setting: String,
    from: String,
    to: String,
    holds: String,
    before_per_s: Option<f64>,
    expected: Option<f64>,
    after_per_s: Option<f64>,
    got: Option<f64>,
    why: String,
}

/// Runs of which something is of the last hour, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Steering {
    runs: Vec<Run>,
}

/// One run, with its steps of the last hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Run {
    /// When it began, or when it is first told of.
    at_ms: u64,
    /// What it may do; empty where that is not told.
    allowed: String,
    steps: Vec<Step>,
    /// How it ended, where it does not go on.
    end: Option<End>,
}

/// A setting that was changed, and what came of it. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Step {
    at_ms: u64,
    /// None while it is on trial.
    ended_ms: Option<u64>,
    setting: String,
    from: String,
    to: String,
    holds: String,
    before: String,
    expected: String,
    after: String,
    got: String,
    result: &'static str,
    why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct End {
    at_ms: u64,
    why: String,
}

impl Steering {
    /// Reads lines; those that are cut off, or no line of `steer`, are left out. None where none is of the last hour.
    pub fn read(lines: &str, now_ms: u64) -> Option<Steering> {
        let mut all = Steering::default();
        for line in lines.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            if let Some(at_ms) = epoch_ms(&line.time) {
                all.take(at_ms as u64, line);
            }
        }
        // What a clock told that was wrong is of no hour: it would be shown for ever.
        let is_of_the_hour = |at_ms: u64| now_ms.abs_diff(at_ms) <= HOUR_MS;
        for run in &mut all.runs {
            run.steps.retain(|step| is_of_the_hour(step.ended_ms.unwrap_or(step.at_ms)));
            run.end = run.end.take().filter(|end| is_of_the_hour(end.at_ms));
        }
        let steps: usize = all.runs.iter().map(|run| run.steps.len()).sum();
        let mut over = steps.saturating_sub(STEPS_MAX);
        for run in &mut all.runs {
            over -= run.steps.drain(..over.min(run.steps.len())).count();
        }
        all.runs.retain(|run| {
            let has_begun = !run.allowed.is_empty() && is_of_the_hour(run.at_ms);
            has_begun || !run.steps.is_empty() || run.end.is_some()
        });
        (!all.runs.is_empty()).then_some(all)
    }

    fn take(&mut self, at_ms: u64, line: Line) {
        match line.step.as_str() {
            "begin" => {
                // Whoever was killed told no more.
                self.runs.iter_mut().for_each(|run| run.close(at_ms, "not told"));
                self.runs.push(Run { at_ms, allowed: line.why, ..Run::default() });
            }
            "set" => {
                let run = self.run(at_ms);
                run.close(at_ms, "not told");
                run.steps.push(Step::new(at_ms, line));
            }
            "keep" => self.run(at_ms).came(at_ms, line, "kept"),
            "take_back" => self.run(at_ms).came(at_ms, line, "taken back"),
            "give_way" => self.run(at_ms).came(at_ms, line, "gave way"),
            "end" => {
                let run = self.run(at_ms);
                // Somebody else may have set it since: the end says what became of it.
                run.close(at_ms, "on trial to the end");
                run.end = Some(End { at_ms, why: line.why });
            }
            _ => {}
        }
    }

    /// The run that goes on; a new one where its beginning is not told.
    fn run(&mut self, at_ms: u64) -> &mut Run {
        if self.runs.last().is_none_or(|run| run.end.is_some()) {
            self.runs.push(Run { at_ms, ..Run::default() });
        }
        let last = self.runs.len() - 1;
        &mut self.runs[last]
    }
}

impl Run {
    /// What is on trial is on trial no more.
    fn close(&mut self, at_ms: u64, result: &'static str) {
        for step in self.steps.iter_mut().filter(|step| step.ended_ms.is_none()) {
            (step.ended_ms, step.result) = (Some(at_ms), result);
        }
    }

    /// What came of the setting that is on trial; of one that was kept before where none is.
    fn came(&mut self, at_ms: u64, line: Line, result: &'static str) {
        let is_it = |step: &Step| step.ended_ms.is_none() && step.setting == line.setting;
        let on_trial = self.steps.iter().rposition(is_it).map(|at| self.steps.remove(at));
        let outcome = Step::new(at_ms, line);
        let began = on_trial.unwrap_or_else(|| outcome.clone());
        let (after, got, why) = (outcome.after, outcome.got, outcome.why);
        self.steps.push(Step { ended_ms: Some(at_ms), after, got, result, why, ..began });
    }
}

impl Step {
    fn new(at_ms: u64, line: Line) -> Step {
        let rate = |per_s: Option<f64>| per_s.map_or_else(|| "-".to_owned(), words::rate);
        let times = |factor: Option<f64>| factor.map_or_else(|| "-".to_owned(), words::times);
        let Line { setting, from, to, holds, why, .. } = line;
        Step {
            at_ms,
            ended_ms: None,
            setting,
            from,
            to,
            holds,
            before: rate(line.before_per_s),
            expected: times(line.expected),
            after: rate(line.after_per_s),
            got: times(line.got),
            result: "on trial",
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMIT: &str = "indices.recovery.max_bytes_per_sec";

    fn line(time: &str, step: &str, from: &str, to: &str) -> String {
        let line = json!({
            "time": format!("2026-11-25T{time}Z"), "step": step, "setting": LIMIT, "from": from, "to": to,
            "holds": "rate limit", "before_per_s": 2e6, "expected": 4.0, "after_per_s": 8e6, "got": 4.0, "why": "so",
        });
        format!("{line}\n")
    }

    fn ms(time: &str) -> u64 {
        epoch_ms(&format!("2026-11-25T{time}Z")).unwrap() as u64
    }

    fn results(steering: &Steering) -> Vec<(&str, &str)> {
        let steps = steering.runs.iter().flat_map(|run| &run.steps);
        steps.map(|step| (step.to.as_str(), step.result)).collect()
    }

    #[test]
    fn a_trial_and_what_came_of_it_are_one_step() {
        let lines = [
            "cut off\"}\n".to_owned(),
            line("01:00:00", "set", "2mb", "8mb"),
            json!({"time": "2026-11-25T01:00:01Z", "step": "look"}).to_string() + "\n",
            line("01:00:08", "keep", "2mb", "8mb"),
            line("01:00:09", "set", "8mb", "16mb"),
            line("01:00:20", "take_back", "8mb", "16mb"),
            line("01:05:00", "give_way", "8mb", "2mb"),
            line("01:06:00", "set", "2mb", "4mb"),
        ];
        let read = |lines: &[String]| Steering::read(&lines.concat(), ms("01:10:00")).unwrap();
        let steering = read(&lines);
        let expected =
            [("8mb", "kept"), ("16mb", "taken back"), ("2mb", "gave way"), ("4mb", "on trial")];
        assert_eq!(results(&steering), expected);
        let first = &steering.runs[0].steps[0];
        assert_eq!((first.at_ms, first.ended_ms), (ms("01:00:00"), Some(ms("01:00:08"))));
        let told = [&first.before, &first.expected, &first.after, &first.got];
        assert_eq!(told, ["2.00 MB/s", "4.0 times", "8.00 MB/s", "4.0 times"]);
        assert_eq!((steering.runs.len(), &steering.runs[0].end), (1, &None));
        let end = [&lines[..], &[line("01:07:00", "end", "", "")]].concat();
        let ended = read(&end);
        assert_eq!(results(&ended)[3], ("4mb", "on trial to the end"));
        let told = Some(End { at_ms: ms("01:07:00"), why: "so".to_owned() });
        assert_eq!(ended.runs[0].end, told);
        // It was killed, and another one began.
        let again = [&lines[..], &[line("01:08:00", "set", "4mb", "8mb")]].concat();
        assert_eq!(results(&read(&again))[3..], [("4mb", "not told"), ("8mb", "on trial")]);
    }

    #[test]
    fn each_run_has_its_beginning_its_steps_and_its_end() {
        let lines = [
            line("01:00:00", "begin", "", ""),
            line("01:00:01", "set", "2mb", "8mb"),
            line("01:00:08", "keep", "2mb", "8mb"),
            line("01:02:00", "end", "", ""),
            // This one was killed.
            line("01:10:00", "begin", "", ""),
            line("01:10:01", "set", "2mb", "4mb"),
            line("01:20:00", "begin", "", ""),
        ];
        let runs = Steering::read(&lines.concat(), ms("01:30:00")).unwrap().runs;
        let told = |run: &Run| (run.at_ms, run.steps.len(), run.end.is_some());
        let expected = [("01:00:00", 1, true), ("01:10:00", 1, false), ("01:20:00", 0, false)];
        assert_eq!(
            runs.iter().map(told).collect::<Vec<_>>(),
            expected.map(|(t, n, e)| (ms(t), n, e))
        );
        assert!(runs.iter().all(|run| run.allowed == "so"));
        assert_eq!(runs[1].steps[0].result, "not told");
    }

    #[test]
    fn what_is_older_than_an_hour_is_not_shown_and_no_more_than_so_many_are() {
        let old = line("01:00:00", "set", "2mb", "8mb") + &line("01:00:08", "keep", "2mb", "8mb");
        assert!(Steering::read(&old, ms("02:00:08")).is_some());
        assert_eq!(Steering::read(&old, ms("02:00:09")), None);
        assert_eq!(Steering::read(&old, ms("00:00:00")), None, "it is to come");
        assert_eq!(Steering::read("", 0), None);
        let many = |at: usize| line("01:00:00", "keep", "2mb", &format!("{at}mb"));
        let many: String = (0..120).map(many).collect();
        let steering = Steering::read(&many, ms("01:00:00")).unwrap();
        assert_eq!(results(&steering).len(), STEPS_MAX);
        assert_eq!(results(&steering)[STEPS_MAX - 1], ("119mb", "kept"));
    }
}
