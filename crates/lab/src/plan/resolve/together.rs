//! Results that are had together: what is wrong with each of them is told at once.

use crate::error::{Error, Result};

/// Several results, of which no one needs another.
pub(super) trait Together {
    type Values;

    /// All values; where some are errors, all of those.
    fn together(self) -> Result<Self::Values>;
}

macro_rules! together {
    ($($name:ident)+) => {
        impl<$($name),+> Together for ($(Result<$name>,)+) {
            type Values = ($($name,)+);

            #[expect(non_snake_case, reason = "a value is called as its type")]
            fn together(self) -> Result<Self::Values> {
                let ($($name,)+) = self;
                let mut wrong: Option<Error> = None;
                $(let $name = $name.map_err(|error| add(&mut wrong, error)).ok();)+
                match ($($name,)+) {
                    ($(Some($name),)+) => Ok(($($name,)+)),
                    _ => Err(wrong.expect("one of them is an error")),
                }
            }
        }
    };
}

together!(A B);
together!(A B C);
together!(A B C D);
together!(A B C D E);
together!(A B C D E F);
together!(A B C D E F G);
together!(A B C D E F G H);
together!(A B C D E F G H I);

/// Every value; where some are errors, all of those.
pub(super) fn every<T, C: FromIterator<T>>(
    results: impl IntoIterator<Item = Result<T>>,
) -> Result<C> {
    let mut wrong = None;
    let keep = |result: Result<T>| result.map_err(|error| add(&mut wrong, error)).ok();
    let values = results.into_iter().filter_map(keep).collect();
    wrong.map_or(Ok(values), Err)
}

fn add(wrong: &mut Option<Error>, error: Error) {
    *wrong = Some(match wrong.take() {
        Some(before) => before.and(error),
        None => error,
    });
}
