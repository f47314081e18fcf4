//! The tables of `_cat`: which columns, in which order, in which units, as text or JSON.

use serde_json::{Value, json};

use super::answer::{Reply, object_of};
use super::error::bad_request;
use super::names::{is_pattern, matches};
use super::parameters::Query;
use super::time_text::{size, span};
use engine::transport::Result;

/// Parameters of every table.
pub(super) const TABLE: &[&str] = &["bytes", "h", "help", "s", "time", "v"];

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Short names, joined by commas.
    aliases: &'static str,
    /// Whether it is shown where nobody says which.
    is_default: bool,
    is_number: bool,
    about: &'static str,
}

/// A column of words that is shown by default.
pub(super) const fn words(
    name: &'static str,
    aliases: &'static str,
    about: &'static str,
) -> Column {
    Column { name, aliases, is_default: true, is_number: false, about }
}

/// A column of numbers that is shown by default.
pub(super) const fn numbers(
    name: &'static str,
    aliases: &'static str,
    about: &'static str,
) -> Column {
    Column { is_number: true, ..words(name, aliases, about) }
}

impl Column {
    /// The same column, shown only where it is asked for.
    pub(super) const fn on_demand(self) -> Column {
        Column { is_default: false, ..self }
    }

    fn is(&self, pattern: &str) -> bool {
        matches(pattern, self.name) || self.aliases.split(',').any(|alias| alias == pattern)
    }
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Cell {
    /// Not known, or not applicable.
    Empty,
    /// A whole number.
    Number(u64),
    /// Bytes.
    Size(u64),
    /// Milliseconds.
    Millis(u64),
    /// Words.
    Text(String),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Empty, Into::into)
    }
}

/// A table to be.
pub(super) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(columns: &'static [Column]) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row: a cell for each column, in their order.
    pub(super) fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// The answer that a request wants.
    pub(super) fn answer(mut self, query: &Query) -> Result<Reply> {
        if query.flag("help", false)? {
            return Ok(Reply::text(self.help()));
        }
        let units = Units::read(query)?;
        if let Some(keys) = query.get("s") {
            self.sort(keys)?;
        }
        let shown = self.shown(query.get("h"));
        match query.get("format") {
            Some("json") => Ok(self.json(&shown, &units).into()),
            None | Some("" | "text" | "txt") => {
                let header = query.flag("v", false)?;
                Ok(Reply::text(self.text(&shown, &units, header)))
            }
            Some(other) => Err(bad_request(format!(
                "format [{other}] is not written here; ask for text or json"
            ))),
        }
    }

    /// The columns that are shown, in the order and under the names asked for; a pattern gives full names. Unknown
    /// ones are passed over, as in the field.
    fn shown<'a>(&self, asked: Option<&'a str>) -> Vec<(usize, &'a str)> {
        let all = || self.columns.iter().enumerate();
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
            let default = all().filter(|(_, column)| column.is_default);
            return default.map(|(at, column)| (at, column.name)).collect();
        };
        let of = |pattern: &'a str| {
            let name =
                move |column: &Column| if is_pattern(pattern) { column.name } else { pattern };
            let found = all().filter(move |(_, column)| column.is(pattern));
            found.map(move |(at, column)| (at, name(column)))
        };
        asked.split(',').map(str::trim).flat_map(of).collect()
    }

    fn sort(&mut self, keys: &str) -> Result<()> {
        let mut by = Vec::new();
        for key in keys.split(',').map(str::trim) {
            let (name, descending) = match key.rsplit_once(':') {
                Some((name, "desc")) => (name, true),
                Some((name, "asc")) => (name, false),
                _ => (key, false),
            };
            let at = self.columns.iter().position(|column| column.is(name));
            let at = at.ok_or_else(|| {
                let near = record::names::did_you_mean(name, self.columns.iter().map(|c| c.name));
                bad_request(format!("Unable to sort by unknown sort key `{name}`{near}"))
            })?;
            by.push((at, descending));
        }
        self.rows.sort_by(|a, b| {
            let orders = by.iter().map(|(at, descending)| {
                // Cells of one column are of one kind, so they compare.
                let order = a[*at].partial_cmp(&b[*at]).unwrap_or(std::cmp::Ordering::Equal);
                if *descending { order.reverse() } else { order }
            });
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        Ok(())
    }

    fn text(&self, shown: &[(usize, &str)], units: &Units, header: bool) -> String {
        let head = header.then(|| shown.iter().map(|(_, name)| (*name).to_owned()).collect());
        let cells = |row: &Vec<Cell>| shown.iter().map(|(at, _)| units.text(&row[*at])).collect();
        let lines: Vec<Vec<String>> = head.into_iter().chain(self.rows.iter().map(cells)).collect();
        let right: Vec<bool> = shown.iter().map(|(at, _)| self.columns[*at].is_number).collect();
        align(&lines, &right)
    }

    fn json(&self, shown: &[(usize, &str)], units: &Units) -> Value {
        let cell = |row: &[Cell], at: usize| match &row[at] {
            Cell::Empty => Value::Null,
            cell => json!(units.text(cell)),
        };
        let object = |row: &Vec<Cell>| {
            object_of(shown.iter().map(|(at, name)| ((*name).to_owned(), cell(row, *at))))
        };
        Value::Array(self.rows.iter().map(object).collect())
    }

    fn help(&self) -> String {
        let line = |column: &Column| {
            let aliases = if column.aliases.is_empty() { "-" } else { column.aliases };
            [column.name, "|", aliases, "|", column.about].map(str::to_owned).to_vec()
        };
        let lines: Vec<Vec<String>> = self.columns.iter().map(line).collect();
        align(&lines, &[false; 5])
    }
}

/// Lines of cells as text, each column as wide as its widest cell, the last not filled up.
fn align(lines: &[Vec<String>], right: &[bool]) -> String {
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut text = String::new();
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            let (gap, fill) = (if at > 0 { " " } else { "" }, widths[at]);
            text += gap;
            if right[at] {
                text += &format!("{cell:>fill$}");
            } else if at + 1 < line.len() {
                text += &format!("{cell:<fill$}");
            } else {
                text += cell;
            }
        }
        text.push('\n');
    }
    text
}

/// How sizes and times are written; none for people.
struct Units {
    bytes: Option<u64>,
    nanos: Option<u128>,
}

impl Units {
    fn read(query: &Query) -> Result<Units> {
        let bytes = match query.get("bytes") {
            None => None,
            Some("b") => Some(1),
            Some("k" | "kb") => Some(1 << 10),
            Some("m" | "mb") => Some(1 << 20),
            Some("g" | "gb") => Some(1 << 30),
            Some("t" | "tb") => Some(1 << 40),
            Some("p" | "pb") => Some(1 << 50),
            Some(other) => {
                return Err(bad_request(format!(
                    "unknown bytes [{other}]; write b, kb, mb, gb, tb or pb"
                )));
            }
        };
        let nanos = match query.get("time") {
            None => None,
            Some("nanos") => Some(1),
            Some("micros") => Some(1_000),
            Some("ms") => Some(1_000_000),
            Some("s") => Some(1_000_000_000),
            Some("m") => Some(60_000_000_000),
            Some("h") => Some(3_600_000_000_000),
            Some("d") => Some(86_400_000_000_000),
            Some(other) => {
                return Err(bad_request(format!(
                    "unknown time [{other}]; write nanos, micros, ms, s, m, h or d"
                )));
            }
        };
        Ok(Units { bytes, nanos })
    }

    fn text(&self, cell: &Cell) -> String {
        match cell {
            Cell::Empty => String::new(),
            Cell::Number(number) => number.to_string(),
            Cell::Text(text) => text.clone(),
            Cell::Size(bytes) => match self.bytes {
                None => size(*bytes),
                Some(unit) => (bytes / unit).to_string(),
            },
            Cell::Millis(ms) => match self.nanos {
                None => span(*ms),
                Some(unit) => (u128::from(*ms) * 1_000_000 / unit).to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Body;
    use super::*;

    static COLUMNS: [Column; 4] = [
        words("index", "i,idx", "its name"),
        numbers("docs.count", "dc", "how many"),
        numbers("store.size", "ss", "how large"),
        words("took", "t", "how long").on_demand(),
    ];

    fn answer(query: &str) -> Body {
        let mut table = Table::new(&COLUMNS);
        table.push(vec!["b".into(), Cell::Number(9), Cell::Size(4300), Cell::Millis(1500)]);
        table.push(vec!["long".into(), Cell::Number(10), Cell::Empty, Cell::Millis(20)]);
        table.answer(&Query::parse(query).unwrap()).unwrap().body
    }

    fn text(query: &str) -> String {
        match answer(query) {
            Body::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn writes_text_in_columns() {
        assert_eq!(text(""), "b     9 4.1kb\nlong 10      \n");
        assert_eq!(
            text("v&h=docs.count,i,took"),
            "docs.count i    took\n         9 b    1.5s\n        10 long 20ms\n"
        );
        assert!(text("v&h=doc*").starts_with("docs.count\n"));
        assert_eq!(text("h=idx&s=dc:desc"), "long\nb\n");
        assert_eq!(text("h=ss,t&bytes=b&time=ms&s=t"), "     20\n4300 1500\n");
        assert_eq!(text("h=docs.*,zzz"), " 9\n10\n");
        assert!(text("help").starts_with("index      | i,idx | its name\n"));
    }

    #[test]
    fn writes_json_of_texts() {
        let Body::Json(json) = answer("format=json&h=i,store*&s=index:desc") else { panic!() };
        assert_eq!(
            json,
            json!([{"i": "long", "store.size": null}, {"i": "b", "store.size": "4.1kb"}])
        );
    }

    #[test]
    fn refuses_unknown_keys_and_units() {
        for bad in ["s=zzz", "bytes=x", "time=x", "format=yaml"] {
            let table = Table::new(&COLUMNS);
            assert_eq!(table.answer(&Query::parse(bad).unwrap()).unwrap_err().status, 400, "{bad}");
        }
    }
}
