//! The quality of the search, measured: queries in six languages over messages that were written for known topics.
//!
//! The search has to be better than SQLite's FTS5 and tantivy as it comes, in each language.

#![expect(clippy::unwrap_used, reason = "tests")]

mod chinese;
mod corpus;
mod engines;
mod english;
mod figures;
mod german;
mod japanese;
mod judged;
mod portuguese;
mod spanish;
mod tokens;

use std::{fs, path::Path};

use self::{
    engines::{Engine, Fts5, Satchel, Tantivy},
    figures::Run,
    judged::Language,
};

const LANGUAGES: [&Language; 6] = [
    &english::ENGLISH,
    &portuguese::PORTUGUESE,
    &spanish::SPANISH,
    &german::GERMAN,
    &chinese::CHINESE,
    &japanese::JAPANESE,
];
const MIN_MESSAGES: usize = 5_000;
const MIN_QUERIES: usize = 200;
const MIN_QUERIES_PER_LANGUAGE: usize = 30;

#[test]
fn the_judged_set_is_large_and_each_query_means_something_in_it() {
    let messages = corpus::messages(&LANGUAGES);
    assert!(messages.len() >= MIN_MESSAGES, "{}", messages.len());
    let queries: usize = LANGUAGES.iter().map(|language| language.queries.len()).sum();
    assert!(queries >= MIN_QUERIES, "{queries}");
    for language in LANGUAGES {
        assert!(language.queries.len() >= MIN_QUERIES_PER_LANGUAGE, "{}", language.code);
        for (_, text, wanted) in language.queries {
            let relevant = messages.iter().filter(|message| message.relevance(language, wanted) == 2).count();
            assert!(relevant > 0, "{} {text:?}: nothing is about {wanted}", language.code);
        }
    }
    let again = corpus::messages(&LANGUAGES);
    assert!(messages.iter().zip(&again).all(|(one, other)| one.text == other.text), "it is always the same");
}

#[test]
fn the_search_is_better_than_others_in_each_language() {
    let messages = corpus::messages(&LANGUAGES);
    let ours = Satchel::new(&messages, true);
    let strict = Satchel::new(&messages, false);
    let peers: [&dyn Engine; 3] =
        [&Fts5::unicode61(&messages), &Fts5::trigram(&messages), &Tantivy::new(&messages)];
    let mut runs = Vec::new();
    for engine in [&ours as &dyn Engine, &strict].into_iter().chain(peers) {
        runs.extend(LANGUAGES.iter().map(|language| Run::new(engine, language, &messages)));
    }
    let report = figures::report(&runs);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("search-quality.txt");
    fs::write(path, &report).unwrap();
    let (first, others) = runs.split_at(LANGUAGES.len());
    for run in first {
        for peer in peers {
            let other =
                others.iter().find(|other| other.language == run.language && other.engine == peer.name());
            let (ours, theirs) = (run.mean(), other.unwrap().mean());
            let better = |ours: f64, theirs: f64| ours > theirs || (ours >= 1.0 && theirs >= 1.0);
            assert!(
                better(ours.ndcg, theirs.ndcg) && better(ours.success, theirs.success),
                "{} in {}: {theirs:?}, ours {ours:?}\n\n{report}",
                peer.name(),
                run.language
            );
        }
    }
}
