//! What an operator should read, though nobody asked.

use std::sync::OnceLock;

use world::Env;

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
