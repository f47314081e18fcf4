//! The one way to standard output and standard error. Whatever is printed, wherever it comes from, commands no
//! terminal: see [`Style::safe`].

use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

use console::Term;
use report::Style;
use serde_json::Value;

/// Standard output: `writeln!` takes it. A reader that went away is an error, which ends a command in order.
pub(crate) struct Out {
    style: Style,
}

/// Standard output.
pub(crate) fn out() -> Out {
    Out { style: style_of(&io::stdout(), &Term::stdout()) }
}

impl Out {
    /// Its colours and width.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// Columns of a line where a person looks; programs get a line each of what has one.
    pub(crate) fn line_width(&self) -> usize {
        if is_out_terminal() { usize::from(self.style.width) } else { usize::MAX }
    }

    /// What `write!` and `writeln!` call.
    pub(crate) fn write_fmt(&mut self, text: Arguments<'_>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(self.style.safe(&text.to_string()).as_bytes())?;
        out.flush()
    }
}

/// Prints one of both: a line that programs read, or what people read.
pub(crate) fn print(is_json: bool, json: Value, text: String) -> io::Result<()> {
    match is_json {
        true => writeln!(out(), "{json}"),
        false => write!(out(), "{text}"),
    }
}

/// Says a line on standard error. Nobody may be there to hear it.
pub(crate) fn say_line(line: Arguments<'_>) {
    let (error, line) = (io::stderr(), line.to_string());
    let style = style_of(&error, &Term::stderr());
    let line = match error.is_terminal() {
        true => report::fitted(&line, usize::from(style.width)),
        false => line,
    };
    let _ = error.lock().write_all(style.safe(&format!("{line}\n")).as_bytes());
}

/// Says a line on standard error, as `eprintln!` would.
macro_rules! say {
    ($($line:tt)*) => { $crate::terminal::say_line(format_args!($($line)*)) };
}
pub(crate) use say;

/// Prints help, the version, or what is wrong with the arguments, where each belongs.
pub(crate) fn print_clap(error: &clap::Error) -> io::Result<()> {
    let plain = error.to_string();
    match (record::text::visible(&plain) == plain, error.use_stderr()) {
        (true, _) => error.print(),
        (false, true) => {
            say!("{}", plain.trim_end());
            Ok(())
        }
        (false, false) => write!(out(), "{plain}"),
    }
}

/// Whether a person looks at standard output.
pub(crate) fn is_out_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person looks at standard error.
pub(crate) fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}

fn style_of(stream: &impl IsTerminal, terminal: &Term) -> Style {
    let no_color = std::env::var_os("NO_COLOR");
    let columns = terminal.size_checked().map(|(_, columns)| columns);
    Style::detect(stream.is_terminal(), no_color.as_deref(), columns)
}
