//! `http_logs`: a web server's log as in the Rally track, after the 1998 World Cup site's.
//!
//! The original: 247 249 096 documents, 33 365 244 237 bytes, over 88 days. Few pages and many
//! small pictures, asked for by Zipf's law; sizes belong to the page, so an answer of 304 has none;
//! client addresses are client numbers written as addresses, low byte first.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::number::{write_address, write_u64};
use super::random::Random;
use super::site::{Page, Site};

pub(super) const MEAN_BYTES: f64 = 134.95;

const FAMILY: u64 = 0x20;
const FAMILY_PAGE: u64 = 0x21;
/// 1998-04-30T21:30:17Z, the first request of the original.
const FIRST_EPOCH_S: u64 = 893_971_817;
/// 247 million requests in 88 days.
const REQUESTS_PER_S: u64 = 32;
const CLIENTS: f64 = 2_770_000.0;
const PAGES: usize = 4096;

const FOLDERS: [&str; 14] = [
    "/images/", "/images/", "/images/", "/english/images/", "/english/images/", "/french/images/",
    "/english/", "/english/news/", "/english/playing/", "/english/teams/", "/french/",
    "/french/news/", "/english/history/", "/english/competition/",
];
const STEMS: [&str; 24] = [
    "bar", "ball", "top", "menu", "back", "logo", "flag", "line", "dot", "team", "stage", "score",
    "venue", "ticket", "photo", "index", "player", "group", "final", "match", "header", "button",
    "cup", "city",
];

/// A flat head: the front page brings its two dozen pictures along.
static SITE: LazyLock<Site> = LazyLock::new(|| Site::new(PAGES, 12.0, page));

fn page(rank: usize) -> Page {
    let mut random = Random::new(0, FAMILY_PAGE, rank as u64);
    let folder = random.pick(&FOLDERS);
    let (first, second) = (random.pick(&STEMS), random.pick(&STEMS));
    let number = random.below(90) + 10;
    let picture = folder.contains("images") || random.in_1000(300);
    let (ending, bytes) = match (picture, random.in_1000(150)) {
        (true, false) => ("gif", 60 + random.below(60) * random.below(60)),
        (true, true) => ("jpg", 800 + random.below(150) * random.below(150)),
        (false, false) => ("html", 700 + random.below(120) * random.below(120)),
        (false, true) => ("class", 1_500 + random.below(9_000)),
    };
    let path = match random.below(10) {
        0..4 => format!("{folder}{first}.{ending}"),
        4..8 => format!("{folder}{first}{number}.{ending}"),
        _ => format!("{folder}{first}_{second}.{ending}"),
    };
    Page { path, bytes: u64::from(bytes) }
}

/// The mapping of the Rally track.
pub(super) fn mapping() -> Value {
    json!({"dynamic": "strict", "properties": {
        "@timestamp": {"type": "date", "format": "epoch_second"},
        "clientip": {"type": "ip"},
        "request": {"type": "text"},
        "status": {"type": "integer"},
        "size": {"type": "integer"},
    }})
}

pub(super) fn write(seed: u64, n: u64, out: &mut Vec<u8>) {
    let mut random = Random::new(seed, FAMILY, n);
    let page = SITE.visited(&mut random);
    // Cubed: a few clients (the proxies of large providers) ask for most.
    let share = random.unit();
    let client = 1 + (share * share * share * CLIENTS) as u32;
    let chance = random.bits();
    let (status, bytes): (&[u8], u64) = match ((chance & 0xffff) * 1000) >> 16 {
        0..830 => (b"200", page.bytes),
        830..985 => (b"304", 0),
        985..992 => (b"404", 340),
        992..997 => (b"206", page.bytes / 2),
        _ => (b"302", 290),
    };
    let method: &[u8] = if (chance >> 16) & 0x1ff == 0 { b"HEAD " } else { b"GET " };
    let version: &[u8] = if (chance >> 25) & 3 == 0 { b"1" } else { b"0" };

    out.extend_from_slice(b"{\"@timestamp\": ");
    write_u64(out, FIRST_EPOCH_S + n / REQUESTS_PER_S);
    out.extend_from_slice(b", \"clientip\": \"");
    write_address(out, client.to_le_bytes());
    out.extend_from_slice(b"\", \"request\": \"");
    out.extend_from_slice(method);
    out.extend_from_slice(page.path.as_bytes());
    out.extend_from_slice(b" HTTP/1.");
    out.extend_from_slice(version);
    out.extend_from_slice(b"\", \"status\": ");
    out.extend_from_slice(status);
    out.extend_from_slice(b", \"size\": ");
    write_u64(out, bytes);
    out.push(b'}');
}
