//! What a request costs the driver: ours beside wrk, oha and k6, where those are installed.
//!
//! A server of this benchmark answers every request with the same kilobyte, from one thread; each driver sends it
//! searches for some seconds, from one process with one thread of its own where it has a choice, one after the other
//! and several laps. Prints core time of a request (the driver's whole process, kernel included), requests a second,
//! and the ratio to wrk. `NARROWS_BENCH_SECONDS` (5), `NARROWS_BENCH_LAPS` (3) and `NARROWS_BENCH_CLIENTS` (100) change
//! its size. `NARROWS_BENCH_SERVE=SECONDS` only serves, for so long, and prints the address: for drivers that are run
//! by hand.

mod common;

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use insight::stats::median;
use serde_json::Value;
use testbed::bench::Table;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of the answer's body, as of a search that finds a few documents.
const BODY_BYTES: usize = 1024;
const SEARCH: &str = r#"{"query":{"match_all":{}}}"#;
/// How the answer's body begins: as a search's, and with what drivers ask a cluster about itself first.
const ANSWER: &str = r#"{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":1,"relation":"eq"},"max_score":1.0,"hits":[]},"name":"a","cluster_name":"a","cluster_uuid":"a","status":"green","version":{"number":"7.10.2","build_flavor":"default","build_type":"tar","build_hash":"a","build_date":"2021-01-13T00:42:12.435326Z","build_snapshot":false,"lucene_version":"8.7.0","minimum_wire_compatibility_version":"6.8.0","minimum_index_compatibility_version":"6.0.0-beta1"},"tagline":"You Know, for Search","nodes":{},"indices":{},"_all":{"primaries":{},"total":{}},"rest":""#;

/// A driver, and how it is run.
struct Driver {
    name: &'static str,
    /// The command for so many clients, seconds and this address.
    command: fn(&str, u64, u64) -> Command,
    /// Requests, out of what it printed.
    requests: fn(&Output) -> Option<f64>,
}

#[rustfmt::skip]
const DRIVERS: [Driver; 4] = [
    Driver { name: "narrows", command: narrows, requests: |output| json_number(output, "/requests") },
    Driver { name: "wrk", command: wrk, requests: wrk_requests },
    Driver { name: "oha", command: oha, requests: oha_requests },
    Driver { name: "k6", command: k6, requests: |output| json_number(output, "/metrics/http_reqs/values/count") },
];

fn narrows(address: &str, clients: u64, seconds: u64) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(["load", &format!("http://{address}"), "--index", "a", "--body", SEARCH]);
    command.args(["--clients", &clients.to_string(), "--duration", &format!("{seconds}s")]);
    command.arg("--json");
    command
}

fn wrk(address: &str, clients: u64, seconds: u64) -> Command {
    let mut command = Command::new("wrk");
    command.args(["-t1", &format!("-c{clients}"), &format!("-d{seconds}s"), "-s"]);
    command.arg(script("wrk.lua", &format!("wrk.method='POST'\nwrk.body='{SEARCH}'\nwrk.headers['Content-Type']='application/json'\n")));
    command.arg(format!("http://{address}/a/_search"));
    command
}

fn wrk_requests(output: &Output) -> Option<f64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    line.split_whitespace().next()?.parse().ok()
}

fn oha(address: &str, clients: u64, seconds: u64) -> Command {
    let mut command = Command::new("oha");
    command.args(["--no-tui", "--output-format", "json", "-m", "POST", "-d", SEARCH]);
    command.args(["-T", "application/json", "-c", &clients.to_string()]);
    command.args(["-z", &format!("{seconds}s"), &format!("http://{address}/a/_search")]);
    command
}

fn oha_requests(output: &Output) -> Option<f64> {
    let value: Value = serde_json::from_slice(&output.stdout).ok()?;
    value["statusCodeDistribution"]
        .as_object()?
        .values()
        .filter_map(Value::as_f64)
        .reduce(|a, b| a + b)
}

fn k6(address: &str, clients: u64, seconds: u64) -> Command {
    let script = script(
        "k6.js",
        &format!(
            "import http from 'k6/http';\n\
             export const options = {{ vus: {clients}, duration: '{seconds}s', discardResponseBodies: true }};\n\
             const p = {{ headers: {{ 'Content-Type': 'application/json' }} }};\n\
             export default function () {{ http.post('http://{address}/a/_search', '{SEARCH}', p); }}\n\
             export function handleSummary(data) {{ return {{ stdout: JSON.stringify(data) }}; }}\n"
        ),
    );
    let mut command = Command::new("k6");
    command.args(["run", "--quiet", "--no-usage-report"]).arg(script);
    command
}

/// A file with a driver's script, in the directory for such files.
fn script(name: &str, text: &str) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the target directory can be written");
    path
}

fn json_number(output: &Output, pointer: &str) -> Option<f64> {
    serde_json::from_slice::<Value>(&output.stdout).ok()?.pointer(pointer)?.as_f64()
}

const TABLE: Table = Table {
    page: "load",
    name: "measured",
    columns: &["driver", "CPU µs a request (laps)", "times wrk", "requests/s"],
};

fn main() {
    let (seconds, laps) =
        (common::sized("NARROWS_BENCH_SECONDS", 5), common::sized("NARROWS_BENCH_LAPS", 3));
    let clients = common::sized("NARROWS_BENCH_CLIENTS", 100);
    let address = serve();
    let serves_s = common::sized("NARROWS_BENCH_SERVE", 0);
    if serves_s > 0 {
        println!("http://{address}");
        return std::thread::sleep(Duration::from_secs(serves_s));
    }
    let installed = |driver: &&Driver| driver.name == "narrows" || is_installed(driver.name);
    let drivers = DRIVERS.iter().filter(installed);
    let mut found: Vec<(&Driver, Vec<f64>, Vec<f64>)> =
        drivers.map(|driver| (driver, Vec::new(), Vec::new())).collect();
    for lap in 1..=laps {
        for (driver, all_us, all_per_s) in &mut found {
            let Some((cpu_us, per_s)) = measure(driver, &address, clients, seconds) else {
                continue;
            };
            eprintln!("lap {lap}: {} {cpu_us:.2} µs a request, {per_s:.0}/s", driver.name);
            all_us.push(cpu_us);
            all_per_s.push(per_s);
        }
    }
    found.retain(|(_, all_us, _)| !all_us.is_empty());
    let of = |name: &str| found.iter().find(|entry| entry.0.name == name);
    let wrk = of("wrk").and_then(|entry| median(&entry.1));
    TABLE.begin();
    for (driver, cpu_us, per_s) in &found {
        let middle = median(cpu_us).expect("there is a lap");
        let all: Vec<String> = cpu_us.iter().map(|us| format!("{us:.1}")).collect();
        let ratio = wrk.map_or("-".to_owned(), |wrk| format!("{:.2}", middle / wrk));
        TABLE.row(&[
            driver.name.to_owned(),
            format!("{middle:.1} ({})", all.join(", ")),
            ratio,
            format!("{:.0}", median(per_s).expect("there is a lap")),
        ]);
    }
}

fn is_installed(name: &str) -> bool {
    let probe =
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok()
}

/// Core microseconds of a request, and requests a second; none where the driver failed or said nothing.
fn measure(driver: &Driver, address: &str, clients: u64, seconds: u64) -> Option<(f64, f64)> {
    let mut command = (driver.command)(address, clients, seconds);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it is installed");
    let mut stdout = Vec::new();
    let mut pipe = child.stdout.take().expect("it is piped");
    pipe.read_to_end(&mut stdout).expect("it is read");
    let cpu_s = core_seconds_at_the_end(&child);
    let status = child.wait().ok()?;
    let output = Output { status, stdout, stderr: Vec::new() };
    let Some(requests) = (driver.requests)(&output).filter(|requests| *requests > 0.0) else {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        eprintln!("{} said nothing of use ({status}): {text}", driver.name);
        return None;
    };
    Some((cpu_s * 1e6 / requests, requests / seconds as f64))
}

/// Core time of a child that has closed its output, kernel and ended threads included, once it has ended.
fn core_seconds_at_the_end(child: &Child) -> f64 {
    let path = format!("/proc/{}/stat", child.id());
    loop {
        // A zombie keeps its figures until it is waited for.
        let stat = std::fs::read_to_string(&path).expect("it is our child");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        if fields.first() == Some(&"Z") {
            let ticks: f64 =
                fields[11..=12].iter().filter_map(|field| field.parse::<f64>().ok()).sum();
            return ticks / 100.0;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Serves on a thread of its own until the process ends; the address.
fn serve() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    listener.set_nonblocking(true).expect("a socket can be");
    let address = listener.local_addr().expect("it listens").to_string();
    let mut answer = Vec::new();
    write!(
        answer,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    )
    .expect("memory can be written");
    answer.extend_from_slice(ANSWER.as_bytes());
    answer.resize(answer.len() + BODY_BYTES - ANSWER.len() - 2, b'x');
    answer.extend_from_slice(b"\"}");
    let answer: &'static [u8] = answer.leak();
    std::thread::spawn(move || {
        world::real_world::run(1, async |env| {
            let listener = TcpListener::from_std(listener).expect("it is a listener");
            loop {
                let (stream, _) = listener.accept().await.expect("there are file handles");
                stream.set_nodelay(true).expect("a socket can be");
                env.spawn("connection", answer_all(stream, answer)).detach();
            }
        })
    });
    address
}

/// Of a request's body, as its head says.
fn body_bytes(head: &[u8]) -> usize {
    const NAME: &[u8] = b"content-length:";
    let lines = head.split(|byte| *byte == b'\n');
    let mut named = lines
        .filter(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME));
    let text = named.next().and_then(|line| std::str::from_utf8(&line[NAME.len()..]).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Answers as often as a request has come whole: its head, and the body, which has no blank line.
async fn answer_all(mut stream: TcpStream, answer: &'static [u8]) {
    let mut buffer = vec![0; 8192];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]).await {
            Ok(read) if read > 0 => filled += read,
            _ => return,
        }
        let text = &buffer[..filled];
        let Some(head) = text.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        if filled >= head + 4 + body_bytes(&text[..head]) {
            filled = 0;
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}
