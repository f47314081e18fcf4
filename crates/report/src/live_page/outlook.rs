//! What `what-if` said would happen to the cluster, as the page shows it: read from what it prints with `--json`.

use record::units::show_interval;
use serde::{Deserialize, Serialize};

/// After so long a cluster is another one.
const DAY_MS: u64 = 24 * 3_600_000;
const ANSWERS_MAX: usize = 8;
const POINTS_MAX: usize = 200;

/// What is printed, as far as it is read here.
#[derive(Deserialize)]
struct Printed {
    asked: String,
    until: String,
    lost: Vec<String>,
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    variant: String,
    between_s: (f64, f64),
    curve: Vec<Point>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    never_green: Vec<String>,
}

/// What is outstanding so long after it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Point {
    t_s: f64,
    copies: u32,
    bytes: u64,
}

/// The last answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// When it was given, in milliseconds since 1970.
    at_ms: u64,
    asked: String,
    /// What is waited for: green, empty, balanced or placed.
    until: String,
    /// The nodes that were asked about, where they are to be lost.
    lost: Vec<String>,
    answers: Vec<Within>,
    /// Of the first answer.
    curve: Vec<Point>,
}

/// How long it takes, with one set of settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Within {
    variant: String,
    between_s: (f64, f64),
    /// What comes of it and when.
    words: String,
}

impl Outlook {
    /// Reads what was printed at a moment; none where it is of another day (a clock may have been wrong), or no answer.
    pub fn read(printed: &str, at_ms: u64, now_ms: u64) -> Option<Outlook> {
        if now_ms.abs_diff(at_ms) > DAY_MS {
            return None;
        }
        let Printed { asked, until, lost, mut answers } = serde_json::from_str(printed).ok()?;
        let mut curve = std::mem::take(&mut answers.first_mut()?.curve);
        curve.truncate(POINTS_MAX);
        let within = |Answer { variant, between_s, bytes, never_green, .. }: Answer| {
            let comes = format!("{until} in {}", show_interval(between_s.0, between_s.1));
            let words = match never_green.first() {
                None => comes,
                // Nothing comes: when nothing was waited for any more tells nothing.
                Some(why) if bytes == 0 => format!("nothing is copied, and never green: {why}"),
                Some(why) => format!("{comes}, but never green: {why}"),
            };
            Within { variant, between_s, words }
        };
        let answers = answers.into_iter().take(ANSWERS_MAX).map(within).collect();
        Some(Outlook { at_ms, asked, until, lost, answers, curve })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_answer_is_shown_for_a_day() {
        let point = |t_s: f64, bytes: u64| json!({"t_s": t_s, "copies": 2, "bytes": bytes});
        let answer = |variant: &str, to_s: f64| {
            json!({
                "variant": variant, "green_s": 70.0, "between_s": [60.0, to_s], "gain": 1.0,
                "curve": [point(1.0, 60), point(70.0, 0)],
            })
        };
        let printed = json!({
            "format": 1, "asked": "c lost for good", "until": "green", "lost": ["c"], "tried": [],
            "answers": [answer("as it is", 90.0), answer("index.priority=1", 200.0)],
        });
        let printed = printed.to_string();
        let outlook = Outlook::read(&printed, 1000, 2000).unwrap();
        let words: Vec<_> = outlook.answers.iter().map(|one| one.words.as_str()).collect();
        assert_eq!(words, ["green in 60.0 s to 90.0 s", "green in 1:00 to 3:20"]);
        assert_eq!((outlook.curve.len(), outlook.curve[0].bytes), (2, 60));
        assert_eq!(Outlook::read(&printed, 1000, 1001 + DAY_MS), None);
        assert_eq!(Outlook::read(&printed, u64::MAX, 1000), None, "no browser knows that day");
        let mut stays: serde_json::Value = serde_json::from_str(&printed).unwrap();
        stays["until"] = json!("placed");
        stays["answers"][0]["never_green"] = json!(["1 copy finds no place"]);
        let mut says = |bytes: u64| {
            stays["answers"][0]["bytes"] = json!(bytes);
            Outlook::read(&stays.to_string(), 1000, 2000).unwrap().answers[0].words.clone()
        };
        assert_eq!(says(60), "placed in 60.0 s to 90.0 s, but never green: 1 copy finds no place");
        assert_eq!(says(0), "nothing is copied, and never green: 1 copy finds no place");
        for wrong in ["", "{}", &printed[..printed.len() - 1], &printed.replace("answers", "a")] {
            assert_eq!(Outlook::read(wrong, 1000, 1000), None, "{wrong}");
        }
        let nothing = json!({"asked": "", "until": "", "lost": [], "answers": []}).to_string();
        assert_eq!(Outlook::read(&nothing, 1000, 1000), None);
    }
}
