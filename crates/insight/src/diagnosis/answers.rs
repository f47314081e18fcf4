//! What the judges of rival causes answered on one thing, and what that says against each cause that was not found.

use record::names::listed;

use super::class::Class;
use super::finding::Finding;
use super::rivals::{Against, By, Rivals, RuledOut, Why};

/// What a judge answers: what it found, or what speaks against its cause.
pub(crate) type Answer = Result<Finding, Against>;

/// The answers of all judges of one kind, in the order of the table. What was found is large, and mostly nothing is.
pub(crate) struct Answers(Vec<(Class, Result<Box<Finding>, Against>)>);

impl Answers {
    pub(crate) fn new(answers: impl IntoIterator<Item = (Class, Answer)>) -> Answers {
        let answers = answers.into_iter();
        Answers(answers.map(|(class, answer)| (class, answer.map(Box::new))).collect())
    }

    /// Takes the strongest finding out, where one is so strong; of equals the first of the table.
    pub(crate) fn take_strongest(&mut self, least: f64) -> Option<Box<Finding>> {
        let at = self.place_of_strongest(least)?;
        self.0.remove(at).1.ok()
    }

    /// The strongest finding, where one is so strong; of equals the first of the table.
    pub(crate) fn strongest(&self, least: f64) -> Option<&Finding> {
        self.0[self.place_of_strongest(least)?].1.as_deref().ok()
    }

    fn place_of_strongest(&self, least: f64) -> Option<usize> {
        let strong = self.0.iter().enumerate().filter_map(|(at, (_, answer))| {
            Some((at, answer.as_ref().ok()?.strength)).filter(|(_, strength)| *strength >= least)
        });
        Some(strong.reduce(|a, b| if b.1 > a.1 { b } else { a })?.0)
    }

    /// Every cause but the one that was named, with what speaks against it, in the order of the table.
    pub(crate) fn ruled_out(self, named: Class) -> Rivals {
        Rivals::later(move || self.in_words(named))
    }

    fn in_words(&self, named: Class) -> Vec<RuledOut> {
        let mut all: Vec<Rival> = Vec::new();
        for (class, answer) in self.0.iter().filter(|(class, _)| *class != named) {
            let (by, why) = match answer {
                Ok(finding) => (By::Weaker, Part::Said(finding.sentence.clone())),
                Err(against) => (against.by, Part::of(&against.why)),
            };
            match all.iter_mut().find(|one| one.class == *class) {
                Some(one) => one.merge(by, why),
                None => all.push(Rival { class: *class, by, whys: vec![why] }),
            }
        }
        all.into_iter().map(Rival::in_words).collect()
    }

    /// The first that was found, which knows what speaks against the others; without one, what speaks against all.
    pub(crate) fn first(mut self) -> Result<Finding, Rivals> {
        let found = self.0.iter().position(|(_, answer)| answer.is_ok());
        let Some(mut first) = found.and_then(|at| self.0.remove(at).1.ok()) else {
            return Err(self.ruled_out(Class::Unknown));
        };
        first.ruled_out = self.ruled_out(first.class);
        Ok(*first)
    }
}

/// What speaks against a cause, place by place.
struct Rival {
    class: Class,
    by: By,
    whys: Vec<Part>,
}

#[derive(PartialEq)]
enum Part {
    Said(String),
    /// These nodes tell nothing of this.
    Untold(Vec<String>, &'static str),
}

impl Part {
    fn of(why: &Why) -> Part {
        match why {
            Why::Untold(node, what) => Part::Untold(vec![node.clone()], what),
            other => Part::Said(other.words()),
        }
    }

    fn in_words(self) -> String {
        match self {
            Part::Said(words) => words,
            Part::Untold(nodes, what) => {
                let tell = if nodes.len() == 1 { "tells" } else { "tell" };
                format!("{} {tell} nothing of {what}", listed(&nodes))
            }
        }
    }
}

impl Rival {
    /// Adds what speaks against the same cause in another place. Where the cause was seen in one of them, though
    /// weaker, only that counts; where one does not tell, the cause stays open.
    fn merge(&mut self, by: By, why: Part) {
        if (self.by == By::Weaker) != (by == By::Weaker) {
            if by == By::Weaker {
                (self.by, self.whys) = (by, vec![why]);
            }
            return;
        }
        self.by = self.by.max(by);
        if self.whys.contains(&why) {
            return;
        }
        if let Part::Untold(more, what) = &why {
            for known in &mut self.whys {
                if let Part::Untold(nodes, same) = known
                    && *same == *what
                {
                    nodes.extend_from_slice(more);
                    return;
                }
            }
        }
        self.whys.push(why);
    }

    fn in_words(self) -> RuledOut {
        let whys: Vec<String> = self.whys.into_iter().map(Part::in_words).collect();
        RuledOut { class: self.class, by: self.by, why: whys.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(class: Class, sentence: &str) -> (Class, Answer) {
        (class, Ok(Finding::of(class.rule(), "n", 0.6, sentence)))
    }

    #[test]
    fn a_cause_is_ruled_out_once_whichever_places_it_was_looked_for_in() {
        let answers = Answers::new([
            (Class::Cpu, Err(Against::figure("a: 10 %"))),
            (Class::Disk, Err(Against::figure("none"))),
            (Class::Gc, Err(Against::figure("a: 1 %"))),
            found(Class::Latency, "the round trip"),
            (Class::Cpu, Err(Against::untold("b does not tell"))),
            (Class::Disk, Err(Against::figure("none"))),
            found(Class::Gc, "b: 20 %"),
        ]);
        let told = answers.in_words(Class::Latency);
        let told: Vec<_> = told.into_iter().map(|o| (o.class, o.by, o.why)).collect();
        let expected = [
            (Class::Cpu, By::Untold, "a: 10 %; b does not tell".to_owned()),
            (Class::Disk, By::Figure, "none".to_owned()),
            (Class::Gc, By::Weaker, "b: 20 %".to_owned()),
        ];
        assert_eq!(told, expected);
        assert_eq!(answers.in_words(Class::Unknown).len(), 4, "of what is unknown, all are");
        let first = answers.first().unwrap();
        assert_eq!((first.class, first.ruled_out.len()), (Class::Latency, 3));
    }

    #[test]
    fn what_several_nodes_do_not_tell_is_said_once() {
        let (cores, disks) = ("the use of cores", "the time of disks");
        let untold = [("a", cores), ("a", disks), ("b", cores), ("b", disks), ("c", cores)];
        let untold = untold.map(|(node, what)| -> (Class, Answer) {
            (Class::NoisyNeighbour, Err(Against::untold_at(node, what)))
        });
        let quota = (Class::CpuQuota, Err(Against::untold_at("b", "a control group")));
        let told = Answers::new(untold.into_iter().chain([quota])).in_words(Class::Unknown);
        let told: Vec<&str> = told.iter().map(|one| one.why.as_str()).collect();
        let all = "a, b and c tell nothing of the use of cores; a and b tell nothing of the time of disks";
        assert_eq!(told, [all, "b tells nothing of a control group"]);
    }
}
