//! Writers beside a recovery, and a fault.

use record::{Line, RunDir};

/// What is wrong in [`write_beside`].
pub const FAULT: &str = "follower-0 is killed";

/// Has writers write beside every recovery, and a node be killed during the first from its fifth sample to its ninth.
pub fn write_beside(run: &mut RunDir) {
    let first = run.manifest.variants[0].name.clone();
    let (mut times, mut documents) = (Vec::new(), 0);
    for line in &mut run.lines {
        if let Line::Recovery { t_ms, variant, sample, .. } = line {
            documents += 4000;
            sample.indexed_documents = Some(documents);
            if *variant == first {
                times.push(*t_ms);
            }
        }
    }
    for (t_ms, begins) in [(times[4], true), (times[8], false)] {
        let (variant, what) = (first.clone(), FAULT.to_owned());
        let at = run.lines.iter().position(|line| line.t_ms() >= t_ms).expect("it is within");
        run.lines.insert(at, Line::Fault { t_ms, variant, what, begins });
    }
}
