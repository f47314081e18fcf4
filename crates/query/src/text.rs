//! JSON as it is written: commas go where they belong.

use serde::Serialize;

/// A text of JSON that grows at its end.
pub struct Text<'a>(pub &'a mut Vec<u8>);

impl Text<'_> {
    /// Opens an object or a list.
    pub fn open(&mut self, bracket: u8) {
        self.comma();
        self.0.push(bracket);
    }

    /// Closes it.
    pub fn close(&mut self, bracket: u8) {
        self.0.push(bracket);
    }

    /// The name of a member, whose value is written next.
    pub fn name(&mut self, name: &str) {
        self.comma();
        self.put(name);
        self.0.push(b':');
    }

    /// Opens the object of a name, with its `meta`, which is JSON already.
    pub fn open_named(&mut self, name: &str, meta: Option<&str>) {
        self.name(name);
        self.open(b'{');
        if let Some(meta) = meta {
            self.name("meta");
            self.json(meta);
        }
    }

    /// A member of an object.
    pub fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.name(name);
        self.put(value);
    }

    /// A value that is JSON already.
    pub fn json(&mut self, json: &str) {
        self.0.extend_from_slice(json.as_bytes());
    }

    /// Whatever was written last ends with a quote, a digit, a letter or a bracket, so one byte tells what stands
    /// there.
    pub fn comma(&mut self) {
        if !matches!(self.0.last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push(b',');
        }
    }

    fn put(&mut self, value: &(impl Serialize + ?Sized)) {
        serde_json::to_writer(&mut *self.0, value)
            .expect("plain values are JSON, and memory takes all");
    }
}
