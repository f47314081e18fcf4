//! Something that is not on every machine.

/// Something that a machine may have or not: a program, a right.
#[derive(Debug)]
pub struct Tool {
    /// What it is: "Java 21 or newer".
    pub name: &'static str,
    /// How it is looked for: what was found, or what was found instead.
    pub(crate) look: fn() -> Result<String, String>,
    /// What has it, where it lacks.
    pub remedy: &'static str,
}

/// Two with one name are the same.
impl PartialEq for Tool {
    fn eq(&self, other: &Tool) -> bool {
        self.name == other.name
    }
}

impl Eq for Tool {}

impl Tool {
    /// One with this name, look and remedy.
    pub const fn new(
        name: &'static str,
        look: fn() -> Result<String, String>,
        remedy: &'static str,
    ) -> Tool {
        Tool { name, look, remedy }
    }

    /// Looks for it.
    ///
    /// # Errors
    /// What was found instead, in words for people: "there is no mvn on the path".
    pub fn look(&self) -> Result<String, String> {
        (self.look)()
    }
}
