//! Live progress on standard error: a bar for each phase, or plain lines where it is no terminal.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use insight::words;
use lab::Watch;
use record::Row;
use record::text::{visible, visible_line};
use record::units::{show_bytes, show_seconds};

use crate::terminal::{self, say};

/// Plain lines come no closer than this.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of a run, for people.
pub(crate) struct Progress {
    terminal: bool,
    phase: RefCell<Phase>,
    /// What the clock of the virtual world shows, in seconds; none in real time.
    virtual_s: Cell<Option<f64>>,
}

struct Phase {
    title: String,
    unit: String,
    began: Instant,
    /// When it began in virtual time, in seconds.
    began_virtual_s: Option<f64>,
    told: Instant,
    total: Option<u64>,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let phase = Phase {
            title: String::new(),
            unit: String::new(),
            began: now,
            began_virtual_s: None,
            told: now,
            total: None,
            bar: None,
        };
        let terminal = terminal::is_error_terminal();
        Progress { terminal, phase: RefCell::new(phase), virtual_s: Cell::new(None) }
    }

    fn say(&self, text: &str) {
        match &self.phase.borrow().bar {
            Some(bar) => bar.println(visible(text)),
            None => say!("{text}"),
        }
    }

    fn bar(&self, title: &str, unit: &str, total: Option<u64>) -> Option<ProgressBar> {
        if !self.terminal {
            return None;
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template = match unit {
            "" => "{msg:28} {spinner} {took}",
            _ => "{msg:28} {bar:28} {done:>9}/{of:9} {prefix:>19} eta {left}",
        };
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        // Sizes and rates as every table has them.
        let is_bytes = unit == "bytes";
        let done = move |state: &ProgressState, to: &mut dyn Write| {
            let _ = to.write_str(&amount(state.pos(), is_bytes));
        };
        let of = move |state: &ProgressState, to: &mut dyn Write| {
            let _ =
                to.write_str(&state.len().map_or_else(String::new, |len| amount(len, is_bytes)));
        };
        let took = |state: &ProgressState, to: &mut dyn Write| {
            let _ = to.write_str(&show_seconds(state.elapsed().as_secs_f64()));
        };
        let left = |state: &ProgressState, to: &mut dyn Write| {
            let _ = to.write_str(&to_go(state.pos(), state.eta()));
        };
        let style = style.with_key("done", done).with_key("of", of);
        let style = style.with_key("took", took).with_key("left", left);
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        bar.set_message(visible_line(title).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Some(bar)
    }
}

impl Watch for Progress {
    fn begin(&self, phase: &str, variant: Option<&str>, total: Option<u64>, unit: &str) {
        let title = match variant {
            Some(variant) => format!("{phase} {variant}"),
            None => phase.to_owned(),
        };
        let bar = self.bar(&title, unit, total);
        if bar.is_none() {
            say!("{title} ...");
        }
        let now = Instant::now();
        let unit = unit.to_owned();
        let began_virtual_s = self.virtual_s.get();
        let phase = Phase { title, unit, began: now, began_virtual_s, told: now, total, bar };
        *self.phase.borrow_mut() = phase;
    }

    fn progress(&self, done: u64, total: Option<u64>) {
        let mut phase = self.phase.borrow_mut();
        phase.total = total.or(phase.total);
        if let Some(bar) = &phase.bar {
            // Of nothing all is done: until more is known there is no length.
            if let Some(total) = phase.total.filter(|total| *total > 0) {
                bar.set_length(total);
            }
            bar.set_prefix(phase.pace(done, self.virtual_s.get()));
            bar.set_position(done);
            return;
        }
        if phase.told.elapsed() >= LINE_EVERY {
            phase.told = Instant::now();
            say!("{}", phase.line(done, self.virtual_s.get()));
        }
    }

    fn end(&self) {
        let phase = self.phase.borrow_mut();
        match &phase.bar {
            Some(bar) => bar.finish_and_clear(),
            // Its time is a figure of the row that follows, and shorter there: one time for one thing.
            None if phase.unit == "bytes" => {}
            None => {
                let took = show_seconds(phase.began.elapsed().as_secs_f64());
                match phase.virtual_seconds(self.virtual_s.get()) {
                    Some(virtual_s) => {
                        let virtual_s = show_seconds(virtual_s);
                        say!("{}: {took}, {virtual_s} of virtual time", phase.title);
                    }
                    None => say!("{}: {took}", phase.title),
                }
            }
        }
    }

    fn row(&self, row: &Row) {
        self.say(&row_line(row));
    }

    fn note(&self, text: &str) {
        self.say(text);
    }

    fn clock(&self, now_s: f64) {
        self.virtual_s.set(Some(now_s));
    }

    /// Removes the bar of a phase that did not reach its end.
    fn clear(&self) {
        if let Some(bar) = self.phase.borrow_mut().bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The figures of the table; a phase takes longer than what is measured in it.
fn row_line(row: &Row) -> String {
    let name = match row.lap {
        0 | 1 => row.variant.clone(),
        lap => format!("{}, lap {lap}", row.variant),
    };
    let mut line = format!("{name:12} {:>8}", show_seconds(row.seconds));
    // The bytes of a load are those of its answers.
    if row.loads.is_empty() {
        let _ = write!(line, " {:>11}", words::rate(row.bytes_per_s));
    }
    if let Some(share) = row.held_by() {
        let _ = write!(line, ", held by {}", share.limit.label());
    }
    line
}

/// An amount of something, as tables have it.
fn amount(count: u64, is_bytes: bool) -> String {
    if is_bytes { show_bytes(count) } else { count.to_string() }
}

/// What is left of the time; nobody knows it before something is done.
fn to_go(done: u64, left: Duration) -> String {
    if done == 0 { "-".to_owned() } else { show_seconds(left.as_secs_f64()) }
}

impl Phase {
    /// How long it has lasted in virtual time; none in real time, and while nothing has passed.
    fn virtual_seconds(&self, now_s: Option<f64>) -> Option<f64> {
        // A variant may begin a world of its own.
        Some(now_s? - self.began_virtual_s.unwrap_or(0.0)).filter(|seconds| *seconds > 0.0)
    }

    /// Its rate, in virtual time where that is given.
    fn pace(&self, done: u64, virtual_s: Option<f64>) -> String {
        let in_virtual_time = self.virtual_seconds(virtual_s);
        let seconds = in_virtual_time.unwrap_or_else(|| self.began.elapsed().as_secs_f64());
        let rate = done as f64 / seconds;
        let pace = match self.unit.as_str() {
            "bytes" => words::rate(rate),
            unit => match format!("{rate:.0}").as_str() {
                "1" => format!("1 {}/s", unit.trim_end_matches('s')),
                rate => format!("{rate} {unit}/s"),
            },
        };
        match in_virtual_time {
            Some(_) => format!("{pace} virtual"),
            None => pace,
        }
    }

    /// Where it stands, with rate and time to go.
    fn line(&self, done: u64, virtual_s: Option<f64>) -> String {
        // What is to go is waited for in real time.
        let rate = done as f64 / self.began.elapsed().as_secs_f64();
        let show = |n: u64| amount(n, self.unit == "bytes");
        let pace = self.pace(done, virtual_s);
        match self.total.filter(|total| *total > 0 && rate > 0.0) {
            Some(total) => {
                let left = total.saturating_sub(done) as f64 / rate;
                let (title, percent) = (&self.title, done * 100 / total);
                format!(
                    "{title}: {percent} %, {} of {}, {pace}, {} to go",
                    show(done),
                    show(total),
                    show_seconds(left)
                )
            }
            None => format!("{}: {}, {pace}", self.title, show(done)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(unit: &str, began_virtual_s: Option<f64>) -> Phase {
        let (title, unit, now) = ("recover a".to_owned(), unit.to_owned(), Instant::now());
        Phase { title, unit, began: now, began_virtual_s, told: now, total: None, bar: None }
    }

    #[test]
    fn what_is_left_is_no_zero_while_it_is_not_known() {
        assert_eq!(to_go(0, Duration::ZERO), "-");
        assert_eq!(to_go(5, Duration::from_millis(310)), "310 ms");
        assert_eq!(to_go(5, Duration::from_millis(5370)), "5.37 s");
    }

    #[test]
    fn a_load_has_no_rate_of_bytes() {
        let copy = Row::measured("a", 1, 2.0, 8_000_000);
        assert_eq!(row_line(&copy), format!("a{:14}2.00 s   4.00 MB/s", ""));
        let load = Row { loads: vec![record::LoadFigures::default()], ..copy };
        assert_eq!(row_line(&load), format!("a{:14}2.00 s", ""));
        let again = Row { lap: 2, ..load };
        assert_eq!(row_line(&again), format!("a, lap 2{:7}2.00 s", ""));
    }

    #[test]
    fn rates_in_virtual_time_are_those_of_its_clock() {
        let recovers = phase("bytes", Some(100.0));
        assert_eq!(recovers.pace(850_000_000, Some(110.0)), "85.0 MB/s virtual");
        assert_eq!(recovers.pace(3_860_000, Some(110.0)), "0.39 MB/s virtual");
        assert_eq!(phase("documents", None).pace(500, Some(10.0)), "50 documents/s virtual");
        assert_eq!(phase("requests", None).pace(12, Some(10.0)), "1 request/s virtual");
        // No time has passed yet, and in real time there is no such clock.
        for (began, now) in [(Some(100.0), Some(100.0)), (None, None)] {
            assert!(!phase("bytes", began).pace(1, now).contains("virtual"));
        }
    }
}
