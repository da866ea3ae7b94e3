use jiff::{Timestamp, tz::TimeZone};
use proptest::prelude::*;

use super::*;

fn calendar() -> Calendar {
    Calendar { now: "2026-03-15T12:00:00Z".parse::<Timestamp>().unwrap(), zone: TimeZone::UTC }
}

fn parse(text: &str) -> Query {
    Query::parse(text, &calendar()).unwrap()
}

fn refused(text: &str) -> QueryError {
    Query::parse(text, &calendar()).unwrap_err()
}

/// The clauses in a short form: `-` for excluded, `|` between alternatives.
fn shown(query: &Query) -> Vec<String> {
    let atom = |atom: &Atom| {
        let field = if atom.field == TextField::Title { "title:" } else { "" };
        match atom.matching {
            Matching::Stem => format!("{field}{}", atom.text),
            Matching::Exact => format!("{field}={}", atom.text),
            Matching::Phrase => format!("{field}\"{}\"", atom.text),
            Matching::Prefix => format!("{field}{}*", atom.text),
            Matching::Fuzzy(distance) => format!("{field}{}~{distance}", atom.text),
        }
    };
    let clause = |clause: &Clause| {
        let sign = if clause.excluded { "-" } else { "" };
        format!("{sign}{}", clause.any.iter().map(atom).collect::<Vec<_>>().join("|"))
    };
    query.clauses.iter().map(clause).collect()
}

#[test]
fn words_phrases_and_signs_are_read() {
    assert_eq!(shown(&parse("bee  hive")), ["bee", "hive"]);
    assert_eq!(shown(&parse("\"bee hive\" -wasp +bees")), ["\"bee hive\"", "-wasp", "=bees"]);
    assert_eq!(shown(&parse("bee OR wasp honey")), ["bee|wasp", "honey"]);
    assert_eq!(shown(&parse("-bee OR -wasp honey")), ["-bee|wasp", "honey"]);
    assert_eq!(shown(&parse("hon* honny~ swarn~2 a~9")), ["hon*", "honny~1", "swarn~2", "a~9"]);
    assert_eq!(shown(&parse("title:hive title:\"the hive\"")), ["title:hive", "title:\"the hive\""]);
    assert_eq!(
        shown(&parse("„die Bienen” «les abeilles» 「蜜蜂」")),
        ["\"die Bienen\"", "\"les abeilles\"", "\"蜜蜂\""]
    );
    assert_eq!(shown(&parse("well-known C++ --dry-run")), ["well-known", "C++", "--dry-run"]);
    assert_eq!(shown(&parse("OR bee")), ["OR", "bee"]);
    assert_eq!(shown(&parse("https://example.org 10:30 a:b")), ["https://example.org", "10:30", "a:b"]);
}

#[test]
fn what_is_still_being_typed_is_no_error() {
    assert_eq!(shown(&parse("\"bee hi")), ["\"bee hi\""]);
    assert_eq!(shown(&parse("bee OR ")), ["bee"]);
    for text in ["", "   ", "platform:", "before:", "-", "\"", "title:", "... ,"] {
        assert!(parse(text).is_empty(), "{text:?}");
    }
    assert_eq!(shown(&parse("bee platform:")), ["bee"]);
}

#[test]
fn filters_have_values() {
    let query = parse(
        "platform:Claude,chatgpt -role:user has:code tag:\"Bee Keeping\" in:messages conversation:Ab-1",
    );
    let filters: Vec<_> = query
        .filters
        .iter()
        .map(|filter| (filter.excluded, filter.field.word(), filter.values.join("|")))
        .collect();
    let expected = [
        (false, "platform", "claude|chatgpt"),
        (true, "role", "user"),
        (false, "has", "code"),
        (false, "tag", "bee keeping"),
        (false, "in", "messages"),
        (false, "conversation", "Ab-1"),
    ];
    assert_eq!(filters, expected.map(|(excluded, field, values)| (excluded, field, values.to_owned())));
}

fn day(text: &str) -> i64 {
    format!("{text}T00:00:00Z").parse::<Timestamp>().unwrap().as_microsecond()
}

#[test]
fn dates_are_days_months_and_years() {
    for (text, range) in [
        ("after:2024 before:2025-06", day("2025-01-01")..day("2025-06-01")),
        ("on:2025", day("2025-01-01")..day("2026-01-01")),
        ("on:2024-02", day("2024-02-01")..day("2024-03-01")),
        ("on:2025-06-15", day("2025-06-15")..day("2025-06-16")),
        ("on:yesterday", day("2026-03-14")..day("2026-03-15")),
        ("after:30d", day("2026-02-13")..i64::MAX),
        ("before:1y", i64::MIN..day("2025-03-15")),
        ("after:2025-06-14 on:2025-06", day("2025-06-15")..day("2025-07-01")),
    ] {
        assert_eq!(parse(text).time, range, "{text}");
    }
}

#[test]
fn validity_is_a_filter_of_its_own() {
    let query = parse("bee valid:2024-06 -expired:2025 valid:now");
    let now = calendar().now.as_microsecond();
    let expected = [
        (false, Validity::Valid, day("2024-06-01")..day("2024-07-01")),
        (true, Validity::Expired, day("2025-01-01")..day("2026-01-01")),
        (false, Validity::Valid, now..now + 1),
    ];
    let found = query.validity.iter().map(|one| (one.excluded, one.validity, one.at.clone()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(query.time, ALL_TIMES);
    assert!(parse("valid:").is_empty() && !parse("valid:2024").is_empty());
}

#[test]
fn errors_point_at_the_place() {
    for (text, at, message) in [
        ("bee before:soon", 11..15, "\"soon\" is no date"),
        ("on:2025-13", 3..10, "is no date"),
        ("on:2025-02-30 x", 3..13, "is no date"),
        ("bee has:wings", 8..13, "has: takes attachment, code"),
        ("role:user,robot", 10..15, "not \"robot\""),
        ("bee platfrom:claude", 4..12, "did you mean platform:?"),
        ("-bee -platform:claude", 0..21, "nothing to look for"),
        ("after:2025 before:2024", 0..22, "no time"),
        ("bee valid:soon", 10..14, "\"soon\" is no date"),
        ("bee vaild:2024", 4..9, "did you mean valid:?"),
        ("-expired:2024", 0..13, "nothing to look for"),
    ] {
        let error = refused(text);
        assert_eq!(error.at, at, "{text}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(refused("bee before:soon").mark("bee before:soon"), "bee before:soon\n           ^^^^");
    assert_eq!(refused(&"x".repeat(10_000_000)).problem, QueryProblem::TooLong);
    assert_eq!(refused(&"x ".repeat(100)).problem, QueryProblem::TooManyParts);
    assert_eq!(refused(&"a* OR ".repeat(100)).problem, QueryProblem::TooManyParts, "alternatives count");
    assert_eq!(refused(&"tion-".repeat(600)).problem, QueryProblem::TooManyWords);
    assert_eq!(refused(&"蜜".repeat(700)).problem, QueryProblem::TooManyWords);
    assert!(Query::parse(&format!("\"{}\"", "bee ".repeat(500)), &calendar()).is_ok());
}

proptest! {
    #[test]
    fn every_text_is_read_or_refused_in_place(text in "([a-z]{0,4}[ :\"+*~-]{0,3}|\\PC{0,5}|before:|valid:|platform:|OR ){0,12}") {
        match Query::parse(&text, &calendar()) {
            Ok(query) => for atom in query.clauses.iter().flat_map(|clause| &clause.any) {
                prop_assert!(text.get(atom.at.clone()).is_some_and(|part| part.contains(&atom.text)));
            },
            Err(error) => {
                prop_assert!(text.get(error.at.clone()).is_some(), "{:?}", error);
                prop_assert!(error.mark(&text).contains('^'));
            }
        }
    }
}
