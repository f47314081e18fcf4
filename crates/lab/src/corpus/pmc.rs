//! `pmc`: papers as in the Rally track, full text from PubMed Central.
//!
//! The original: 574 199 documents, 23 256 051 757 bytes. Bodies are Zipfian text, a few kilobytes
//! to over a hundred, most of them shorter than the mean.

use serde_json::{Value, json};

use super::date::{month_name, utc, write_digits};
use super::number::write_u64;
use super::random::Random;
use super::words::WORDS;

pub(super) const MEAN_BYTES: f64 = 40_502.0;

const FAMILY: u64 = 0x30;
const SHORTEST_BODY: f64 = 11_000.0;
/// Four times the mean of what comes on top of the shortest: the product of two uniform numbers
/// averages 1/4.
const BODY_RANGE: f64 = 4.0 * 28_000.0;
/// 2003-01-01 and a span of fourteen years: the years of the original's papers.
const FIRST_EPOCH_S: u64 = 1_041_379_200;
const SPAN_DAYS: u32 = 14 * 365;

const JOURNALS: [&str; 20] = [
    "PLoS One",
    "BMC Genomics",
    "Nucleic Acids Res",
    "Sci Rep",
    "BMC Public Health",
    "3 Biotech",
    "Acta Crystallogr Sect E Struct Rep Online",
    "BMC Cancer",
    "Malar J",
    "J Med Case Rep",
    "Crit Care",
    "Int J Mol Sci",
    "Sensors (Basel)",
    "BMJ Open",
    "PLoS Genet",
    "Front Psychol",
    "Molecules",
    "Trials",
    "Parasit Vectors",
    "Oncotarget",
];

/// The mapping of the Rally track, in today's types.
pub(super) fn mapping() -> Value {
    json!({"dynamic": "strict", "properties": {
        "name": {"type": "keyword"},
        "journal": {"type": "text"},
        "date": {"type": "text"},
        "volume": {"type": "text"},
        "issue": {"type": "text"},
        "accession": {"type": "keyword"},
        "timestamp": {"type": "date", "format": "yyyy-MM-dd HH:mm:ss"},
        "pmid": {"type": "integer"},
        "body": {"type": "text"},
    }})
}

pub(super) fn write(seed: u64, n: u64, out: &mut Vec<u8>) {
    let mut random = Random::new(seed, FAMILY, n);
    let journal = *random.pick(&JOURNALS);
    let epoch_s = FIRST_EPOCH_S
        + u64::from(random.below(SPAN_DAYS)) * 86_400
        + u64::from(random.below(86_400));
    let moment = utc(epoch_s);
    let (year, month, day) = (moment.year(), month_name(moment), moment.day());
    let volume = format!("{}({})", 1 + random.below(40), 1 + random.below(24));
    let first_page = 1 + random.below(4_000);
    let issue = format!("{first_page}-{}", first_page + 3 + random.below(20));

    out.extend_from_slice(b"{\"name\": \"");
    for c in journal.bytes() {
        out.push(if c == b' ' { b'_' } else { c });
    }
    let date = format!("_{year}_{month}_{day}_");
    for part in [&date, &volume, "_", &issue] {
        out.extend_from_slice(part.as_bytes());
    }
    for (key, value) in [("journal", journal), ("volume", &volume), ("issue", &issue)] {
        for part in ["\", \"", key, "\": \"", value] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\", \"date\": \"");
    out.extend_from_slice(format!("{year} {month} {day}").as_bytes());
    out.extend_from_slice(b"\", \"accession\": \"PMC");
    write_u64(out, 1_000_000 + n);
    out.extend_from_slice(b"\", \"timestamp\": \"");
    write_digits(moment, b' ', out);
    out.extend_from_slice(b"\", \"pmid\": ");
    write_u64(out, 12_000_000 + u64::from(random.below(16_000_000)));
    out.extend_from_slice(b", \"body\": \"\\n==== Front\\n");
    let bytes = SHORTEST_BODY + BODY_RANGE * random.unit() * random.unit();
    WORDS.write_sentences(bytes as usize, &mut random, out);
    out.extend_from_slice(b"\"}");
}
