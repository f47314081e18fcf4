//! The durable storage of a host: it survives the host's kill.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Values by path. A value is durable as soon as it is written; a store that models unsynced writes keeps those
/// elsewhere.
#[derive(Clone, Default)]
pub struct VirtualDisk {
    values: Rc<RefCell<BTreeMap<String, Rc<dyn Any>>>>,
}

impl VirtualDisk {
    /// The value at a path; a fresh one if there is none.
    ///
    /// # Panics
    /// If a value of another type is there.
    pub fn get<T: Default + 'static>(&self, path: &str) -> Rc<RefCell<T>> {
        let mut values = self.values.borrow_mut();
        let value =
            values.entry(path.to_owned()).or_insert_with(|| Rc::new(RefCell::new(T::default())));
        value.clone().downcast().unwrap_or_else(|_| panic!("{path} holds a value of another type"))
    }

    /// Whether a value is there.
    pub fn contains(&self, path: &str) -> bool {
        self.values.borrow().contains_key(path)
    }

    /// The paths that begin with `prefix`, in order.
    pub fn paths_under(&self, prefix: &str) -> Vec<String> {
        let values = self.values.borrow();
        let from = values.range(prefix.to_owned()..);
        from.map(|(path, _)| path.clone()).take_while(|path| path.starts_with(prefix)).collect()
    }

    /// Exchanges the values of two paths, where both have one.
    pub fn exchange(&self, one: &str, other: &str) {
        let mut values = self.values.borrow_mut();
        let both = (values.get(one).cloned(), values.get(other).cloned());
        if let (Some(first), Some(second)) = both {
            values.insert(one.to_owned(), second);
            values.insert(other.to_owned(), first);
        }
    }

    /// Removes every value whose path begins with `prefix`.
    pub fn remove_under(&self, prefix: &str) {
        for path in self.paths_under(prefix) {
            let value = self.values.borrow_mut().remove(&path);
            drop(value);
        }
    }
}
