//! Expressions that name indices or nodes: `a,b*,-bc`, `_all`.

use std::collections::{BTreeMap, BTreeSet};

use query::parse_search;
use record::names::did_you_mean;
pub(super) use record::names::matches;

use super::error::{NO_ALIAS, bad_request, not_supported};
use super::parameters::Query;
use engine::state::{ClusterState, Index};
use engine::transport::{Failure, Result};

/// Parameters of requests that take such an expression.
pub(super) const EXPRESSION: &[&str] =
    &["allow_no_indices", "expand_wildcards", "ignore_throttled", "ignore_unavailable"];

/// Whether a part of an expression may stand for several names, and for none.
pub(super) fn is_pattern(part: &str) -> bool {
    part == "_all" || part.contains('*')
}

/// Whether a name fits one of several patterns.
pub(super) fn matches_any(patterns: &str, name: &str) -> bool {
    patterns.split(',').any(|pattern| pattern == "_all" || matches(pattern, name))
}

/// There is no such index; the nearest names are offered.
pub(super) fn no_such_index(state: &ClusterState, index: &str) -> Failure {
    let mut failure = Failure::no_such_index(index);
    failure.reason += &did_you_mean(index, state.indices.keys().map(String::as_str));
    failure
}

/// The index that takes the writes to a name, which may be an alias; the name itself where there is no such index or
/// alias.
pub(super) fn write_index<'a>(state: &'a ClusterState, name: &'a str) -> Result<&'a str> {
    let found = state.write_index(name).map_err(|error| Failure::from(&error))?;
    Ok(found.unwrap_or(name))
}

/// Fails where no alias has this name, as a write wants it with `require_alias`.
pub(super) fn check_alias(state: &ClusterState, name: &str) -> Result<()> {
    match state.aliased(name).next() {
        Some(_) => Ok(()),
        None => {
            let reason = format!("no such index [{name}]{NO_ALIAS} [{name}] is not an alias");
            Err(Failure { reason, ..Failure::no_such_index(name) })
        }
    }
}

/// Names and UUIDs of these indices, for changes of them: another index may have such a name later.
pub(super) fn with_uuids<'a>(
    state: &'a ClusterState,
    names: &'a [String],
) -> impl Iterator<Item = Index> + 'a {
    names.iter().filter_map(move |name| state.index(name))
}

/// The one index of a name, for reading a document; 404 where there is none, 400 where an alias has several.
pub(super) fn one_index<'a>(state: &'a ClusterState, name: &'a str) -> Result<&'a str> {
    if state.indices.contains_key(name) {
        return Ok(name);
    }
    let all: Vec<&str> = state.aliased(name).map(|(index, _)| index).collect();
    match all.as_slice() {
        [] => Err(no_such_index(state, name)),
        [index] => Ok(index),
        _ => Err(bad_request(format!(
            "alias [{name}] has more than one index associated with it [{}], can't execute a single index op",
            all.join(", ")
        ))),
    }
}

/// What a request makes of closed indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// None is taken: one that is named is refused, or left out with `ignore_unavailable`.
    Refused,
    /// Those are taken that are named; patterns stand for open ones.
    Named,
    /// Patterns stand for them, too.
    Expanded,
    /// Patterns stand for them alone.
    Alone,
}

impl Closed {
    /// Whether patterns stand for open indices, and for closed ones, where a request does not say.
    fn patterns(self) -> (bool, bool) {
        (self != Closed::Alone, matches!(self, Closed::Expanded | Closed::Alone))
    }
}

/// `expand_wildcards`: whether patterns stand for indices that are open, and for those that are closed.
pub(super) fn expanded(query: &Query, by_default: Closed) -> Result<(bool, bool)> {
    let Some(words) = query.get("expand_wildcards").filter(|words| !words.is_empty()) else {
        return Ok(by_default.patterns());
    };
    let (mut open, mut closed) = (false, false);
    for word in words.split(',') {
        match word {
            "open" => open = true,
            "closed" => closed = true,
            // No index is hidden.
            "hidden" => {}
            "all" => (open, closed) = (true, true),
            "none" => (open, closed) = (false, false),
            other => {
                return Err(bad_request(format!("No valid expand wildcard value [{other}]")));
            }
        }
    }
    Ok((open, closed))
}

/// Fails where a part of an expression names indices that are not looked up: they would look as if there were none.
fn check_part(part: &str) -> Result<()> {
    match part.strip_prefix('-').unwrap_or(part) {
        name if name.starts_with('<') => {
            let what = format!("date math in the name of an index, [{part}],");
            Err(not_supported(&what, "write the date"))
        }
        name if name.contains(':') => {
            let what = format!("the name of an index of another cluster, [{part}],");
            Err(not_supported(&what, "ask that cluster itself"))
        }
        _ => Ok(()),
    }
}

/// The indices that an expression names, by their names or their aliases, in the order of their names; none means all.
/// As in the field `-` excludes behind a pattern, and before any it is a letter; a name takes out what was named so,
/// and a pattern the indices that fit it; `_all` stands alone; and a comma at the end says nothing.
///
/// Fails with 404 if one that is named without `*` does not exist, unless `ignore_unavailable`; and if none
/// is left though `allow_no_indices` is false. Fails with 400 if one is closed, unless `ignore_unavailable`.
pub(super) fn indices(
    state: &ClusterState,
    expression: Option<&str>,
    query: &Query,
) -> Result<Vec<String>> {
    indices_with(state, expression, query, Closed::Refused)
}

/// As [`indices`], for requests that may be about closed indices.
pub(super) fn indices_with(
    state: &ClusterState,
    expression: Option<&str>,
    query: &Query,
    by_default: Closed,
) -> Result<Vec<String>> {
    let ignore = query.flag("ignore_unavailable", false)?;
    let allow_none = query.flag("allow_no_indices", true)?;
    // No index is throttled; dashboards say it of every search.
    query.flag("ignore_throttled", true)?;
    let (open, closed) = expanded(query, by_default)?;
    let is_closed = |name: &str| state.indices.get(name).is_some_and(|meta| meta.closed);
    let expression = expression.filter(|text| !text.is_empty()).unwrap_or("_all");
    let expression = expression.trim_end_matches(',');
    // Names of indices and of aliases.
    let (mut found, mut pattern_seen) = (BTreeSet::<&str>::new(), false);
    for part in expression.split(',') {
        check_part(part)?;
        if part.starts_with('_') && part != expression {
            let reason = format!("Invalid index name [{part}], must not start with '_'.");
            return Err(Failure::new(400, "invalid_index_name_exception", reason));
        }
        let excluded = part.strip_prefix('-').filter(|_| pattern_seen);
        let name = excluded.unwrap_or(part);
        if !name.contains('*') && expression != "_all" {
            let is_there = state.indices.contains_key(name) || state.aliased(name).next().is_some();
            if !is_there && !ignore {
                return Err(no_such_index(state, name));
            }
            match excluded {
                Some(_) => found.remove(name),
                None => found.insert(name),
            };
        } else if open || closed {
            pattern_seen = true;
            let fits = |name: &&str| if is_closed(name) { closed } else { open };
            let fitting = called(state, name).map(String::as_str).filter(fits);
            match excluded {
                Some(_) => fitting.for_each(|name| {
                    found.remove(name);
                }),
                None => found.extend(fitting),
            }
        } else if !ignore && part != expression {
            // A pattern that stands for none of both is a name that no index has; as in the field, one that stands
            // alone may be missing all the same.
            return Err(no_such_index(state, part));
        }
    }
    // No alias has the name of an index, and to look for one goes through all indices.
    let is_alias = |name: &&str| !state.indices.contains_key(*name);
    let aliases: Vec<&str> = found.extract_if(.., is_alias).collect();
    found.extend(aliases.into_iter().flat_map(|name| state.aliased(name)).map(|(index, _)| index));
    if by_default == Closed::Refused {
        if ignore {
            found.retain(|name| !is_closed(name));
        }
        if let Some(name) = found.iter().find(|name| is_closed(name)) {
            return Err(Failure::index_closed(name, &state.indices[*name].uuid));
        }
    }
    if found.is_empty() && !allow_none {
        return Err(no_such_index(state, expression));
    }
    Ok(found.into_iter().map(str::to_owned).collect())
}

/// As [`indices_with`], for requests that change what they name: as in the field, a name or a pattern that stands for
/// no index is 404 unless `allow_no_indices` says otherwise, so that no change of nothing is acknowledged.
pub(super) fn indices_to_change(
    state: &ClusterState,
    expression: Option<&str>,
    query: &Query,
) -> Result<Vec<String>> {
    let names = indices_with(state, expression, query, Closed::Expanded)?;
    let named = expression.filter(|text| !["", "_all"].contains(text));
    match named.filter(|_| names.is_empty() && query.get("allow_no_indices").is_none()) {
        Some(text) => Err(no_such_index(state, text)),
        None => Ok(names),
    }
}

/// As [`indices_with`], for requests that delete indices or change their aliases: as in the field these name indices
/// alone. A pattern does not stand for an index by one of its aliases, and an alias that is named is refused.
pub(super) fn indices_themselves(
    state: &ClusterState,
    expression: &str,
    query: &Query,
    (by_default, allow_none): (Closed, bool),
) -> Result<Vec<String>> {
    let is_alias = |name: &&str| state.aliased(name).next().is_some();
    let mut names = expression.split(',').map(|part| part.strip_prefix('-').unwrap_or(part));
    if let Some(alias) = names.find(is_alias) {
        return Err(bad_request(format!(
            "the name [{alias}] is an alias, and indices are meant; name them, as GET /_alias/{alias} shows them"
        )));
    }
    let mut names = indices_with(state, Some(expression), query, by_default)?;
    names.retain(|name| is_said(expression, name));
    if names.is_empty() && !query.flag("allow_no_indices", allow_none)? {
        return Err(no_such_index(state, expression));
    }
    Ok(names)
}

/// What searches of an expression find in these indices, which it names: of each that it names by aliases with filters
/// alone what one of these lets through.
pub(super) fn filters(
    state: &ClusterState,
    expression: Option<&str>,
    names: &[String],
) -> Result<BTreeMap<String, query::Query>> {
    read_filters(&filter_texts(state, expression, names))
}

/// The same as it is written in a request.
pub(super) fn filter_texts(
    state: &ClusterState,
    expression: Option<&str>,
    names: &[String],
) -> BTreeMap<String, String> {
    let expression = expression.filter(|text| !text.is_empty()).unwrap_or("_all");
    let mut filters = BTreeMap::new();
    for name in names.iter().filter(|name| !is_said(expression, name)) {
        let Some(meta) = state.indices.get(name) else { continue };
        let said = meta.aliases.iter().filter(|(alias, _)| is_said(expression, alias));
        let said: Option<Vec<&str>> = said.map(|(_, alias)| alias.filter.as_deref()).collect();
        let text = match said.as_deref() {
            None | Some([]) => continue,
            Some([one]) => (*one).to_owned(),
            Some(several) => format!("{{\"bool\":{{\"should\":[{}]}}}}", several.join(",")),
        };
        filters.insert(name.clone(), text);
    }
    filters
}

/// Reads filters of indices.
pub(super) fn read_filters(
    texts: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, query::Query>> {
    texts.iter().map(|(name, text)| Ok((name.clone(), read_filter(text)?))).collect()
}

/// Whether an expression names an index or an alias by this name, and not by another one that it has.
fn is_said(expression: &str, name: &str) -> bool {
    let (mut said, mut pattern_seen) = (false, false);
    for part in expression.split(',') {
        match part.strip_prefix('-').filter(|_| pattern_seen) {
            Some(excluded) => said &= !matches(excluded, name),
            None => {
                pattern_seen |= is_pattern(part);
                said |= part == "_all" || matches(part, name);
            }
        }
    }
    said
}

/// Reads the filter of an alias, which is JSON.
pub(super) fn read_filter(text: &str) -> Result<query::Query> {
    let read = parse_search(format!("{{\"query\":{text}}}").as_bytes());
    let failed = |error: query::SearchError| {
        bad_request(format!("failed to parse the [filter] of an alias: {}", error.reason))
    };
    read.map(|request| request.query).map_err(failed)
}

/// The indices that fit one of several patterns, by their names or their aliases.
pub(super) fn called<'a>(
    state: &'a ClusterState,
    patterns: &'a str,
) -> impl Iterator<Item = &'a String> {
    let fits = move |name: &&String| is_called(state, name, |called| matches_any(patterns, called));
    state.indices.keys().filter(fits)
}

fn is_called(state: &ClusterState, index: &str, fits: impl Fn(&str) -> bool) -> bool {
    let aliases = state.indices.get(index).into_iter().flat_map(|meta| meta.aliases.keys());
    fits(index) || aliases.into_iter().any(|alias| fits(alias))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::state::{Alias, Aliases, Event, Made, apply};

    fn state() -> ClusterState {
        let mut state = ClusterState::new("c", [], || 1);
        for index in ["logs-1", "logs-2", "geo"] {
            let alias = if index == "geo" { "places" } else { "logs" };
            let aliases = Aliases::from([(alias.to_owned(), Alias::default())]);
            let made = Made { aliases, ..Made::default() };
            let event = Event::CreateIndex { index: index.to_owned(), made };
            apply(&mut state, 0, event).unwrap();
        }
        state
    }

    fn named(expression: &str, query: &str) -> Result<Vec<String>, String> {
        let query = Query::parse(query).unwrap();
        indices(&state(), Some(expression), &query).map_err(|failure| failure.reason)
    }

    #[test]
    fn names_indices() {
        assert_eq!(named("_all", "").unwrap(), ["geo", "logs-1", "logs-2"]);
        assert_eq!(named("", "").unwrap().len(), 3);
        assert_eq!(named("logs-*,geo,logs-1", "").unwrap(), ["geo", "logs-1", "logs-2"]);
        assert_eq!(named("*,-logs-*", "").unwrap(), ["geo"]);
        assert_eq!(named("geo,-g*,logs-1", "").unwrap(), ["geo", "logs-1"], "no pattern before");
        assert_eq!(named("zzz*,-geo", "").unwrap(), Vec::<String>::new());
        assert_eq!(named("zzz*", "").unwrap(), Vec::<String>::new());
        assert_eq!(named("zzz*", "allow_no_indices=false").unwrap_err(), "no such index [zzz*]");
        assert_eq!(named("geo,gone", "ignore_unavailable").unwrap(), ["geo"]);
        assert_eq!(named("geo", "ignore_throttled=false").unwrap(), ["geo"]);
        assert!(named("geo", "ignore_throttled=x").unwrap_err().contains("[ignore_throttled]"));
        for all in ["open", "all", "open,hidden", "none,open", "closed,open", ""] {
            let found = named("g*", &format!("expand_wildcards={all}"));
            assert_eq!(found.unwrap(), ["geo"], "{all}");
        }
        for none in ["none", "closed", "hidden", "all,none"] {
            let query = format!("expand_wildcards={none}");
            assert_eq!(named("g*", &query).unwrap(), Vec::<String>::new(), "{none}");
            assert_eq!(named("", &query).unwrap(), Vec::<String>::new(), "{none}");
            assert_eq!(named("geo,logs", &query).unwrap().len(), 3, "{none}");
            let strict = format!("{query}&allow_no_indices=false");
            assert_eq!(named("zzz*", &strict).unwrap_err(), "no such index [zzz*]", "{none}");
        }
        assert_eq!(named("geo,g*", "expand_wildcards=closed").unwrap(), ["geo"]);
        let said = named("geo,g*", "expand_wildcards=none").unwrap_err();
        assert!(said.starts_with("no such index [g*]"), "{said}");
        let said = named("geo", "expand_wildcards=opened").unwrap_err();
        assert_eq!(said, "No valid expand wildcard value [opened]");
        assert_eq!(named("logs", "").unwrap(), ["logs-1", "logs-2"]);
        assert_eq!(named("pl*,logs-2", "").unwrap(), ["geo", "logs-2"]);
        assert_eq!(named("*,-pla*,-logs-1", "").unwrap(), ["logs-2"]);
        assert_eq!(named("*,-places", "").unwrap().len(), 3, "no index has this name");
        assert_eq!(named("logs,g*,-logs", "").unwrap(), ["geo"]);
        assert_eq!(named("logs,g*,-l*", "").unwrap().len(), 3, "an alias that is named stays");
        assert_eq!(named("*,-_all", "").unwrap_err(), "no such index [_all]");
        let said = named("_all,-geo", "ignore_unavailable").unwrap_err();
        assert_eq!(said, "Invalid index name [_all], must not start with '_'.");
        assert_eq!(named("logs-*,-geo", "").unwrap(), ["logs-1", "logs-2"]);
        assert_eq!(named("*,-zzz", "").unwrap_err(), "no such index [zzz]");
        assert_eq!(named("*,-zzz", "ignore_unavailable").unwrap().len(), 3);
        assert_eq!(named("geo,,", "").unwrap(), ["geo"]);
        assert_eq!(named("l*,-logs-1,", "").unwrap(), ["logs-2"]);
        for empty in [",", ",geo", "geo,,logs"] {
            assert_eq!(named(empty, "").unwrap_err(), "no such index []", "{empty}");
        }
        let said = named("log-1", "").unwrap_err();
        assert!(said.starts_with("no such index [log-1]; did you mean \"logs-1\""), "{said}");
    }

    #[test]
    fn a_closed_index_is_meant_by_who_may_mean_it() {
        let mut state = state();
        let index = state.index("logs-1").unwrap();
        let uuid = index.uuid.clone();
        apply(&mut state, 0, Event::SetClosed { index, closed: true }).unwrap();
        let named = |expression: &str, query: &str, by_default: Closed| {
            indices_with(&state, Some(expression), &Query::parse(query).unwrap(), by_default)
        };
        let some = |names: &[&str]| -> Result<Vec<String>> {
            Ok(names.iter().map(|name| (*name).to_owned()).collect())
        };
        let all = some(&["geo", "logs-1", "logs-2"]);
        for pattern in ["*", "_all", ""] {
            for open in [Closed::Refused, Closed::Named] {
                assert_eq!(named(pattern, "", open), some(&["geo", "logs-2"]), "{pattern}");
            }
            assert_eq!(named(pattern, "", Closed::Expanded), all, "{pattern}");
            assert_eq!(named(pattern, "", Closed::Alone), some(&["logs-1"]), "{pattern}");
            let closed = named(pattern, "expand_wildcards=closed", Closed::Named);
            assert_eq!(closed, some(&["logs-1"]), "{pattern}");
        }
        // By an alias, too, and where patterns stand for it by request.
        let refused: Result<Vec<String>> = Err(Failure::index_closed("logs-1", &uuid));
        for (expression, query) in
            [("logs-1", ""), ("geo,logs-1", ""), ("logs", ""), ("*", "expand_wildcards=all")]
        {
            assert_eq!(named(expression, query, Closed::Refused), refused, "{expression}");
            assert!(
                named(expression, query, Closed::Named).unwrap().contains(&"logs-1".to_owned())
            );
        }
        assert_eq!(named("logs", "ignore_unavailable", Closed::Refused), some(&["logs-2"]));
        let strict = "ignore_unavailable&allow_no_indices=false";
        assert_eq!(named("logs-1", strict, Closed::Refused).unwrap_err().status, 404);
    }

    #[test]
    fn an_alias_is_no_name_for_a_deletion() {
        let named = |expression: &str, query: &str| {
            let query = Query::parse(query).unwrap();
            let by_default = (Closed::Expanded, true);
            let found = indices_themselves(&state(), expression, &query, by_default);
            found.map_err(|failure| failure.reason)
        };
        assert_eq!(named("*", "").unwrap(), ["geo", "logs-1", "logs-2"]);
        assert_eq!(named("_all", "").unwrap().len(), 3);
        assert_eq!(named("log*,geo", "").unwrap(), ["geo", "logs-1", "logs-2"]);
        assert_eq!(named("*,-logs-1", "").unwrap(), ["geo", "logs-2"]);
        // That of an alias stands for none.
        assert_eq!(named("place*", "").unwrap(), Vec::<String>::new());
        let said = named("place*", "allow_no_indices=false").unwrap_err();
        assert!(said.starts_with("no such index [place*]"), "{said}");
        for expression in ["places", "logs-1,places", "*,-places"] {
            let said = named(expression, "").unwrap_err();
            assert!(said.contains("the name [places] is an alias"), "{said}");
        }
    }

    #[test]
    fn refuses_names_that_are_not_looked_up() {
        for (name, why) in [
            ("*:geo", "another cluster, [*:geo], is not supported"),
            ("geo,eu:geo", "another cluster, [eu:geo], is not supported"),
            ("*,-eu:*", "another cluster, [-eu:*], is not supported"),
            ("<geo-{now/d{yyyy|+01:00}}>", "date math in the name of an index"),
        ] {
            let said = named(name, "ignore_unavailable").unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
    }

    #[test]
    fn filters_are_those_of_the_names_that_are_said() {
        let mut state = state();
        let filtered = |filter: Option<&str>| Alias {
            filter: filter.map(|field| format!("{{\"exists\":{{\"field\":\"{field}\"}}}}")),
            ..Alias::default()
        };
        let aliases = Aliases::from([
            ("shop-a".to_owned(), filtered(Some("a"))),
            ("shop-b".to_owned(), filtered(Some("b"))),
            ("whole".to_owned(), filtered(None)),
        ]);
        let made = Made { aliases, ..Made::default() };
        let event = Event::CreateIndex { index: "shop".to_owned(), made };
        apply(&mut state, 0, event).unwrap();
        for (expression, filters_of_shop) in [
            ("shop-a", 1),
            ("shop-b,shop-a", 2),
            ("shop-*", 2),
            ("shop-*,-shop-b,shop-a", 1),
            ("logs,shop-a", 1),
            ("shop", 0),
            ("shop*", 0),
            ("shop-a,whole", 0),
            ("shop-a,shop", 0),
            ("shop-a,*", 0),
            ("", 0),
        ] {
            let names = indices(&state, Some(expression), &Query::default()).unwrap();
            let found = filters(&state, Some(expression), &names).unwrap();
            let count = |query: &query::Query| match &query.kind {
                query::QueryKind::Bool(of) => of.should.len(),
                _ => 1,
            };
            let of_shop = found.get("shop").map_or(0, count);
            assert_eq!((of_shop, found.len()), (filters_of_shop, of_shop.min(1)), "{expression}");
        }
        let said = read_filter("{\"foo\":{}}").unwrap_err().reason;
        assert!(said.contains("failed to parse the [filter] of an alias: unknown query"), "{said}");
    }

    #[test]
    fn names_one_index_for_a_document() {
        let state = state();
        assert_eq!(one_index(&state, "places"), Ok("geo"));
        assert_eq!(write_index(&state, "places"), Ok("geo"));
        assert_eq!(write_index(&state, "new"), Ok("new"));
        let said = one_index(&state, "logs").unwrap_err();
        assert!(said.reason.contains("[logs-1, logs-2]"), "{}", said.reason);
        assert!(write_index(&state, "logs").unwrap_err().reason.contains("is_write_index"));
        assert_eq!(one_index(&state, "nix").unwrap_err().status, 404);
        assert_eq!(check_alias(&state, "places"), Ok(()));
        for name in ["geo", "nix"] {
            let said = check_alias(&state, name).unwrap_err();
            assert!(said.status == 404 && said.reason.ends_with("is not an alias"), "{said}");
        }
    }
}
