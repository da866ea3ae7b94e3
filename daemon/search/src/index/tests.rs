mod sealed;

use jiff::{Timestamp, tz::TimeZone};

use super::*;
use crate::query::{Calendar, Query};

const DAY: i64 = 86_400_000_000;

fn query(text: &str) -> Query {
    Query::parse(text, &Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC }).unwrap()
}

fn message<'a>(id: &'a str, text: &'a str) -> Document<'a> {
    Document { role: Some("user"), ..Document::new(DocumentKind::Message, id, "chatgpt", text) }
}

/// An index of messages with these texts; their ids are their numbers.
fn index(texts: &[&str]) -> SearchIndex {
    let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
    for (number, text) in texts.iter().enumerate() {
        let id = number.to_string();
        index.replace(&OwnerId::Conversation(&format!("conversation {id}")), [message(&id, text)]).unwrap();
    }
    index.commit(7).unwrap();
    index
}

fn options() -> SearchOptions {
    SearchOptions { limit: 10, ..SearchOptions::default() }
}

fn ids(index: &SearchIndex, text: &str) -> Vec<String> {
    let page = index.snapshot().search(&query(text), &options()).unwrap();
    assert_eq!(page.total, page.hits.len());
    page.hits.into_iter().map(|hit| hit.id).collect()
}

fn sorted(index: &SearchIndex, text: &str) -> Vec<String> {
    let mut ids = ids(index, text);
    ids.sort();
    ids
}

#[test]
fn words_are_found_in_any_form_and_the_same_form_comes_first() {
    let index = index(&[
        "I keep bees on the balcony of my house",
        "one bee was on the flower in the garden",
        "wasps",
    ]);
    assert_eq!(ids(&index, "bee"), ["1", "0"]);
    assert_eq!(ids(&index, "bees"), ["0", "1"]);
    assert_eq!(ids(&index, "+bee"), ["1"]);
    assert_eq!(sorted(&index, "bee OR wasps"), ["0", "1", "2"]);
    assert_eq!(ids(&index, "bee -flower"), ["0"]);
    assert_eq!(ids(&index, "bee flower"), ["1"]);
    assert!(ids(&index, "beekeeper").is_empty());
}

#[test]
fn phrases_prefixes_and_typos_are_found() {
    let index = index(&[
        "the queen bee lays eggs",
        "a bee follows the queen",
        "honeycomb",
        "我喜欢蜜蜂和蜂蜜",
        "getUserName()",
    ]);
    assert_eq!(ids(&index, "\"queen bee\""), ["0"]);
    assert_eq!(ids(&index, "\"bee queen\"").len(), 0);
    assert_eq!(ids(&index, "honey*"), ["2"]);
    assert_eq!(ids(&index, "honycomb~"), ["2"]);
    assert_eq!(ids(&index, "蜜蜂"), ["3"]);
    assert_eq!(ids(&index, "喜欢蜜蜂"), ["3"]);
    assert_eq!(ids(&index, "蜜"), ["3"]);
    assert!(ids(&index, "蜂喜").is_empty());
    assert_eq!(ids(&index, "username").len(), 0);
    assert_eq!(ids(&index, "getusername"), ["4"]);
    assert_eq!(ids(&index, "user name"), ["4"]);
    assert_eq!(ids(&index, "\"user name\""), ["4"]);
    assert_eq!(ids(&index, "getUserName"), ["4"]);
}

#[test]
fn filters_restrict_and_facets_count() {
    let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
    let documents = [
        Document { time: Some(DAY), has: vec!["attachment"], ..message("a", "bees") },
        Document { time: Some(500 * DAY), hidden: true, ..message("b", "bees") },
        Document {
            role: Some("assistant"),
            model: Some("GPT-5".into()),
            tags: vec!["Garden".into()],
            ..message("c", "bees")
        },
        Document::new(DocumentKind::Title, "one", "chatgpt", "About bees"),
    ];
    index.replace(&OwnerId::Conversation("one"), documents).unwrap();
    let memory = Document::new(DocumentKind::Memory, "m", "claude", "Keeps bees");
    index
        .replace(
            &OwnerId::Memory("m"),
            [Document { memory_type: Some("fact"), status: Some("active"), ..memory }],
        )
        .unwrap();
    index.commit(1).unwrap();
    for (text, expected) in [
        ("bees", &["a", "c", "m", "one"][..]),
        ("bees platform:claude", &["m"]),
        ("bees -platform:claude", &["a", "c", "one"]),
        ("bees in:messages", &["a", "c"]),
        ("bees in:memories type:fact,goal", &["m"]),
        ("bees role:user", &["a"]),
        ("bees model:gpt-5", &["c"]),
        ("bees tag:garden", &["c"]),
        ("bees has:attachment", &["a"]),
        ("title:bees", &["one"]),
        ("bees conversation:one", &["a", "c", "one"]),
        ("bees before:1971", &["a"]),
        ("after:1971", &[]),
        ("in:titles", &["one"]),
    ] {
        assert_eq!(sorted(&index, text), expected, "{text}");
    }
    let snapshot = index.snapshot();
    let facets =
        snapshot.facets(&query("bees"), &options(), &[FacetField::Platform, FacetField::Role]).unwrap();
    assert_eq!(facets[0], [("chatgpt".to_owned(), 3), ("claude".to_owned(), 1)]);
    assert_eq!(facets[1], [("assistant".to_owned(), 1), ("user".to_owned(), 1)]);
    let hidden = SearchOptions { hidden: true, ..options() };
    assert_eq!(snapshot.search(&query("bees"), &hidden).unwrap().total, 5);
    let hit = &snapshot.search(&query("in:memories"), &options()).unwrap().hits[0];
    assert_eq!((hit.kind, hit.id.as_str(), &hit.conversation_id), (DocumentKind::Memory, "m", &None));
}

#[test]
fn memories_are_found_by_their_validity() {
    let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
    for (id, valid_from, valid_until) in [
        ("always", None, None),
        ("once", Some(10 * DAY), Some(20 * DAY)),
        ("since", Some(15 * DAY), None),
        ("until", None, Some(15 * DAY)),
    ] {
        let memory = Document::new(DocumentKind::Memory, id, "claude", "bees");
        index.replace(&OwnerId::Memory(id), [Document { valid_from, valid_until, ..memory }]).unwrap();
    }
    index.replace(&OwnerId::Conversation("c"), [message("message", "bees")]).unwrap();
    index.commit(1).unwrap();
    for (text, expected) in [
        ("valid:1970-01-10", &["always", "until"][..]),
        ("valid:1970-01-11", &["always", "once", "until"]),
        // A memory is not valid any more when its last day begins.
        ("valid:1970-01-16", &["always", "once", "since"]),
        ("valid:1970", &["always", "once", "since", "until"]),
        ("bees valid:1971", &["always", "since"]),
        ("expired:1970-01-15", &[]),
        ("expired:1970-01-16", &["until"]),
        ("bees expired:1971", &["once", "until"]),
        ("bees -expired:1971", &["always", "message", "since"]),
        ("bees -valid:1971", &["message", "once", "until"]),
        ("wasps expired:1971", &[]),
    ] {
        assert_eq!(sorted(&index, text), expected, "{text}");
    }
}

#[test]
fn callers_find_only_what_they_may_see() {
    let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
    let memory = |id: &'static str, tag: &'static str, reader: &str| {
        let memory = Document::new(DocumentKind::Memory, id, "chatgpt", "Secretword");
        Document {
            memory_type: Some("fact"),
            tags: vec![tag.into()],
            readers: vec![reader.to_owned()],
            ..memory
        }
    };
    for document in
        [memory("a", "work", "public"), memory("b", "health", "public"), memory("c", "work", "shared:other")]
    {
        let id = document.id.to_string();
        index.replace(&OwnerId::Memory(&id), [document]).unwrap();
    }
    index.replace(&OwnerId::Conversation("d"), [message("d", "Secretword")]).unwrap();
    index.commit(1).unwrap();
    let kinds = vec![DocumentKind::Memory, DocumentKind::Message, DocumentKind::Title];
    let all = Restriction { kinds: kinds.clone(), ..Restriction::default() };
    let readers = Some(vec!["public".to_owned(), "shared:me".to_owned()]);
    let word = |word: &str| vec![word.to_owned()];
    for (restriction, expected) in [
        (all.clone(), &["a", "b", "c", "d"][..]),
        (Restriction { readers, ..all.clone() }, &["a", "b", "d"]),
        (Restriction { deny_tags: word("health"), ..all.clone() }, &["a", "c", "d"]),
        (Restriction { tags: word("health"), ..all.clone() }, &["b"]),
        (Restriction { platforms: word("claude"), ..all.clone() }, &[]),
        (Restriction { types: word("goal"), ..all.clone() }, &["d"]),
        (Restriction { kinds: vec![DocumentKind::Memory], ..all }, &["a", "b", "c"]),
        (Restriction::default(), &[]),
    ] {
        let options = SearchOptions { restriction: Some(restriction.clone()), ..options() };
        let page = index.snapshot().search(&query("secretword"), &options).unwrap();
        let mut ids: Vec<_> = page.hits.into_iter().map(|hit| hit.id).collect();
        ids.sort();
        assert_eq!(
            (ids.len(), &ids[..]),
            (page.total, &expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..])
        );
        let suggested = index.snapshot().suggest(&query("secretwort"), &options).unwrap();
        assert_eq!(suggested.is_empty(), expected.is_empty(), "{restriction:?}");
        let facets =
            index.snapshot().facets(&query("secretword"), &options, &[FacetField::Platform]).unwrap();
        let counted: u64 = facets[0].iter().map(|(_, count)| count).sum();
        assert_eq!(counted, expected.len() as u64, "{restriction:?}");
    }
}

#[test]
fn words_without_hits_have_suggestions() {
    let index = index(&["bees make honey", "bees and honeycomb"]);
    let suggest = |text: &str| {
        let suggestions = index.snapshot().suggest(&query(text), &options()).unwrap();
        suggestions.into_iter().map(|one| (one.at, one.word)).collect::<Vec<_>>()
    };
    assert_eq!(suggest("bees hony"), [(5..9, "honey".to_owned())]);
    assert_eq!(suggest("honycobm"), [(0..8, "honeycomb".to_owned())]);
    assert!(suggest("bees honey").is_empty() && suggest("wasp").is_empty() && suggest("be").is_empty());
}

#[test]
fn newer_documents_come_first_among_equals() {
    let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
    for (id, days) in [("old", 1), ("new", 900), ("middle", 700)] {
        let document = Document { time: Some(days * DAY), ..message(id, "bees") };
        index.replace(&OwnerId::Conversation(id), [document]).unwrap();
    }
    index.commit(1).unwrap();
    let options = SearchOptions { now: 1_000 * DAY, ..options() };
    let page = index.snapshot().search(&query("bees"), &options).unwrap();
    assert_eq!(page.hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["new", "middle", "old"]);
    let second = SearchOptions { offset: 1, limit: 1, ..options };
    assert_eq!(index.snapshot().search(&query("bees"), &second).unwrap().hits[0].id, "middle");
}

#[test]
fn an_owner_is_replaced_as_a_whole_and_snapshots_stay() {
    let index = index(&["bees", "wasps"]);
    let before = index.snapshot();
    index.replace(&OwnerId::Conversation("conversation 0"), [message("9", "ants")]).unwrap();
    index.replace(&OwnerId::Conversation("conversation 1"), []).unwrap();
    index.commit(8).unwrap();
    assert_eq!((before.revision(), index.snapshot().revision()), (7, 8));
    assert_eq!(before.search(&query("bees OR wasps"), &options()).unwrap().total, 2);
    assert_eq!(ids(&index, "bees OR wasps").len(), 0);
    assert_eq!(ids(&index, "ants"), ["9"]);
}

#[test]
fn an_index_on_the_disk_is_opened_again_or_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let location = IndexLocation::Folder(path.clone());
    let index = SearchIndex::open(&location, "store").unwrap();
    assert_eq!(index.snapshot().revision(), 0);
    index
        .replace(&OwnerId::Memory("m"), [Document::new(DocumentKind::Memory, "m", "x", "Canaryword")])
        .unwrap();
    index.commit(3).unwrap();
    index.rest().unwrap();
    drop(index);
    let index = SearchIndex::open(&location, "store").unwrap();
    assert_eq!((index.snapshot().revision(), ids(&index, "canaryword").len()), (3, 1));
    // What was removed is in no file after it is compacted.
    index.replace(&OwnerId::Memory("m"), []).unwrap();
    index.replace(&OwnerId::Memory("n"), [Document::new(DocumentKind::Memory, "n", "x", "Other")]).unwrap();
    index.commit(4).unwrap();
    index.compact().unwrap();
    index.rest().unwrap();
    drop(index);
    for entry in fs::read_dir(&path).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"canaryword"));
    }
    for damage in [b"".as_slice(), b"{}", b"not json"] {
        fs::write(path.join("meta.json"), damage).unwrap();
        let index = SearchIndex::open(&location, "store").unwrap();
        assert_eq!((index.snapshot().revision(), index.snapshot().documents()), (0, 0));
    }
}

#[test]
fn phrases_are_excluded() {
    let texts: Vec<String> = (0..40)
        .map(|n| if n % 3 == 2 { "bees and a queen bee".to_owned() } else { format!("bee queen bees {n}") })
        .collect();
    let index = index(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let page = index.snapshot().search(&query("bees -\"queen bee\""), &options()).unwrap();
    assert_eq!(page.total, 27);
}

/// Texts in several scripts, and with characters that change their length when they are folded.
const FUZZED_TEXTS: [&str; 5] = [
    "bees sleep in the HİVE, ﬁne",
    "getUserName() = \"naïve\" ```code```",
    "我喜欢蜜蜂 and bees 🐝🐝",
    "ação do coração; Straße",
    "",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    /// No query makes the index fail, and the parts that it marks are parts of the text.
    #[test]
    fn every_query_is_answered(
        text in "([a-zé蜜蜂İß]{0,4}[ :\"+*~-]{0,3}|\\PC{0,5}|OR |title:|valid:1970 |-expired:now |in:messages |\"[a-z]{0,3} [a-z]{0,3}){0,10}",
    ) {
        thread_local! {
            static INDEX: SearchIndex = index(&FUZZED_TEXTS);
        }
        let calendar = Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC };
        if let Ok(query) = Query::parse(&text, &calendar) {
            let snapshot = INDEX.with(SearchIndex::snapshot);
            let RelaxedPage { page, strict_total, relaxed } = snapshot.search_relaxed(&query, &options()).unwrap();
            proptest::prop_assert!(page.hits.len() <= page.total && strict_total <= page.total);
            for hit in &page.hits {
                snapshot.explain(relaxed.as_ref().unwrap_or(&query), &options(), hit).unwrap();
            }
            snapshot.suggest(&query, &options()).unwrap();
            snapshot.facets(&query, &options(), &[FacetField::Month, FacetField::Kind]).unwrap();
            for stored in FUZZED_TEXTS {
                let found = snippet(stored, &query, 20);
                proptest::prop_assert!(stored.contains(&found.text));
                proptest::prop_assert!(found.marks.iter().all(|mark| found.text.get(mark.clone()).is_some()));
            }
        }
    }
}
