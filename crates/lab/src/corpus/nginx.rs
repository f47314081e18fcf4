//! `nginx`: access logs in the format of Filebeat's nginx module, as the ten-day stability runs
//! used.
//!
//! Their documents are not published, only that an index of about 52 million took 20 GB. The fields
//! are the module's own after its ingest pipeline (Filebeat 6).

use serde_json::{Value, json};

use super::date;
use super::number::{write_address, write_padded, write_u64};
use super::random::Random;
use super::site::{Page, Site};
use super::words::WORDS;
use std::sync::LazyLock;

/// Bytes a document, newline included: what a short access log line becomes with the fields around
/// it.
pub(super) const MEAN_BYTES: f64 = 500.0;

const FAMILY: u64 = 0x40;
const FAMILY_PAGE: u64 = 0x41;
/// 2018-11-05T00:00:00Z.
const FIRST_EPOCH_MS: u64 = 1_541_376_000_000;
/// 17 billion documents in ten days.
const REQUESTS_PER_S: u64 = 19_676;
const PAGES: usize = 8192;
const HOSTS: u64 = 12;

const AGENTS: [&str; 8] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:63.0) Gecko/20100101 Firefox/63.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.14; rv:63.0) Gecko/20100101 Firefox/63.0",
    "Mozilla/5.0 (compatible; examplebot/2.1; +http://bot.example.org/about.html)",
    "Mozilla/5.0 (Android 8.1; Mobile; rv:62.0) Gecko/62.0 Firefox/62.0",
    "curl/7.61.1",
    "Go-http-client/1.1",
    "Java/1.8.0_191",
];
const SECTIONS: [&str; 8] =
    ["guide", "products", "blog", "static/js", "static/css", "api/v1", "search", "downloads"];

static SITE: LazyLock<Site> = LazyLock::new(|| Site::new(PAGES, 4.0, page));

fn page(rank: usize) -> Page {
    let mut random = Random::new(0, FAMILY_PAGE, rank as u64);
    let mut path = format!("/{}/", random.pick(&SECTIONS)).into_bytes();
    let words = 2 + random.below(3);
    WORDS.write(words, &mut random, &mut path);
    let path = String::from_utf8(path).expect("words are ASCII").replace(' ', "-");
    Page { path, bytes: 180 + u64::from(random.below(250)) * u64::from(random.below(250)) }
}

/// The mapping: the module's field types.
pub(super) fn mapping() -> Value {
    json!({"dynamic": "strict", "properties": {
        "@timestamp": {"type": "date"},
        "source": {"type": "keyword"},
        "offset": {"type": "long"},
        "fileset": {"properties": {
            "module": {"type": "keyword"},
            "name": {"type": "keyword"},
        }},
        "input": {"properties": {"type": {"type": "keyword"}}},
        "beat": {"properties": {
            "hostname": {"type": "keyword"},
            "version": {"type": "keyword"},
        }},
        "nginx": {"properties": {"access": {"properties": {
            "remote_ip": {"type": "ip"},
            "method": {"type": "keyword"},
            "url": {"type": "keyword"},
            "http_version": {"type": "keyword"},
            "response_code": {"type": "long"},
            "body_sent": {"properties": {"bytes": {"type": "long"}}},
            "referrer": {"type": "keyword"},
            "agent": {"type": "text"},
        }}}},
    }})
}

pub(super) fn write(seed: u64, n: u64, out: &mut Vec<u8>) {
    let mut random = Random::new(seed, FAMILY, n);
    let page = SITE.visited(&mut random);
    let epoch_ms = FIRST_EPOCH_MS + n * 1000 / REQUESTS_PER_S;
    let (status, bytes): (&str, u64) = match random.below(1000) {
        0..900 => ("200", page.bytes),
        900..960 => ("304", 0),
        960..985 => ("404", 571),
        985..995 => ("301", 185),
        _ => ("502", 173),
    };
    let method = if random.in_1000(960) { "GET" } else { "POST" };
    let share = random.unit();
    let address = (share * share * 4_000_000_000.0) as u32;
    let agent = AGENTS[(random.below(8) * random.below(8) / 8) as usize];

    out.extend_from_slice(b"{\"@timestamp\":\"");
    date::write_digits(date::utc(epoch_ms / 1000), b'T', out);
    out.push(b'.');
    write_padded::<3>(out, epoch_ms % 1000);
    out.extend_from_slice(b"Z\",\"source\":\"/var/log/nginx/access.log\",\"offset\":");
    write_u64(out, n / HOSTS * 180);
    out.extend_from_slice(
        b",\"fileset\":{\"module\":\"nginx\",\"name\":\"access\"},\"input\":{\"type\":\"log\"},\
          \"beat\":{\"version\":\"6.5.0\",\"hostname\":\"web-",
    );
    write_padded::<2>(out, n % HOSTS + 1);
    out.extend_from_slice(b"\"},\"nginx\":{\"access\":{\"remote_ip\":\"");
    write_address(out, address.to_be_bytes());
    for (key, value) in [("method", method), ("url", &page.path), ("http_version", "1.1")] {
        for part in ["\",\"", key, "\":\"", value] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\",\"response_code\":");
    out.extend_from_slice(status.as_bytes());
    out.extend_from_slice(b",\"body_sent\":{\"bytes\":");
    write_u64(out, bytes);
    out.extend_from_slice(b"},\"referrer\":\"");
    if random.in_1000(400) {
        out.extend_from_slice(b"https://www.example.org");
        out.extend_from_slice(SITE.any(&mut random).path.as_bytes());
    } else {
        out.push(b'-');
    }
    out.extend_from_slice(b"\",\"agent\":\"");
    out.extend_from_slice(agent.as_bytes());
    out.extend_from_slice(b"\"}}}");
}
