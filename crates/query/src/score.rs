//! The functions of `function_score` as plain data, and what they come to.

use serde::{Deserialize, Serialize};

use super::value::Literal;

/// The kinds of functions.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ScoreKind {
    /// `weight` alone: 1.
    Constant,
    FieldValue {
        field: String,
        factor: f64,
        modifier: Modifier,
        missing: Option<f64>,
    },
    /// The same for the same seed and value; by the document's place in the history where no field is named,
    /// and by the time where no seed is given.
    Random {
        seed: Option<i64>,
        field: Option<String>,
    },
    /// Of the field's type: numbers, dates with times, points with distances. `origin` is now where it is not given.
    Decay {
        shape: Shape,
        field: String,
        origin: Option<Literal>,
        scale: Literal,
        offset: Literal,
        decay: f64,
        /// `multi_value_mode`: by the nearest, the farthest, or all of several values.
        of_many: Combine,
    },
}

/// How numbers become one.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    Multiply,
    Sum,
    Avg,
    First,
    Max,
    Min,
    Replace,
}

impl Combine {
    /// What numbers come to, each with what it weighs in an average; none where there are none.
    pub fn all(self, mut numbers: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
        let first = numbers.next()?;
        Some(match self {
            Combine::First | Combine::Replace => first.0,
            Combine::Multiply => numbers.fold(first.0, |all, (number, _)| all * number),
            Combine::Max => numbers.fold(first.0, |all, (number, _)| -lesser(-all, -number)),
            Combine::Min => numbers.fold(first.0, |all, (number, _)| lesser(all, number)),
            Combine::Sum | Combine::Avg => {
                let sums = numbers.fold(first, |sum, (n, weight)| (sum.0 + n, sum.1 + weight));
                match self {
                    // As in the field: what weighs nothing changes nothing.
                    _ if sums.1 == 0.0 => 1.0,
                    Combine::Sum => sums.0,
                    _ => sums.0 / sums.1,
                }
            }
        })
    }

    /// What a score becomes with what the functions come to.
    pub fn with_score(self, score: f64, functions: f64) -> f64 {
        match self {
            Combine::Multiply | Combine::First => score * functions,
            Combine::Replace => functions,
            Combine::Sum => score + functions,
            Combine::Avg => (score + functions) / 2.0,
            Combine::Max => -lesser(-score, -functions),
            Combine::Min => lesser(score, functions),
        }
    }
}

/// The lesser of two numbers; as in the field there is none where one of them is no number.
pub fn lesser(one: f64, other: f64) -> f64 {
    if other < one || other.is_nan() { other } else { one }
}

/// `modifier` of `field_value_factor`.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Modifier {
    None,
    Log,
    Log1p,
    Log2p,
    Ln,
    Ln1p,
    Ln2p,
    Square,
    Sqrt,
    Reciprocal,
}

impl Modifier {
    /// What it makes of a number.
    pub fn of(self, number: f64) -> f64 {
        match self {
            Modifier::None => number,
            Modifier::Log => number.log10(),
            Modifier::Log1p => (number + 1.0).log10(),
            Modifier::Log2p => (number + 2.0).log10(),
            Modifier::Ln => number.ln(),
            Modifier::Ln1p => number.ln_1p(),
            Modifier::Ln2p => (number + 2.0).ln(),
            Modifier::Square => number * number,
            Modifier::Sqrt => number.sqrt(),
            Modifier::Reciprocal => 1.0 / number,
        }
    }
}

/// How a decay falls off.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    Gauss,
    Exp,
    Linear,
}

impl Shape {
    /// 1 at the origin, `decay` at a distance of `scale`.
    pub fn at(self, distance: f64, scale: f64, decay: f64) -> f64 {
        let share = distance / scale;
        match self {
            Shape::Gauss => decay.powf(share * share),
            Shape::Exp => decay.powf(share),
            Shape::Linear => (1.0 - share * (1.0 - decay)).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_come_to_what_is_documented() {
        let of = |mode: Combine| mode.all([(2.0, 1.0), (6.0, 3.0)].into_iter()).unwrap();
        use Combine::*;
        assert_eq!([Multiply, Sum, Avg, First, Max, Min].map(of), [12.0, 8.0, 2.0, 2.0, 6.0, 2.0]);
        assert_eq!(Sum.all(std::iter::empty()), None);
        let with = |mode: Combine| mode.with_score(2.0, 3.0);
        assert_eq!(
            [Multiply, Replace, Sum, Avg, Max, Min].map(with),
            [6.0, 3.0, 5.0, 2.5, 3.0, 2.0]
        );
        for shape in [Shape::Gauss, Shape::Exp, Shape::Linear] {
            assert_eq!((shape.at(0.0, 5.0, 0.5), shape.at(5.0, 5.0, 0.5)), (1.0, 0.5), "{shape:?}");
        }
        assert_eq!(Shape::Linear.at(20.0, 5.0, 0.5), 0.0);
        assert_eq!(Modifier::Log2p.of(98.0), 2.0);
        assert_eq!(Modifier::Ln2p.of(1.0), 3.0f64.ln());
    }
}
