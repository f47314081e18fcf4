//! Mistakes of people who use it for the first time. Each is made with the real binary, ends with the exit code that it
//! should, and is answered with the line to type instead. `docs/errors.md` is what was answered.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::Command;

use crate::common::cluster::Cluster;
use crate::common::{BINARY, folded, narrows, printed, said};

struct Mistake {
    /// What is mistaken, in a few words.
    what: &'static str,
    /// How the plan `mine.toml` differs from remote-recovery: this text becomes that.
    plan: Option<(&'static str, &'static str)>,
    /// What is typed. `CLUSTER` is the address of a cluster, `TAKEN` a port that another process has.
    args: &'static str,
    code: i32,
    /// What the answer says to type, or what decides it.
    says: &'static str,
}

const fn typed(what: &'static str, args: &'static str, says: &'static str) -> Mistake {
    Mistake { what, plan: None, args, code: 2, says }
}

const fn plan(
    what: &'static str,
    from: &'static str,
    to: &'static str,
    says: &'static str,
) -> Mistake {
    Mistake { what, plan: Some((from, to)), args: "run mine.toml", code: 2, says }
}

const fn fails(what: &'static str, args: &'static str, says: &'static str) -> Mistake {
    Mistake { what, plan: None, args, code: 1, says }
}

const LINK: &str = "rtt = \"100ms\"";
const CORPUS: &str = "name = \"geopoint\"";

#[rustfmt::skip]
const COMMANDS: &[Mistake] = &[
    typed("A command that is not there", "bench", "narrows run PLAN"),
    typed("A command of other tools", "status", "narrows watch URL"),
    typed("A misspelt command", "wach http://127.0.0.1:9200", "narrows watch"),
    typed("No plan", "run", "narrows run remote-recovery"),
    typed("No cluster to watch", "watch", "narrows watch http://localhost:9200"),
    typed("Nothing to explain", "explain", "narrows explain last"),
    typed("A link from nowhere", "link --rtt 1ms", "--listen 127.0.0.1:9901"),
    typed("A misspelt plan", "run remote-recvery", "\"remote-recovery\""),
    typed("A file that is not there", "run mine.toml", "narrows plans remote-recovery > mine.toml"),
    typed("A misspelt variant", "run remote-recovery --variant 1MBx5", "\"1 MB x 1\"? Variants: 64 KB x 1,"),
    typed("A plan in YAML", "run mine.yaml", "narrows plans remote-recovery > mine.toml"),
    typed("A misspelt option", "run remote-recovery --scael 0.1", "--scale"),
    typed("An option of other programs", "run remote-recovery -v", "narrows --version"),
    typed("An option that is not there", "watch http://127.0.0.1:1 --zoom", "narrows watch --help"),
    typed("A unit apart from its number", "run remote-recovery --scale 1 --rtt 100 ms", "100ms"),
    typed("A word for a number", "run remote-recovery --laps many", "--laps 3"),
    typed("A percentage", "run remote-recovery --scale 10%", "write --scale 0.1"),
    typed("No size at all", "run remote-recovery --scale 0", "for example 0.1"),
    typed("A size below zero", "run remote-recovery --scale -0.5", "--scale 0.5"),
    typed("A time without a unit", "run remote-recovery --rtt 50", "50ms"),
    typed("A rate without a unit", "run remote-recovery --rate 100", "100mbit"),
    typed("No laps", "run remote-recovery --laps 0", "from 1 to 1000"),
    typed("No requests", "load http://127.0.0.1:1 --iterations 0", "from 1 to 1000000000000"),
    typed("A link where there is none", "run shard-recovery --on virtual --rtt 1ms", "has no link"),
    typed("A plan too large for this machine", "run shard-recovery", "--on virtual"),
    typed("A misspelt place", "run remote-recovery --on virtal", "\"virtual\""),
    typed("A shell that is not known", "completions bsh", "bash"),
    typed("No shell", "completions", "narrows completions bash"),
    typed("Nothing to drain", "dcp drain", "narrows dcp drain couchbase://localhost/BUCKET"),
    typed("Nothing to compare", "compare", "narrows compare A B"),
    typed("A misspelt published plan", "published remote-recvery", "\"remote-recovery\""),
    typed("A plan that nobody published", "published nothing", "\"nothing\". There are "),
    typed("No run yet", "show", "narrows run remote-recovery"),
    typed("A run that is not there", "report 2024", "give an id, a directory, or \"last\""),
    typed("One run to compare", "compare last", "narrows compare last RUN"),
    typed("Runs to compare that are not there", "compare 2024 2025", "give an id"),
    typed("Two runs to explain", "explain 20261121-043000-remote-recovery 20261122-043000-remote-recovery",
        "narrows compare 20261121-043000-remote-recovery"),
    typed("No percentage", "compare a b --fail-over much", "--fail-over 5%"),
    typed("Too many nodes", "cluster --nodes 1000", "--nodes 64"),
    typed("A misspelt setting", "cluster --set indices.recovery.max_byte_per_sec=1mb",
        "indices.recovery.max_bytes_per_sec"),
    typed("A setting without a unit", "cluster --set indices.recovery.max_bytes_per_sec=20", "for example 20mb"),
    typed("A twin's setting without a unit",
        "what-if http://127.0.0.1:9200 --lose a --set indices.recovery.max_bytes_per_sec=20",
        "for example 20mb"),
    typed("A setting without a value", "cluster --set indices.recovery.max_bytes_per_sec", "NAME=VALUE"),
];

#[rustfmt::skip]
const ADDRESSES: &[Mistake] = &[
    typed("Nobody answers", "explain http://127.0.0.1:1", "http://HOST:9200"),
    typed("A host alone, to explain", "explain no-such-host", "http://no-such-host:9200"),
    typed("An API in place of a cluster", "explain http://CLUSTER/_cat/health", "write http://127.0.0.1:9200"),
    typed("An index in place of a cluster", "explain http://CLUSTER/logs", "write http://127.0.0.1:9200, or"),
    typed("Credentials that are not there", "watch http://CLUSTER --credentials es.toml", "api_key"),
    typed("Another protocol", "explain ftp://es:21", "write http://es:9200"),
    typed("TLS where there is none", "explain https://CLUSTER", "http://"),
    typed("A password in the address", "watch https://elastic:open-sesame-4711@es:9200", "NARROWS_PASSWORD"),
    typed("A certificate that is not there", "watch https://127.0.0.1:1 --ca ca.pem", "--ca http_ca.crt"),
    typed("A cluster that must not be changed", "run replica-over-link --on http://CLUSTER", "--allow-changes"),
    typed("A second cluster without a first", "run remote-recovery --leader http://CLUSTER", "--on URL"),
    typed("A request that changes the cluster", "load http://CLUSTER --operation /logs --method DELETE",
        "--allow-changes"),
    typed("A setting that is not steered", "steer http://CLUSTER --max indices.recovery.max_byte_per_sec=1mb",
        "indices.recovery.max_bytes_per_sec"),
    typed("A bound without a value", "steer http://CLUSTER --max indices.recovery.chunk_size", "NAME=VALUE"),
    typed("A bound without a unit", "steer http://CLUSTER --max indices.recovery.max_bytes_per_sec=400", "400mb"),
    typed("A guard that the cluster does not answer", "steer http://CLUSTER --guard lgos/_search",
        "--guard 'logs/_search?q=error'"),
    typed("Documents without an index", "load http://CLUSTER --operation bulk --allow-changes", "--index NAME"),
    typed("Documents that are not there",
        "load http://CLUSTER --operation bulk --index logs --allow-changes --corpus gone.json",
        "write --corpus geopoint"),
    typed("Documents that are none",
        "load http://CLUSTER --operation bulk --index logs --allow-changes --corpus empty.json",
        "write --corpus geopoint"),
    typed("A twin that is asked nothing", "what-if http://CLUSTER", "--lose NODE"),
    typed("A cluster too small for a twin", "what-if http://CLUSTER --lose narrows-0", "has 1 node that holds data"),
    fails("An index that is not there", "load http://CLUSTER --index lgos --iterations 20", "--index NAME"),
    typed("A bucket without a user", "dcp drain couchbase://CLUSTER/logs", "NARROWS_USER and NARROWS_PASSWORD"),
    typed("A port alone", "link --listen 9901 --to 127.0.0.1:9200", "127.0.0.1:9901"),
    typed("A host alone", "link --listen 127.0.0.1:0 --to localhost", "localhost:9300"),
    typed("An address that others reach", "link --listen 0.0.0.0:9901 --to 127.0.0.1:9200", "--allow-remote"),
    typed("A port that is none", "cluster --port 70000", "0..=65535"),
    fails("A port that is taken", "cluster --nodes 1 --port TAKEN", "--port"),
    typed("Runs in a file", "run remote-recovery --runs notes.txt", "--runs DIR"),
    typed("Runs that a dry run does not keep", "steer http://CLUSTER --runs kept", "add --apply"),
    typed("Runs that no page shows", "watch http://CLUSTER --runs kept", "add --web"),
    fails("A directory that is not there", "calibrate --laps 1 --write no/such/file.toml", "mkdir -p no/such"),
];

#[rustfmt::skip]
const PLANS: &[Mistake] = &[
    plan("A time without a unit", LINK, "rtt = 50", "rtt = \"50ms\""),
    plan("A rate without a unit", "rate = \"1gbit\"", "rate = 1", "rate = \"1gbit\""),
    plan("A size without a unit", LINK, "rtt = \"100ms\"\nwindow = 2", "window = \"2mb\""),
    plan("A number in quotes", "laps = 1", "laps = \"3\"", "laps = 3"),
    plan("A misspelt key", LINK, "rt = \"100ms\"", "\"rtt\""),
    plan("A misspelt table", "[follower]", "[folower]", "\"follower\""),
    plan("No nodes", "[leader]\nnodes = 3\n", "[leader]\n", "nodes = 3"),
    plan("One pair of brackets too few", "[[index]]", "[index]", "[[index]]"),
    plan("A value without quotes", LINK, "rtt = 100ms", "write rtt = \"100ms\""),
    plan("Typographic quotes", LINK, "rtt = “100ms”", "write rtt = \"100ms\""),
    plan("A colon in place of =", LINK, "rtt: 100ms", "write rtt = \"100ms\""),
    plan("A list that is not closed", "\"verify\"]", "\"verify\"", "not closed; write ] at its end"),
    plan("A text that is not closed", LINK, "rtt = \"100ms", "not closed; write \" at its end"),
    plan("A misspelt step", "\"recover\", ", "\"recovery\", ", "\"recover\""),
    plan("Steps out of order", "\"index\", \"recover\"",
        "\"recover\", \"index\"", "steps = [\"start\", \"index\", \"recover\", \"verify\"]"),
    plan("A missing step", "\"start\", \"index\", ",
        "\"start\", ", "steps = [\"start\", \"index\", \"recover\", \"verify\"]"),
    plan("A copy that nobody verifies", "\"recover\", \"verify\"",
        "\"recover\"", "steps = [\"start\", \"index\", \"recover\", \"verify\"]"),
    plan("Nothing that is measured", "\"recover\", ", "", "add one of recover,"),
    plan("No follower", "[follower]\nnodes = 3\n", "", "add [follower] with nodes = 3"),
    plan("A corpus that is not there", CORPUS, "name = \"logs.json\"", "write name = \"geopoint\""),
    plan("An empty corpus", CORPUS, "name = \"empty.json\"", "write name = \"geopoint\""),
    plan("A corpus with too few documents", CORPUS, "name = \"few.json\"", "documents = 2"),
    plan("A file of _bulk", CORPUS, "name = \"bulk.ndjson\"", "awk 'NR % 2 == 0'"),
    plan("A misspelt corpus", CORPUS, "name = \"geopoints\"", "\"geopoint\""),
    plan("A name in capitals", "name = \"leader\"\nshards", "name = \"Leader\"\nshards", "write name = \"leader\""),
    plan("More replicas than nodes", "replicas = 0 ", "replicas = 3 ", "give 0 to 2"),
    plan("A misspelt setting", "recovery.chunk_size\" = \"64kb\"",
        "recovery.chunksize\" = \"64kb\"", "ccr.indices.recovery.chunk_size"),
    plan("A limit without a unit", "recovery.max_bytes_per_sec\" = \"-1\"",
        "recovery.max_bytes_per_sec\" = 40", "for example 40mb"),
    plan("A chunk without a unit", "recovery.chunk_size\" = \"64kb\"",
        "recovery.chunk_size\" = 64", "for example 64kb"),
    plan("A setting without quotes", "\"ccr.indices.recovery.max_bytes_per_sec\" = \"-1\"",
        "ccr.indices.recovery.max_bytes_per_sec = \"-1\"", "put a dotted name in quotes"),
    plan("A variant twice", "name = \"1 MB x 1\"", "name = \"64 KB x 1\"", "name = \"64 KB x 1 again\""),
    plan("Mappings without properties", "replicas = 0 ",
        "mappings = { title = { type = \"text\" } }\nreplicas = 0 ", "properties = { title"),
];

/// Where mistakes are made: files that they speak of, a cluster, a port that is taken.
struct Place {
    dir: tempfile::TempDir,
    plan: String,
    cluster: Cluster,
    taken: TcpListener,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("empty.json", ""),
            ("few.json", "{\"a\":1}\n{\"a\":2}\n"),
            ("bulk.ndjson", "{\"index\":{}}\n{\"a\":1}\n"),
            ("notes.txt", "notes"),
        ] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        let plan = printed(&narrows(&["plans", "remote-recovery"]));
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        Place { dir, plan, cluster: Cluster::start(1), taken }
    }

    /// Makes a mistake; what was answered, with the places of this machine written as they are for everybody.
    fn make(&self, mistake: &Mistake) -> Result<String, String> {
        let path = self.dir.path().join("mine.toml");
        let _ = std::fs::remove_file(&path);
        if let Some((from, to)) = mistake.plan {
            assert!(self.plan.contains(from), "{from}");
            std::fs::write(&path, self.plan.replacen(from, to, 1)).unwrap();
        }
        let cluster = self.cluster.url().trim_start_matches("http://").to_owned();
        let taken = self.taken.local_addr().unwrap().port().to_string();
        let args = mistake.args.replace("CLUSTER", &cluster).replace("TAKEN", &taken);
        let mut command = Command::new(BINARY);
        command.args(args.split(' ')).current_dir(self.dir.path()).env("NO_COLOR", "1");
        let output = command.output().unwrap();
        let answer = said(&output)
            .replace(&cluster, "127.0.0.1:9200")
            .replace(&taken, "9200")
            .replace(&self.dir.path().display().to_string(), "~");
        let Mistake { what, code, says, .. } = mistake;
        let wrong = match output.status.code() {
            found if found != Some(*code) => format!("exit code {found:?}, not {code}"),
            _ if !answer.contains(says) => format!("\"{says}\" is not in it"),
            _ if answer.contains("panicked") => "it panicked".to_owned(),
            _ => return Ok(answer),
        };
        Err(format!("{what}: {wrong}: {answer}"))
    }
}

const HEAD: &str = "\
# Mistakes, and what is answered

What people type who use narrows for the first time, and the answer of the program. Each says what was found and what to
type instead. Exit code 2: it was asked wrongly, and nothing was started; 1: it was tried, and failed. Written by
`NARROWS_WRITE=1 cargo test --release -p narrows --test it errors` from the table in
`crates/narrows/tests/it/errors.rs`.
";

#[test]
fn every_mistake_is_answered_with_the_line_to_type() {
    let place = Place::new();
    let (mut document, mut wrong) = (HEAD.to_owned(), Vec::new());
    let parts =
        [("Commands", COMMANDS), ("Addresses, ports and files", ADDRESSES), ("Plans", PLANS)];
    for (title, mistakes) in parts {
        let _ = write!(document, "\n## {title}\n");
        for mistake in mistakes {
            match place.make(mistake) {
                Ok(answer) => write_answer(&mut document, mistake, &lasting(mistake, &answer)),
                Err(why) => wrong.push(why),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(COMMANDS.len() + ADDRESSES.len() + PLANS.len() >= 30);
    testbed::generated::check_page("docs/errors.md", &document);
}

/// The end of an answer that tells what is wrong, without figures that were measured and without the time of a run. An
/// id that was typed stays.
fn lasting(mistake: &Mistake, answer: &str) -> String {
    let is_tried = mistake.code == 1 || !answer.starts_with("narrows: ");
    let begin = answer.find("\nnarrows: ").filter(|_| is_tried).map_or(0, |at| at + 1);
    let mut parts = answer[begin..].split("-remote-recovery").peekable();
    let mut text = String::new();
    while let Some(part) = parts.next() {
        let id = part.len().saturating_sub("20261124-120000".len());
        let is_id = part.is_char_boundary(id)
            && part[id..].bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            && !mistake.args.contains(&part[id..]);
        match parts.peek() {
            Some(_) if is_id => text += &format!("{}20261124-120000-remote-recovery", &part[..id]),
            Some(_) => text += &format!("{part}-remote-recovery"),
            None => text += part,
        }
    }
    text
}

/// What was typed and what was answered, in lines that fit a page.
fn write_answer(document: &mut String, mistake: &Mistake, answer: &str) {
    let Mistake { what, plan, args, .. } = mistake;
    let _ = write!(document, "\n**{what}**");
    if let Some((_, to)) = plan {
        let _ = write!(document, ", in `mine.toml`:\n\n```toml\n{}\n```\n", to.trim_end());
    } else {
        document.push('\n');
    }
    let typed = args.replace("CLUSTER", "127.0.0.1:9200").replace("TAKEN", "9200");
    let _ = write!(document, "\n```text\n$ narrows {typed}\n");
    for line in answer.trim_end().lines() {
        let _ = writeln!(document, "{}", folded(line).trim_end());
    }
    document.push_str("```\n");
}
