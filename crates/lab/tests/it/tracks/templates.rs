//! What Jinja makes of a track's files, and where its mistakes are told.

use lab::track::{Params, TrackOptions};

use super::{embedded, opened_beside, says};

#[test]
fn a_later_version_and_a_division_by_zero_are_refused_with_their_lines() {
    let text = |version: &str, about: &str| {
        format!(
            "{{\n\"version\": {version},\n\"description\": \"{about}\",\n\
             \"schedule\": [ {{ \"operation\": \"refresh\" }} ] }}"
        )
    };
    opened_beside(&[], &text("2", "{{ 1/2 }}"), &embedded()).unwrap();
    let later = opened_beside(&[], &text("3", ""), &embedded());
    says(later, &["track.json:2:", "version is a whole number from 1 to 2, found 3"]);
    let divided = opened_beside(&[], &text("2", "{{ 1/0 }}"), &embedded());
    says(divided, &["track.json:3:", "divided by zero"]);
}

#[test]
fn what_jinja_may_take_has_bounds() {
    for (expression, said) in [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "steps"),
        ("{% for i in range(9) %}{{ 'x' * 10000000 }}{% endfor %}", "more than 64 MB of text"),
        ("{{ range(10 ** 9) | length }}", "range has too many elements"),
    ] {
        let text = format!(
            "{{\n\"description\": \"{expression}\",\n\"schedule\": [ {{ \"operation\": \"refresh\" }} ] }}"
        );
        says(opened_beside(&[], &text, &embedded()), &["track.json", said]);
    }
}

#[test]
fn filters_are_those_of_python() {
    let rendered = |expression: &str| {
        let text = format!(
            "{{ \"description\": \"{{{{ {expression} }}}}\", \"schedule\": [ {{ \"operation\": \"refresh\" }} ] }}"
        );
        opened_beside(&[], &text, &embedded()).unwrap().about
    };
    for (expression, said) in [
        ("'abc' | int", "0"),
        ("'abc' | int(7)", "7"),
        ("'abc' | int(default=7)", "7"),
        ("' 1_000 ' | int", "1000"),
        ("'3.9' | int", "3"),
        ("none | int(4)", "4"),
        ("'abc' | float(2.5)", "2.5"),
        ("'abc' | float | int", "0"),
        ("7 | round", "7"),
        ("2.5 | round | int", "2"),
        ("7.5 | round(0, 'floor') | int", "7"),
        ("7.2 | round(method='ceil') | int", "8"),
        ("0.125 | round(2)", "0.12"),
        ("[3] | random", "3"),
        // The first ends a second before a day does.
        (
            "1582934399.5 | get_start_date ~ ' ' ~ 1582934400 | get_start_date",
            "2020-02-28 2020-02-29",
        ),
        // The first and the last year of four digits, and the one before the first.
        ("(-62167219200) | get_start_date", "0000-01-01"),
        ("(-62167219201) | get_start_date", "-0001-12-31"),
        ("253402300799 | get_start_date", "9999-12-31"),
        (
            "'2020-02-28' | get_end_date ~ ' ' ~ '28-02-2020' | get_end_date(2)",
            "2020-02-29 2020-03-01",
        ),
        ("0.5 | get_end_date(duration_days=31)", "1970-02-01"),
        (
            "'28-02-2020' | days_ago('2020-03-01') ~ ' ' ~ '28-02-2020' | days_ago(1582934399.5)",
            "2 0",
        ),
        ("'y' if now is number and '15-05-1998' | days_ago(now) > 10000", "y"),
        ("nothing | default(5)", "5"),
        ("'' | default('x', true)", "x"),
        ("nothing | default(default_value=5) ~ (nothing | d('a', boolean=true))", "5a"),
        ("'' | default(boolean=true, default_value='x')", "x"),
        ("'y' if nothing | default(default_value=none) is none", "y"),
        ("('a' ~ range(3) | join('-')) | upper | replace('-', '')", "A012"),
        ("'y' if 5 is number and nothing is not defined", "y"),
    ] {
        assert_eq!(rendered(expression), said, "{expression}");
    }
    for (wrong, said) in [
        ("1.5 | round(0, 'up')", "common, ceil and floor"),
        ("nothing | default(otherwise=5)", "otherwise"),
        ("'1998' | days_ago(now)", "15-05-1998 or 1998-05-15"),
    ] {
        let text = format!("{{\n\"version\": {{{{ {wrong} }}}} }}");
        says(opened_beside(&[], &text, &embedded()), &["track.json:2:", said]);
    }
}

#[test]
fn a_mistake_in_the_first_line_of_a_part_or_behind_it_is_told_there() {
    let track = |more: &str| {
        format!(
            "{{ \"version\": 2,\n\"operations\": [ {{{{ rally.collect(parts=\"o*.json\") }}}} ]{more},\n\
             \"schedule\": [ {{ \"operation\": \"rest\" }} ] }}"
        )
    };
    let part = r#"{ "name": "rest", "operation-type": "sleep", "duration": 0, "wrong": 1 }"#;
    for part in [part.to_owned(), format!("{part}\n")] {
        let files = [("o.json", part.as_str())];
        says(opened_beside(&files, &track(""), &embedded()), &["o.json:1:", "\"wrong\""]);
        let right = part.replace(", \"wrong\": 1", "");
        let files = [("o.json", right.as_str())];
        let more = track(", \"odd\": 1");
        says(opened_beside(&files, &more, &embedded()), &["track.json:2:", "\"odd\""]);
        opened_beside(&files, &track(""), &embedded()).unwrap();
    }
    let files = [("o.json", "{\n\"name\": \"{{ 1/0 }}\" }")];
    says(opened_beside(&files, &track(""), &embedded()), &["o.json:2:", "Jinja"]);
}

#[test]
fn a_given_parameter_that_breaks_the_json_is_named() {
    let params = Params::read("bulk_size:abc").unwrap();
    let text = "{\n\"version\": {{ bulk_size }} }";
    let opened = opened_beside(&[], text, &TrackOptions { params, ..embedded() });
    says(opened, &["track.json:2:", "no JSON", "(with bulk_size = abc)"]);
}

#[test]
fn a_name_that_nothing_defines_is_told_where_it_breaks_the_json() {
    let text = "{\n\"description\": \"{{ about }}\",\n\"version\": {{ given }}{{ bulk_size }}\n}";
    let with = |params: &str| {
        let params = Params::read(params).unwrap();
        opened_beside(&[], text, &TrackOptions { params, ..embedded() })
    };
    let undefined = "bulk_size is not defined";
    says(with("given:"), &["track.json:3:", undefined, "--track-params bulk_size:VALUE"]);
    // Beside one whose lack the JSON bears.
    let text = "{ \"description\": \"{{ about }}\", \"version\": {{ bulk_size }} }";
    says(opened_beside(&[], text, &embedded()), &["track.json:1:", undefined]);
    // Not where another thing breaks it, and nothing need be written for a name.
    let said = with("given:2,bulk_size:abc").unwrap_err().to_string();
    assert!(said.contains("track.json:3:") && !said.contains("not defined"), "{said}");
    let text = "{ {{ more }}\n\"version\": 2,\n}";
    let said = opened_beside(&[], text, &embedded()).unwrap_err().to_string();
    assert!(said.contains("track.json:3:") && !said.contains("not defined"), "{said}");
}
