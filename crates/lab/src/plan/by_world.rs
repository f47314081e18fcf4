//! Values that differ between the worlds.

/// A value on real processes, and in the virtual world, where time and room cost nothing, perhaps another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByWorld<T> {
    /// On real processes.
    pub real: T,
    /// In virtual time.
    pub full: T,
}

impl<T: Clone> ByWorld<T> {
    /// The same value in both worlds.
    pub fn both(value: T) -> Self {
        ByWorld { real: value.clone(), full: value }
    }

    /// The value of a world.
    pub fn of(&self, is_virtual: bool) -> T {
        if is_virtual { self.full.clone() } else { self.real.clone() }
    }
}
