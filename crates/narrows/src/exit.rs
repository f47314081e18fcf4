//! Exit codes: 0 done, 1 failed, 2 asked wrongly. A reader that went away (`| head`) is no failure. A node's process
//! has one more, for its runner alone: [`clusters::ADDRESS_TAKEN`].

use std::ffi::OsString;
use std::io;
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use record::names::{listed, nearest};

use crate::terminal::{self, say};

/// What was asked cannot be done as it was asked: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Ends a function with what was asked wrongly, as `anyhow::bail!` does with what failed.
macro_rules! refuse {
    ($($text:tt)*) => { return Err($crate::exit::Usage(format!($($text)*)).into()) };
}
pub(crate) use refuse;

/// What people write who look for a command that is called otherwise, and the line that does it.
#[rustfmt::skip]
const MEANT: [(&[&str], &str); 16] = [
    (&["diff", "versus", "vs"], "narrows compare A B sets two runs beside each other"),
    (&["history", "log", "past"], "narrows runs lists the runs that there are"),
    (&["bench", "benchmark", "measure", "test"], "narrows run PLAN compares the variants of a plan"),
    (&["list", "ls", "plan"], "narrows plans lists the plans"),
    (&["version"], "narrows --version says which build this is"),
    (&["start", "up", "serve", "server", "nodes"], "narrows cluster --nodes 3 starts a cluster"),
    (&["top", "monitor", "live", "status", "health"], "narrows watch URL watches a cluster"),
    (&["why", "diagnosis", "check", "analyze", "analyse"], "narrows explain URL says what holds a cluster"),
    (&["tune", "autotune", "speed", "throttle", "optimize"], "narrows steer URL says which setting it would raise"),
    (&["twin", "predict", "simulate", "forecast", "eta"], "narrows what-if URL --lose NODE says how long until green"),
    (&["search", "stress", "query"], "narrows load URL sends requests"),
    (&["race", "track", "workload"], "narrows run track.json runs a track of Rally"),
    (&["proxy", "latency", "delay", "netem"], "narrows link --listen 127.0.0.1:9901 --to 127.0.0.1:9200 --rtt 100ms is a slow link"),
    (&["html", "page", "export", "open"], "narrows report writes the page of the last run"),
    (&["results", "result", "last", "table"], "narrows show shows the last run"),
    (&["undo", "rollback", "revert", "reset"], "narrows restore puts settings back that a killed run has changed"),
];

/// What to type where a command stands alone that wants a cluster, a run or a plan.
const ALONE: [(&str, &str); 12] = [
    ("watch", "narrows watch http://localhost:9200"),
    ("explain", "narrows explain http://localhost:9200, or narrows explain last for the last run"),
    ("run", "narrows run remote-recovery; narrows plans lists the others"),
    ("what-if", "narrows what-if http://localhost:9200 --lose NODE"),
    ("steer", "narrows steer http://localhost:9200"),
    ("load", "narrows load http://localhost:9200 --operation /_cluster/health --rate 10"),
    ("link", "narrows link --listen 127.0.0.1:9901 --to 127.0.0.1:9200 --rtt 100ms"),
    ("compare", "narrows compare A B; narrows runs lists the runs that there are"),
    ("store", "narrows store --to http://localhost:9200"),
    ("completions", "narrows completions bash"),
    ("man", "narrows man ./man"),
    ("dcp drain", "narrows dcp drain couchbase://localhost/BUCKET"),
];

/// What a twin can be asked with `what-if`.
const QUESTIONS: [&str; 6] =
    ["--add", "--drain", "--lose", "--replicas", "--restart", "--rolling-restart"];

/// Units that people write apart from their number.
const UNITS: [&str; 15] =
    ["micros", "ms", "s", "m", "h", "d", "b", "kb", "mb", "gb", "tb", "kbit", "mbit", "gbit", "%"];

pub(crate) fn of_clap(error: clap::Error, cli: &clap::Command) -> ExitCode {
    let error = with_helpful_hints(error, cli);
    match terminal::print_clap(&error) {
        // Help that cannot be written is what was asked for; of what is wrong the exit code tells, too.
        Err(why) if error.exit_code() == 0 => of(Err(why.into())),
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

/// An unknown command is told the line that does what it may have meant, or a name that is near; and no other. A
/// command that lacks what it is about is told a whole line.
fn with_helpful_hints(mut error: clap::Error, cli: &clap::Command) -> clap::Error {
    let tip = match error.kind() {
        ErrorKind::MissingRequiredArgument => whole_line(&error),
        ErrorKind::ArgumentConflict => one_of_them(&error),
        ErrorKind::UnknownArgument => instead_of_unknown(&mut error),
        ErrorKind::ValueValidation => {
            let tip = number_wanted(&error);
            if std::error::Error::source(&error).is_some_and(|why| why.is::<ParseIntError>()) {
                error = without_source(&error, cli);
            }
            tip
        }
        ErrorKind::InvalidSubcommand => instead_of_command(&mut error, cli),
        ErrorKind::InvalidUtf8 => no_utf8(),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    hide_passwords(&mut error);
    error
}

/// What was given is repeated, and may be an address with a user and password before its last @.
fn hide_passwords(error: &mut clap::Error) {
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
    {
        if let Some(hidden) = told_of(error, kind).and_then(|given| without_password(&given)) {
            error.insert(kind, ContextValue::String(hidden));
        }
    }
}

/// An address without the user and password before its last @; none where it has no such part.
fn without_password(given: &str) -> Option<String> {
    given.rsplit_once('@').map(|(_, host)| format!("***@{host}"))
}

fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().map(|one| one.to_string_lossy().into_owned())
}

fn told_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// What to type for a command that stands alone; nothing where an option lacks another one that the line has not.
fn whole_line(error: &clap::Error) -> Option<String> {
    let given: Vec<String> = arguments().skip(1).take(2).collect();
    let is_given =
        |name: &str| given.first().is_some_and(|first| first == name) || given.join(" ") == name;
    let (_, line) = ALONE.iter().find(|(name, _)| is_given(name))?;
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.as_slice(),
        _ => &[],
    };
    let is_no_option = |missing: &str| !missing.starts_with('-');
    let is_in_line =
        |missing: &str| missing.split(' ').next().is_some_and(|option| line.contains(option));
    missing.iter().all(|one| is_no_option(one) || is_in_line(one)).then(|| (*line).to_owned())
}

/// Which of several arguments to leave out; of the questions to a twin none, as each can be asked.
fn one_of_them(error: &clap::Error) -> Option<String> {
    let name = |told: &str| told.split(' ').next().unwrap_or_default().to_owned();
    let given = name(&told_of(error, ContextKind::InvalidArg)?);
    let others: Vec<String> = match error.get(ContextKind::PriorArg)? {
        ContextValue::String(other) => vec![name(other)],
        ContextValue::Strings(others) => others.iter().map(|other| name(other)).collect(),
        _ => return None,
    };
    let is_question = |name: &String| QUESTIONS.contains(&name.as_str());
    Some(if others == [given.as_str()] {
        format!("give {given} once")
    } else if is_question(&given) && others.iter().all(is_question) {
        "a twin is asked one thing at a time: ask it once for each of them".to_owned()
    } else {
        format!("leave {given} out, or what it cannot be used with")
    })
}

/// A number below zero, a unit apart from its number, an option of other programs, or the way to the list of options.
fn instead_of_unknown(error: &mut clap::Error) -> Option<String> {
    let given = told_of(error, ContextKind::InvalidArg)?;
    let arguments: Vec<String> = arguments().collect();
    // It is taken for an option of one letter, and of `-0.5` only `-0` is told.
    let below_zero = arguments.windows(2).find(|pair| {
        // A unit may stand behind it: -5s, -5%.
        let digits = pair[1].strip_prefix('-').map(|rest| rest.trim_start_matches('.'));
        let is_number =
            digits.is_some_and(|digits| digits.starts_with(|first: char| first.is_ascii_digit()));
        is_number && pair[0].starts_with("--") && pair[1].starts_with(&given)
    });
    if let Some([option, number]) = below_zero {
        let above = number.trim_start_matches('-');
        return Some(format!("{option} takes no number below zero: {option} {above}"));
    }
    let before = arguments
        .iter()
        .position(|one| *one == given)
        .and_then(|at| arguments.get(at.checked_sub(1)?));
    if let Some(number) = before.filter(|before| before.parse::<f64>().is_ok())
        && UNITS.contains(&given.to_lowercase().as_str())
    {
        return Some(format!("a number and its unit are one word: {number}{given}"));
    }
    // A name that is near says more; that a name may be passed as a value says nothing.
    if error.get(ContextKind::SuggestedArg).is_some() {
        return None;
    }
    error.remove(ContextKind::Suggested);
    let command = arguments.get(1).filter(|name| !name.starts_with('-'));
    let command = command.map_or_else(String::new, |name| format!(" {name}"));
    Some(match given.as_str() {
        "-v" | "-V" => "narrows --version says which version this is".to_owned(),
        "-q" | "--quiet" | "--silent" => {
            "progress is written to standard error; 2> /dev/null leaves it out".to_owned()
        }
        _ => format!("narrows{command} --help lists the options"),
    })
}

/// The argument that is no UTF-8. Of several a path may be one, and which one is wrong is not told.
fn no_utf8() -> Option<String> {
    let shown = |one: OsString| {
        let quoted = format!("{one:?}");
        let text = quoted.trim_matches('"');
        without_password(text).map_or(quoted.clone(), |hidden| format!("\"{hidden}\""))
    };
    let all = std::env::args_os().skip(1).filter(|one| one.to_str().is_none());
    let all: Vec<String> = all.map(shown).collect();
    match &all[..] {
        [] => None,
        [one] => Some(format!("{one} is no UTF-8")),
        _ => Some(format!("{} are no UTF-8, which only a path need not be", listed(&all))),
    }
}

/// A whole number in place of a word, or the nearest that can be given.
fn number_wanted(error: &clap::Error) -> Option<String> {
    let why = std::error::Error::source(error)?;
    let option = told_of(error, ContextKind::InvalidArg)?;
    let option = option.split(' ').next()?;
    if let Some(wrong) = why.downcast_ref::<ParseIntError>() {
        let number = if option == "--port" { 9200 } else { 3 };
        let wanted = match wrong.kind() {
            IntErrorKind::PosOverflow => "a smaller number",
            _ => "a whole number",
        };
        return Some(format!("{wanted} is wanted: {option} {number}"));
    }
    // As clap says it: 1000 is not in 1..=64.
    let why = why.to_string();
    let (given, range) = why.split_once(" is not in ")?;
    let (least, most) = range.split_once("..=")?;
    let is_below = given.parse::<i128>().ok()? < least.parse::<i128>().ok()?;
    let nearest = if is_below { least } else { most };
    Some(format!("numbers from {least} to {most} can be given: {option} {nearest}"))
}

/// The same error without what Rust says of digits: the tip says what is wanted.
fn without_source(error: &clap::Error, cli: &clap::Command) -> clap::Error {
    let mut bare = clap::Error::new(error.kind()).with_cmd(cli);
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidValue] {
        if let Some(text) = told_of(error, kind) {
            bare.insert(kind, ContextValue::String(text));
        }
    }
    bare
}

/// The command that was meant.
fn instead_of_command(error: &mut clap::Error, cli: &clap::Command) -> Option<String> {
    let given = told_of(error, ContextKind::InvalidSubcommand)?;
    error.remove(ContextKind::SuggestedSubcommand);
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    let meant = MEANT.iter().find(|(words, _)| words.contains(&given.to_lowercase().as_str()));
    // A word for something is no misspelt name of something else: `start` is not `store`.
    Some(match (meant, nearest(&given, names.iter().copied()).first()) {
        (Some((_, line)), _) => line.to_string(),
        (None, Some(near)) => format!("did you mean `narrows {near}`?"),
        (None, None) => format!("commands: {}", names.join(", ")),
    })
}

pub(crate) fn of(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.chain().any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    say!("narrows: {}", with_causes(&error));
    ExitCode::from(match () {
        () if error.chain().any(is_usage) => 2,
        () if error.chain().any(is_taken) => clusters::ADDRESS_TAKEN,
        () => 1,
    })
}

/// The error and its causes, each once.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
    lab::with_causes(error.chain().map(ToString::to_string))
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let io = cause.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A node could not listen because another process does.
fn is_taken(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        cause.downcast_ref(),
        Some(engine::Error::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse
    )
}

fn is_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<Usage>()
        || cause.downcast_ref().is_some_and(lab::Error::is_usage)
        || cause.downcast_ref().is_some_and(clusters::Error::is_usage)
        || matches!(cause.downcast_ref(), Some(dcp::Error::Settings(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_its_error_says_is_said_once() {
        let source = io::Error::other("listen for REST on 127.0.0.1:9200: it is in use");
        let error = engine::Error::Listen { node: "narrows-0".to_owned(), source };
        let said = "node narrows-0 cannot listen for REST on 127.0.0.1:9200: it is in use; choose another address, \
                    or stop what uses it";
        assert_eq!(with_causes(&anyhow::Error::from(error)), said);
        let chain = anyhow::anyhow!("it is full").context("write the run").context("run the plan");
        assert_eq!(with_causes(&chain), "run the plan: write the run: it is full");
    }
}
