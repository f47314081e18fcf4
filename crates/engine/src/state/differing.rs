//! Where two maps differ that share what is the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names whose values are not one and the same, with the value of either map. Goes through both maps once.
pub(super) fn differing<'a, V>(
    old: &'a BTreeMap<String, Arc<V>>,
    new: &'a BTreeMap<String, Arc<V>>,
) -> impl Iterator<Item = (&'a String, Option<&'a Arc<V>>, Option<&'a Arc<V>>)> {
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = if order.is_le() { olds.next() } else { None };
            let new = if order.is_ge() { news.next() } else { None };
            match (old, new) {
                (Some((_, old)), Some((_, new))) if Arc::ptr_eq(old, new) => {}
                (old, new) => {
                    let (name, _) = old.or(new)?;
                    return Some((name, old.map(|(_, value)| value), new.map(|(_, value)| value)));
                }
            }
        }
    })
}
