//! Makes a case that fails smaller: fewer faults, fewer requests.

use crate::scenario::{Case, Scenario};

/// The smallest case found that fails still, and how. A part that can go is gone; not every combination is tried.
pub fn shrink(case: &Case, fails: impl Fn(&Scenario) -> Option<String>) -> (Case, String) {
    let try_case = |case: &Case| fails(&Scenario::of(case));
    let mut why = try_case(case).unwrap_or_else(|| "it does not fail again".to_owned());
    let count = Scenario::of(&Case { faults: None, ..case.clone() }).faults.len();
    let mut best = case.clone();
    loop {
        let faults: Vec<usize> = best.faults.clone().unwrap_or((0..count).collect());
        let without = |gone: usize| faults.iter().copied().filter(|fault| *fault != gone).collect();
        let fewer = faults.iter().map(|gone| Case { faults: Some(without(*gone)), ..best.clone() });
        let smaller = fewer.into_iter().find_map(|case| Some((try_case(&case)?, case)));
        let Some((found, case)) = smaller else { break };
        (why, best) = (found, case);
    }
    let mut requests = best.requests.unwrap_or(1 << 12);
    while requests > 1 {
        let case = Case { requests: Some(requests / 2), ..best.clone() };
        let Some(found) = try_case(&case) else { break };
        (why, best, requests) = (found, case, requests / 2);
    }
    (best, why)
}
