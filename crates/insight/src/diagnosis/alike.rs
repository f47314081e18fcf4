//! Findings of one cause at several places that one setting lifts: they are said once.

use record::names::listed;

use super::finding::Finding;

/// Places that are named besides the first; of more, the others are counted.
const NAMED_MAX: usize = 4;

/// A finding, and those after it that the same setting lifts at other places.
pub struct Alike<'f> {
    /// The first of them, which all that is said is of.
    pub first: &'f Finding,
    /// The others.
    pub also: Vec<&'f Finding>,
}

impl<'f> Alike<'f> {
    /// Findings in their order, each with those that are like it.
    pub fn of(findings: &'f [Finding]) -> Vec<Alike<'f>> {
        let mut all: Vec<Alike<'f>> = Vec::new();
        for finding in findings {
            match all.iter_mut().find(|one| is_alike(one.first, finding)) {
                Some(one) => one.also.push(finding),
                None => all.push(Alike { first: finding, also: Vec::new() }),
            }
        }
        all
    }

    /// The sentence of the first, and where the same holds besides.
    pub fn sentence(&self) -> String {
        format!("{}{}", self.first.sentence, self.elsewhere())
    }

    /// Where the same holds besides: `; the same at a, b and 7 more`; nothing where it holds at one place.
    pub fn elsewhere(&self) -> String {
        let count = self.also.len();
        let shown = if count > NAMED_MAX { NAMED_MAX - 1 } else { count };
        let mut named: Vec<String> =
            self.also[..shown].iter().map(|finding| finding.place.clone()).collect();
        if shown < count {
            named.push(format!("{} more", count - shown));
        }
        // A round trip is between two nodes.
        let at = if self.first.place.starts_with("between ") { "" } else { "at " };
        if count == 0 { String::new() } else { format!("; the same {at}{}", listed(&named)) }
    }

    /// What all of them hold.
    pub fn subjects(&self) -> impl Iterator<Item = &'f String> {
        let all = [self.first].into_iter().chain(self.also.iter().copied());
        all.flat_map(|finding| &finding.subjects)
    }
}

/// Whether two findings are of one cause at two places, and a value of one setting lifts both.
fn is_alike(one: &Finding, other: &Finding) -> bool {
    let of_one = setting(one);
    of_one.is_some()
        && of_one == setting(other)
        && (one.class, one.over) == (other.class, other.over)
        && one.place != other.place
        && !one.place.is_empty()
        && !other.place.is_empty()
}

/// The setting of which a value is advised, by the finding or by one that comes before it. Paths that carry what they
/// carry have one as well, and each its own rate.
fn setting(finding: &Finding) -> Option<&str> {
    let lift = finding.lift.as_ref()?;
    let is_advised = lift.to.is_some() || finding.yielded.is_some();
    lift.setting.as_deref().filter(|_| is_advised)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{Class, Lift};

    fn of(place: &str, setting: Option<&str>) -> Finding {
        let setting = setting.map(str::to_owned);
        let lift = Lift { setting, to: Some("2".to_owned()), ..Lift::default() };
        Finding {
            lift: Some(lift),
            subjects: vec![format!("i to {place}")],
            ..Finding::of(Class::RateLimit.rule(), place, 0.9, "it holds")
        }
    }

    #[test]
    fn what_one_setting_lifts_at_several_places_is_said_once() {
        let said = |findings: &[Finding]| -> Vec<String> {
            Alike::of(findings).iter().map(Alike::sentence).collect()
        };
        let mut all: Vec<Finding> = ["a", "b"].map(|place| of(place, Some("limit"))).into();
        assert_eq!(said(&all), ["it holds; the same at b"]);
        all.extend([of("c", Some("limit")), of("d", Some("other")), of("e", None), of("f", None)]);
        let expected = ["it holds; the same at b and c", "it holds", "it holds", "it holds"];
        assert_eq!(said(&all), expected, "of what no setting lifts each is another case");
        all[2].over = true;
        assert_eq!(said(&all)[0], "it holds; the same at b");
        let many: Vec<Finding> = (0..9).map(|n| of(&n.to_string(), Some("limit"))).collect();
        assert_eq!(said(&many), ["it holds; the same at 1, 2, 3 and 5 more"]);
        assert_eq!(Alike::of(&many)[0].subjects().count(), 9);
        let paths = ["between a and b", "between c and d"].map(|place| of(place, Some("limit")));
        assert_eq!(said(&paths), ["it holds; the same between c and d"]);
        let mut without_value = ["a to b", "c to d"].map(|place| of(place, Some("limit")));
        without_value.iter_mut().for_each(|one| one.lift.as_mut().unwrap().to = None);
        assert_eq!(
            said(&without_value),
            ["it holds"; 2],
            "no value is advised, each has its own rate"
        );
    }
}
