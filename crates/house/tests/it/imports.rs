//! Which file needs which: every import and every path, followed through `pub use` to the file that defines the item.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Crate, Module};

/// Where a name leads.
#[derive(Clone, Copy)]
enum Place {
    Module(usize),
    /// Defined in this module.
    Item(usize),
}

/// That one module needs another: the line of the import, and what is written there.
pub struct Need {
    pub from: usize,
    pub to: usize,
    pub line: usize,
    pub path: String,
}

/// What each module of a crate needs from modules in other files, each pair once.
pub fn needs(of: &Crate) -> Vec<Need> {
    let resolver = Resolver { modules: &of.modules };
    let mut found: BTreeMap<(usize, usize), Need> = BTreeMap::new();
    for (from, module) in of.modules.iter().enumerate() {
        let mut add = |path: &[String], line: usize| {
            let defined_in = resolver.defined_in(from, path);
            if let Some(to) = defined_in.filter(|to| of.modules[*to].file != module.file) {
                let need = || Need { from, to, line, path: path.join("::") };
                found.entry((from, to)).or_insert_with(need);
            }
        };
        // What a file merely shows to others it does not need, but where its own code mentions it.
        for import in module.imports.iter().filter(|import| !import.shown && !import.glob) {
            add(&import.path, import.line);
        }
        for (path, line) in &module.mentions {
            add(path, *line);
        }
    }
    found.into_values().collect()
}

struct Resolver<'a> {
    modules: &'a [Module],
}

impl Resolver<'_> {
    fn defined_in(&self, from: usize, path: &[String]) -> Option<usize> {
        match self.resolve(from, path, &mut BTreeSet::new())? {
            Place::Item(module) => Some(module),
            Place::Module(_) => None,
        }
    }

    /// Follows a path that is written in module `from`. `open` holds the names being looked up, which may be each
    /// other's.
    fn resolve(
        &self,
        from: usize,
        path: &[String],
        open: &mut BTreeSet<(usize, String)>,
    ) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let mut place = match first.as_str() {
            "crate" => Place::Module(0),
            "self" => Place::Module(from),
            "super" => Place::Module(self.modules[from].parent?),
            name => self.name(from, name, rest.is_empty(), open)?,
        };
        for (done, name) in rest.iter().enumerate() {
            let Place::Module(module) = place else {
                // Variants and associated items lie where their type does.
                break;
            };
            place = match name.as_str() {
                "super" => Place::Module(self.modules[module].parent?),
                name => self.name(module, name, done + 1 == rest.len(), open)?,
            };
        }
        Some(place)
    }

    /// A module and an item may share a name: at the end of a path the item is meant, before it the module.
    fn name(
        &self,
        module: usize,
        name: &str,
        last: bool,
        open: &mut BTreeSet<(usize, String)>,
    ) -> Option<Place> {
        let here = &self.modules[module];
        let child = here.children.get(name).map(|child| Place::Module(*child));
        if !last && child.is_some() {
            return child;
        }
        if here.items.contains(name) {
            return Some(Place::Item(module));
        }
        let key = (module, format!("{name} {last}"));
        if !open.insert(key.clone()) {
            return child;
        }
        let named = here
            .imports
            .iter()
            .filter(|import| import.name.as_deref() == Some(name))
            .find_map(|import| self.resolve(module, &import.path, open));
        let found = named.or_else(|| {
            here.imports.iter().filter(|import| import.glob).find_map(|import| {
                match self.resolve(module, &import.path, open)? {
                    Place::Module(shown) if shown != module => self.name(shown, name, last, open),
                    // Itself, or the variants of an enum.
                    _ => None,
                }
            })
        });
        open.remove(&key);
        found.or(child)
    }
}
