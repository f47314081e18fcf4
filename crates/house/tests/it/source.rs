//! A crate's source as a tree of modules: what each declares, what it imports, and the paths in its code. What is
//! compiled for tests alone is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

pub struct Crate {
    pub name: String,
    pub folder: PathBuf,
    /// The first is the crate's root.
    pub modules: Vec<Module>,
}

#[derive(Default)]
pub struct Module {
    /// Names from the root, `["node", "shards"]`.
    pub path: Vec<String>,
    /// Below `src`.
    pub file: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Types, functions, constants, macros.
    pub items: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Paths outside `use`, each with the line of its first mention.
    pub mentions: BTreeMap<Vec<String>, usize>,
}

pub struct Import {
    pub path: Vec<String>,
    /// As it is called here; none for `*` and `_`.
    pub name: Option<String>,
    pub glob: bool,
    pub line: usize,
    /// `pub use` in any form: other files take the item from here.
    pub shown: bool,
}

pub fn workspace_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lies in crates/ of the workspace")
}

/// All crates with source of their own, by name.
pub fn crates() -> &'static [Crate] {
    static READ: OnceLock<Vec<Crate>> = OnceLock::new();
    READ.get_or_init(|| {
        let mut folders: Vec<PathBuf> = fs::read_dir(workspace_folder().join("crates"))
            .expect("crates/")
            .map(|entry| entry.expect("an entry of crates/").path())
            .collect();
        folders.sort();
        folders.into_iter().filter_map(read_crate).collect()
    })
}

fn read_crate(folder: PathBuf) -> Option<Crate> {
    let source = folder.join("src");
    let root = ["lib.rs", "main.rs"]
        .into_iter()
        .map(|name| source.join(name))
        .find(|file| file.exists())?;
    let name = folder.file_name()?.to_str()?.to_owned();
    let mut reader = Reader { source: source.clone(), modules: Vec::new() };
    reader.file(&root, &source, Vec::new(), None);
    Some(Crate { name, folder, modules: reader.modules })
}

struct Reader {
    source: PathBuf,
    modules: Vec<Module>,
}

impl Reader {
    /// Reads the module that `file` is; its children lie in `folder`.
    fn file(
        &mut self,
        file: &Path,
        folder: &Path,
        path: Vec<String>,
        parent: Option<usize>,
    ) -> usize {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let below = file.strip_prefix(&self.source).expect("a file below src");
        self.module(parsed.items, &below.display().to_string(), folder, path, parent)
    }

    fn module(
        &mut self,
        items: Vec<Item>,
        file: &str,
        folder: &Path,
        path: Vec<String>,
        parent: Option<usize>,
    ) -> usize {
        let at = self.modules.len();
        self.modules.push(Module {
            path: path.clone(),
            file: file.to_owned(),
            parent,
            ..Module::default()
        });
        for item in items {
            let Item::Mod(inner) = item else {
                self.modules[at].item(&item);
                continue;
            };
            if for_tests(&inner.attrs) {
                continue;
            }
            let name = inner.ident.to_string();
            let mut path = path.clone();
            path.push(name.clone());
            let below = folder.join(&name);
            let child = match inner.content {
                Some((_, items)) => self.module(items, file, &below, path, Some(at)),
                None => {
                    let flat = folder.join(format!("{name}.rs"));
                    let found = if flat.exists() { flat } else { below.join("mod.rs") };
                    self.file(&found, &below, path, Some(at))
                }
            };
            self.modules[at].children.insert(name, child);
        }
        at
    }
}

impl Module {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Const(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Enum(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Fn(i) if !for_tests(&i.attrs) => self.declare(&i.sig.ident),
            Item::Static(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Struct(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Trait(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Type(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Union(i) if !for_tests(&i.attrs) => self.declare(&i.ident),
            Item::Macro(i) if !for_tests(&i.attrs) => {
                if let Some(name) = &i.ident {
                    self.declare(name);
                }
            }
            _ => {}
        }
        self.visit_item(item);
    }

    fn declare(&mut self, name: &syn::Ident) {
        self.items.insert(name.to_string());
    }

    /// A single name in small letters is taken for a local variable: what is called stands in `visit_expr_call`.
    fn mention(&mut self, path: Vec<String>, line: usize) {
        if path.len() > 1 || path[0].starts_with(char::is_uppercase) {
            self.mentions.entry(path).or_insert(line);
        }
    }

    fn import(&mut self, tree: &UseTree, mut path: Vec<String>, shown: bool) {
        let line = tree.span().start().line;
        let (name, glob) = match tree {
            UseTree::Path(below) => {
                path.push(below.ident.to_string());
                return self.import(&below.tree, path, shown);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path.clone(), shown);
                }
                return;
            }
            UseTree::Name(name) if name.ident == "self" => (path.last().cloned(), false),
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                (Some(name.ident.to_string()), false)
            }
            UseTree::Rename(renamed) => {
                if renamed.ident != "self" {
                    path.push(renamed.ident.to_string());
                }
                (Some(renamed.rename.to_string()).filter(|name| name != "_"), false)
            }
            _ => (None, true),
        };
        self.imports.push(Import { path, name, glob, line, shown });
    }

    /// Paths in the tokens of a macro, whose grammar nobody knows here.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.mention(std::mem::take(&mut path), line);
                    }
                    if path.is_empty() {
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                    if !path.is_empty() {
                        self.mention(std::mem::take(&mut path), line);
                    }
                    colons = 0;
                }
            }
        }
        if !path.is_empty() {
            self.mention(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Const(i) => &i.attrs,
            Item::Enum(i) => &i.attrs,
            Item::Fn(i) => &i.attrs,
            Item::Impl(i) => &i.attrs,
            Item::Macro(i) => &i.attrs,
            Item::Static(i) => &i.attrs,
            Item::Struct(i) => &i.attrs,
            Item::Trait(i) => &i.attrs,
            Item::Type(i) => &i.attrs,
            Item::Use(i) => &i.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let shown = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, Vec::new(), shown);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        // `#[serde(with = "crate::units")]` names code in a string.
        if let syn::Meta::List(list) = &attribute.meta {
            let quoted = list.tokens.clone().into_iter().filter_map(|token| match token {
                TokenTree::Literal(literal) => {
                    syn::parse2::<syn::LitStr>(TokenTree::from(literal).into()).ok()
                }
                _ => None,
            });
            for text in quoted {
                if let Ok(path) = text.parse::<syn::Path>() {
                    self.visit_path(&path);
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.span().start().line;
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        if path.leading_colon.is_none() {
            self.mention(names.collect(), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func
            && let Some(name) = function.path.get_ident()
        {
            self.mentions.entry(vec![name.to_string()]).or_insert(name.span().start().line);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}

fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}
