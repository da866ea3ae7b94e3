use jiff::{Timestamp, tz::TimeZone};

use super::*;
use crate::{
    index::{Document, DocumentKind, IndexLocation, OwnerId, Restriction, SearchIndex, snippet},
    query::Calendar,
};

const TEXTS: [&str; 8] = [
    "How do I keep a swarm of bees from leaving the hive in spring?",
    "The thermostat of the heating is broken",
    "Bees make honey, and honey crystallizes",
    "Die Steuererklärung ist fertig, das Finanzamt hat sie",
    "我家的蜜蜂分蜂了两次",
    "The heating bill of spring",
    "Schöne Grüße",
    "call parse_config_file(path)",
];

fn query(text: &str) -> Query {
    Query::parse(text, &Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC }).unwrap()
}

fn index(texts: &[&str]) -> SearchIndex {
    let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
    for (number, text) in texts.iter().enumerate() {
        let id = number.to_string();
        let message = Document::new(DocumentKind::Message, id.as_str(), "chatgpt", *text);
        index.replace(&OwnerId::Conversation(&id), [message]).unwrap();
    }
    index.commit(1).unwrap();
    index
}

fn options() -> SearchOptions {
    SearchOptions { limit: 10, ..SearchOptions::default() }
}

fn found(index: &SearchIndex, text: &str) -> (Vec<String>, usize) {
    let found = index.snapshot().search_relaxed(&query(text), &options()).unwrap();
    assert_eq!(found.page.total, found.page.hits.len());
    (found.page.hits.into_iter().map(|hit| hit.id).collect(), found.strict_total)
}

fn ids(index: &SearchIndex, text: &str) -> Vec<String> {
    found(index, text).0
}

#[test]
fn some_of_the_words_are_enough() {
    let index = index(&TEXTS);
    assert_eq!(found(&index, "how can one stop bees from swarming"), (vec!["0".into(), "2".into()], 0));
    assert_eq!(ids(&index, "怎么防止蜜蜂分蜂"), ["4"]);
    assert!(ids(&index, "how does one").len() < 2, "words that say little are no reason to find a text");
}

#[test]
fn words_are_found_by_similar_ones() {
    let index = index(&TEXTS);
    for (text, expected) in [
        ("thermost", "1"),
        ("termostat", "1"),
        ("honney", "2"),
        ("Erklärung", "3"),
        ("gruesse", "6"),
        ("parse_conf", "7"),
    ] {
        assert_eq!(found(&index, text), (vec![expected.to_owned()], 0), "{text}");
    }
    assert!(ids(&index, "elephant").is_empty());
}

#[test]
fn strict_hits_come_first_on_every_page() {
    let index = index(&TEXTS);
    let (all, strict) = found(&index, "heating spring");
    assert_eq!((&all[0], strict), (&"5".to_owned(), 1));
    assert_eq!(all.len(), 3);
    for offset in 0..4 {
        let options = SearchOptions { offset, limit: 1, ..options() };
        let page = index.snapshot().search_relaxed(&query("heating spring"), &options).unwrap().page;
        assert_eq!(page.total, 3);
        assert_eq!(page.hits.first().map(|hit| &hit.id), all.get(offset));
    }
}

#[test]
fn enough_strict_hits_are_not_relaxed() {
    let texts: Vec<String> = (0..12).map(|number| format!("bees {number}")).collect();
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.push("beeswax");
    let found = index(&texts).snapshot().search_relaxed(&query("bees"), &options()).unwrap();
    assert_eq!((found.page.total, found.strict_total, found.relaxed), (12, 12, None));
}

#[test]
fn signs_and_filters_stay_strict() {
    let index = index(&TEXTS);
    for text in [
        "\"honey bees\"",
        "+bee +honny",
        "+swarming",
        "thermos* +bill",
        "title:thermost",
        "bees honny -honey -hive",
        "bees thermost platform:claude",
        "termostat OR hony",
    ] {
        assert!(ids(&index, text).is_empty(), "{text}");
    }
    assert_eq!(ids(&index, "+honey swarming make"), ["2"]);
    assert_eq!(ids(&index, "bees leaving winter -honey"), ["0"]);
}

#[test]
fn similar_words_are_marked() {
    let index = index(&TEXTS);
    let found = index.snapshot().search_relaxed(&query("the termostat"), &options()).unwrap();
    let marked = snippet(TEXTS[1], &found.relaxed.unwrap(), 100);
    assert_eq!(
        marked.marks.iter().map(|mark| &marked.text[mark.clone()]).collect::<Vec<_>>(),
        ["thermostat"]
    );
}

#[test]
fn a_relaxed_search_stays_within_what_the_caller_may_see() {
    let index = index(&TEXTS);
    let options = SearchOptions { restriction: Some(Restriction::default()), ..options() };
    let found = index.snapshot().search_relaxed(&query("bees termostat"), &options).unwrap();
    assert_eq!((found.page.total, found.strict_total), (0, 0));
}

/// Neither a word that only others have nor one that is similar to it changes what a restricted caller finds.
#[test]
fn a_relaxed_search_does_not_tell_which_words_others_have() {
    let platforms = ["claude", "claude", "claude", "chatgpt"];
    let counts = |hidden: &str| {
        let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
        let texts = ["bees in spring", "honey in summer", "hives in autumn", hidden];
        for ((number, text), platform) in texts.iter().enumerate().zip(platforms) {
            let id = number.to_string();
            let message = Document::new(DocumentKind::Message, id.as_str(), platform, *text);
            index.replace(&OwnerId::Conversation(&id), [message]).unwrap();
        }
        index.commit(1).unwrap();
        let restriction = Restriction {
            kinds: vec![DocumentKind::Message],
            platforms: vec!["claude".to_owned()],
            ..Restriction::default()
        };
        let options = SearchOptions { restriction: Some(restriction), ..options() };
        ["bees honey hives divorce", "bees divorc", "divorcce"].map(|text| {
            let found = index.snapshot().search_relaxed(&query(text), &options).unwrap();
            let ids: Vec<String> = found.page.hits.into_iter().map(|hit| hit.id).collect();
            (ids.len(), found.page.total, found.strict_total)
        })
    };
    let without = counts("nothing of this");
    assert!(without[1].1 > 0, "something is found at all");
    assert_eq!(counts("the divorce lawyer, a divorce"), without);
}
