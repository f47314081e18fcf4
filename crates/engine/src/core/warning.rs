//! What an operator should read, though nobody asked.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::OnceLock;

use world::Env;

use crate::transport::Warn;

/// Warnings about peers that are remembered, so that none is said twice. Later ones are not said.
const WARNINGS_MAX: usize = 16;

/// Prints a line for the operator.
type Printer = fn(&str);

static PRINTER: OnceLock<Printer> = OnceLock::new();

/// Who prints what the nodes of this process warn of; the first one that is given. Without one it is not printed.
pub fn print_warnings_with(printer: Printer) {
    PRINTER.get_or_init(|| printer);
}

/// Prints a warning. Whoever runs nodes in processes of their own passes on theirs.
pub fn print_warning(line: &str) {
    if let Some(print) = PRINTER.get() {
        print(line);
    }
}

/// How the warnings of a node begin. Whoever runs the node in a process of its own knows them by it.
pub fn beginning_of_warnings(node: &str) -> String {
    format!("[{node}] ")
}

/// Warns the operator; in the virtual world nobody is there to read it.
pub(crate) fn warn(env: &Env, node: &str, words: &str) {
    if !env.is_virtual() {
        print_warning(&format!("{}{words}", beginning_of_warnings(node)));
    }
}

/// As [`warn`], but says nothing twice: a peer may do the same every second.
pub(crate) fn warns_once(env: &Env, node: &str) -> Warn {
    let (env, node, said) = (env.clone(), node.to_owned(), RefCell::new(BTreeSet::new()));
    Rc::new(move |words: &str| {
        let mut said = said.borrow_mut();
        if said.len() < WARNINGS_MAX && said.insert(words.to_owned()) {
            warn(&env, &node, words);
        }
    })
}
