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

/// Warns the operator; in the virtual world nobody is there to read it.
pub(crate) fn warn(env: &Env, node: &str, words: &str) {
    if let Some(print) = PRINTER.get().filter(|_| !env.is_virtual()) {
        print(&format!("[{node}] {words}"));
    }
}
