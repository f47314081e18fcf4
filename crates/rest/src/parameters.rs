//! The parameters of a request: `?pretty&timeout=30s`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use query::SourceFilter;
use record::{names, units};

use super::error::bad_request;
use engine::transport::Result;

/// Parameters that every request may have: they say how the answer looks.
const COMMON: &[&str] = &["error_trace", "filter_path", "format", "human", "pretty"];

/// Groups of parameters that a route knows; a text may name several, with spaces in between.
pub(super) type Known = &'static [&'static [&'static str]];

/// Names of parameters that were looked up, given or not.
pub(super) type LookedUp = Rc<RefCell<BTreeSet<String>>>;

/// The parameters of one request, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    given: BTreeMap<String, String>,
    /// Shared with whoever wants to know which parameters a handler reads; copies of this add to it, too.
    pub(super) looked_up: Option<LookedUp>,
}

impl Query {
    /// Reads what stands behind the `?`. A name without a value has the empty one.
    pub(super) fn parse(text: &str) -> Result<Query> {
        let mut given = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |part: &str| percent_decode(&part.replace('+', " "));
            given.insert(decode(name)?, decode(value)?);
        }
        Ok(Query { given, looked_up: None })
    }

    /// Refuses parameters that the route does not know, and names what was probably meant.
    pub(super) fn check(&self, path: &str, known: Known) -> Result<()> {
        let known = known.iter().copied().flatten().chain(COMMON);
        let known = || known.clone().flat_map(|names| names.split(' '));
        let unknown: Vec<&String> =
            self.given.keys().filter(|name| !known().any(|other| other == *name)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = unknown
            .iter()
            .map(|name| match names::nearest(name, known()).first() {
                Some(near) => format!("[{name}] -> did you mean [{near}]?"),
                None => format!("[{name}]"),
            })
            .collect();
        let plural = if unknown.len() == 1 { "" } else { "s" };
        let named = named.join(", ");
        Err(bad_request(format!(
            "request [{path}] contains unrecognized parameter{plural}: {named}"
        )))
    }

    /// Sets a parameter, as if it had been given.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.given.insert(name.to_owned(), value.to_owned());
    }

    /// Takes out the body that clients send as `source` that have none with `GET`; the empty one where there is none.
    pub(super) fn take_body(&mut self) -> Result<Bytes> {
        let Some(source) = self.given.remove("source") else { return Ok(Bytes::new()) };
        match self.given.remove("source_content_type") {
            Some(kind) if !kind.contains("json") => {
                let reason = format!("[source] is JSON, not of the [source_content_type] [{kind}]");
                Err(bad_request(reason))
            }
            _ => Ok(source.into()),
        }
    }

    /// The value of a parameter; none where it was not given.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        if let Some(names) = &self.looked_up {
            names.borrow_mut().insert(name.to_owned());
        }
        self.given.get(name).map(String::as_str)
    }

    /// Yes or no; a name alone means yes.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some("" | "true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(bad_request(format!(
                "failed to parse parameter [{name}]: [{other}] is neither [true] nor [false]"
            ))),
        }
    }

    /// A time.
    pub(super) fn duration(&self, name: &str, default: Duration) -> Result<Duration> {
        let Some(text) = self.get(name) else { return Ok(default) };
        units::parse_duration(text)
            .map_err(|error| bad_request(format!("failed to parse parameter [{name}]: {error}")))
    }

    /// A number; none where it was not given.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let why = match text.parse::<i64>() {
            Ok(number) if number < 0 => "is below zero",
            _ => "is no number",
        };
        let failed = |_| bad_request(format!("failed to parse parameter [{name}]: [{text}] {why}"));
        text.parse().map(Some).map_err(failed)
    }

    /// `requests_per_second`, infinity for as many as there can be; none where it was not given.
    pub(super) fn requests_per_second(&self) -> Result<Option<f64>> {
        match self.number::<f64>("requests_per_second")? {
            None => Ok(None),
            Some(-1.0) => Ok(Some(f64::INFINITY)),
            Some(rate) if rate > 0.0 && rate.is_finite() => Ok(Some(rate)),
            Some(_) => {
                let reason = "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.";
                Err(bad_request(reason))
            }
        }
    }
}

/// Decodes `%20` and its like. A `%` without two hexadecimal digits is an error, as in Elasticsearch.
pub(super) fn percent_decode(text: &str) -> Result<String> {
    let is_escape = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let decoded = percent_decode_str(text).decode_utf8().ok();
    decoded
        .filter(|_| text.split('%').skip(1).all(is_escape))
        .map(Cow::into_owned)
        .ok_or_else(|| bad_request(format!("[{text}] is not percent-encoded UTF-8")))
}

/// What parameters say of the source that is shown. As in the field they stand above all that a body says of it.
pub(super) fn filter_source(query: &Query, source: &mut SourceFilter) {
    if ["_source", "_source_includes", "_source_excludes"]
        .iter()
        .any(|name| query.get(name).is_some())
    {
        *source = SourceFilter::default();
    }
    let list = |text: &str| text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect();
    match query.get("_source") {
        None => {}
        Some("true" | "") => source.enabled = true,
        Some("false") => source.enabled = false,
        Some(includes) => source.includes = list(includes),
    }
    if let Some(includes) = query.get("_source_includes") {
        source.includes = list(includes);
    }
    if let Some(excludes) = query.get("_source_excludes") {
        source.excludes = list(excludes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(query: &str, known: Known) -> String {
        Query::parse(query).unwrap().check("/_count", known).unwrap_err().reason
    }

    #[test]
    fn reads_and_decodes() {
        let query = Query::parse("pretty&h=a%2Cb+c&timeout=1m&v=false&n=7&").unwrap();
        assert_eq!(query.get("h"), Some("a,b c"));
        assert_eq!(query.flag("pretty", false), Ok(true));
        assert_eq!(query.flag("v", true), Ok(false));
        assert_eq!(query.flag("help", true), Ok(true));
        assert_eq!(query.duration("timeout", Duration::ZERO), Ok(Duration::from_secs(60)));
        assert_eq!(query.number::<u32>("n"), Ok(Some(7)));
        assert_eq!(query.number::<u32>("m"), Ok(None));
        assert!(query.number::<u32>("h").unwrap_err().reason.ends_with("[a,b c] is no number"));
        let below = Query::parse("n=-1").unwrap().number::<u32>("n").unwrap_err();
        assert!(below.reason.ends_with("[-1] is below zero"), "{}", below.reason);
        assert!(query.flag("h", false).is_err());
        assert!(query.duration("h", Duration::ZERO).is_err());
        for bad in ["a=%", "a=%2", "a=%zz", "a=%+1", "a=%ff"] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn refuses_what_the_route_does_not_know() {
        let known: Known = &[&["timeout", "wait_for_status"], &["local"]];
        assert!(Query::parse("pretty&local&filter_path=a").unwrap().check("/", known).is_ok());
        assert_eq!(
            said("wait_for_statu=green", known),
            "request [/_count] contains unrecognized parameter: [wait_for_statu] -> did you mean \
             [wait_for_status]?"
        );
        assert_eq!(
            said("zzz&yyy=1", known),
            "request [/_count] contains unrecognized parameters: [yyy], [zzz]"
        );
    }
}
