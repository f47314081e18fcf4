//! The tables that benches print. With `-- --write` a bench writes them into its page of `docs/benchmarks` too, with
//! the machine and the date.

use jiff::Timestamp;

use crate::generated;

/// A table of a bench.
pub struct Table {
    /// The page: `docs/benchmarks/{page}.md`.
    pub page: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What the columns hold.
    pub columns: &'static [&'static str],
}

impl Table {
    /// Begins the table anew.
    ///
    /// # Panics
    /// With `--write`, if the page has no place for this table.
    pub fn begin(&self) {
        let rule = vec!["---"; self.columns.len()];
        let head = format!("{}{}", line(self.columns), line(&rule));
        print!("{head}");
        if is_written() {
            let date = Timestamp::now().strftime("%F");
            let on = format!("Measured on {date}, on {}.\n\n", machine());
            generated::write(&self.document(), self.name, &format!("{on}{head}"));
        }
    }

    /// A row, with a cell for each column.
    ///
    /// # Panics
    /// If the row has another number of cells; with `--write`, if the page has no place for this table.
    pub fn row<T: AsRef<str>>(&self, cells: &[T]) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column of {}", self.name);
        let row = line(cells);
        print!("{row}");
        if is_written() {
            let before = generated::read(&self.document(), self.name).unwrap_or_default();
            generated::write(&self.document(), self.name, &format!("{before}{row}"));
        }
    }

    fn document(&self) -> String {
        format!("docs/benchmarks/{}.md", self.page)
    }
}

/// Whether the tables are to be written.
pub fn is_written() -> bool {
    std::env::args().any(|argument| argument == "--write")
}

fn line<T: AsRef<str>>(cells: &[T]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Cores, memory and system of this machine, as far as Linux tells.
fn machine() -> String {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|rest| rest.trim_start_matches([' ', '\t', ':']).trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = after(&text("/proc/cpuinfo"), "model name").unwrap_or("unknown cores".to_owned());
    let memory = after(&text("/proc/meminfo"), "MemTotal");
    let kib = memory.and_then(|kib| kib.split(' ').next()?.parse::<f64>().ok());
    let gb = kib.map_or_else(String::new, |kib| format!(", {:.0} GB", kib * 1024.0 / 1e9));
    let release = text("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {model}{gb}, Linux {}", release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines_of_markdown() {
        assert_eq!(line(&["a", "b"]), "| a | b |\n");
        assert!(machine().contains("cores of"));
    }
}
