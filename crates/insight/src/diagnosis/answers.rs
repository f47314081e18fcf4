//! What the judges of rival causes answered on one thing, and what that says against each cause that was not found.

use super::class::Class;
use super::finding::{Against, By, Finding, RuledOut};

/// What a judge answers: what it found, or what speaks against its cause.
pub(crate) type Answer = Result<Finding, Against>;

/// The answers of all judges of one kind, in the order of the table.
pub(crate) struct Answers(Vec<(Class, Answer)>);

impl Answers {
    pub(crate) fn new(answers: impl Iterator<Item = (Class, Answer)>) -> Answers {
        Answers(answers.collect())
    }

    /// What was found, in the order of the table.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter_map(|(_, answer)| answer.as_ref().ok())
    }

    /// Every cause but the one that was named, with what speaks against it, in the order of the table.
    pub(crate) fn ruled_out(&self, named: Class) -> Vec<RuledOut> {
        let mut all: Vec<RuledOut> = Vec::new();
        for (class, answer) in self.0.iter().filter(|(class, _)| *class != named) {
            let against = match answer {
                Ok(finding) => Against { by: By::Weaker, why: finding.sentence.clone() },
                Err(against) => against.clone(),
            };
            match all.iter_mut().find(|one| one.class == *class) {
                Some(one) => one.also(against),
                None => all.push(RuledOut { class: *class, by: against.by, why: against.why }),
            }
        }
        all
    }

    /// The first that was found, which knows what speaks against the others.
    pub(crate) fn first(&self) -> Option<Finding> {
        let first = self.findings().next()?.clone();
        Some(Finding { ruled_out: self.ruled_out(first.class), ..first })
    }
}

impl RuledOut {
    /// The same cause, looked for in another place: where it was seen after all, only that counts; where either place
    /// does not tell, it is open.
    fn also(&mut self, other: Against) {
        if (self.by == By::Weaker) != (other.by == By::Weaker) {
            if other.by == By::Weaker {
                (self.by, self.why) = (other.by, other.why);
            }
            return;
        }
        self.by = self.by.max(other.by);
        if self.why != other.why {
            self.why = format!("{}; {}", self.why, other.why);
        }
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
        let answers = Answers::new(
            [
                (Class::Cpu, Err(Against::figure("a: 10 %"))),
                (Class::Disk, Err(Against::figure("none"))),
                (Class::Gc, Err(Against::figure("a: 1 %"))),
                found(Class::Latency, "the round trip"),
                (Class::Cpu, Err(Against::untold("b does not tell"))),
                (Class::Disk, Err(Against::figure("none"))),
                found(Class::Gc, "b: 20 %"),
            ]
            .into_iter(),
        );
        let told: Vec<_> =
            answers.ruled_out(Class::Latency).into_iter().map(|o| (o.class, o.by, o.why)).collect();
        let expected = [
            (Class::Cpu, By::Untold, "a: 10 %; b does not tell".to_owned()),
            (Class::Disk, By::Figure, "none".to_owned()),
            (Class::Gc, By::Weaker, "b: 20 %".to_owned()),
        ];
        assert_eq!(told, expected);
        assert_eq!(answers.first().unwrap().class, Class::Latency);
        assert_eq!(answers.ruled_out(Class::Unknown).len(), 4, "of what is unknown, all are");
    }
}
