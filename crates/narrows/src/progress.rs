//! Live progress on standard error: a bar for each phase, or plain lines where it is no terminal.

use std::cell::RefCell;
use std::fmt::Write;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use lab::Watch;
use record::Row;
use record::text::{visible, visible_line};
use record::units::{show_bytes, show_rate, show_seconds};

use crate::terminal::{self, say};

/// Plain lines come no closer than this.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of a run, for people.
pub(crate) struct Progress {
    terminal: bool,
    phase: RefCell<Phase>,
}

struct Phase {
    title: String,
    unit: String,
    began: Instant,
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
            told: now,
            total: None,
            bar: None,
        };
        Progress { terminal: terminal::is_error_terminal(), phase: RefCell::new(phase) }
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
        let counts = match unit {
            "bytes" => "{decimal_bytes:>9}/{decimal_total_bytes:9} {decimal_bytes_per_sec:>11}",
            "" => "",
            _ => "{human_pos:>9}/{human_len:9} {whole_per_sec:>11}",
        };
        let template = match unit {
            "" => "{msg:28} {spinner} {elapsed:>4}".to_owned(),
            _ => format!("{{msg:28}} {{bar:28}} {counts} eta {{eta:>4}}"),
        };
        let style = ProgressStyle::with_template(&template).expect("the template is fixed");
        // The library's own has eleven digits behind the point.
        let style = style.with_key("whole_per_sec", |state: &ProgressState, to: &mut dyn Write| {
            let _ = write!(to, "{}/s", HumanCount(state.per_sec() as u64));
        });
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
        *self.phase.borrow_mut() = Phase { title, unit, began: now, told: now, total, bar };
    }

    fn progress(&self, done: u64, total: Option<u64>) {
        let mut phase = self.phase.borrow_mut();
        phase.total = total.or(phase.total);
        if let Some(bar) = &phase.bar {
            if let Some(total) = phase.total {
                bar.set_length(total);
            }
            bar.set_position(done);
            return;
        }
        if phase.told.elapsed() >= LINE_EVERY {
            phase.told = Instant::now();
            say!("{}", phase.line(done));
        }
    }

    fn end(&self) {
        let phase = self.phase.borrow_mut();
        match &phase.bar {
            Some(bar) => bar.finish_and_clear(),
            None => {
                let took = phase.began.elapsed().as_secs_f64();
                say!("{}: {}", phase.title, show_seconds(took));
            }
        }
    }

    fn row(&self, row: &Row) {
        if self.terminal {
            let (took, rate) = (show_seconds(row.seconds), show_rate(row.bytes_per_s));
            let held = row.held_by().map_or("nothing", |share| share.limit.label());
            self.say(&format!("{:12} {took:>8} {rate:>10}, held by {held}", row.variant));
        }
    }

    fn note(&self, text: &str) {
        self.say(text);
    }

    /// Removes the bar of a phase that did not reach its end.
    fn clear(&self) {
        if let Some(bar) = self.phase.borrow_mut().bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Phase {
    /// Where it stands, with rate and time to go.
    fn line(&self, done: u64) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = done as f64 / seconds;
        let show = |n: u64| if self.unit == "bytes" { show_bytes(n) } else { n.to_string() };
        let pace = match self.unit.as_str() {
            "bytes" => show_rate(rate),
            unit => format!("{rate:.0} {unit}/s"),
        };
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
