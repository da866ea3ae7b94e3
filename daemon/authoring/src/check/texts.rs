//! Checks that no text is invented: every word that is emitted as the text of a person or a model is in the input.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle,
    sqlite::{self, Database},
};
use satchel_pam::{
    conversation::Content,
    record::{Claim, ConversationRecord, Edit, Evidence, Item, Line},
};
use serde_json::Value;

use super::{MemoryFiles, output::SandboxOutput};

/// Faults of one fixture that are listed.
const MAX_FAULTS: usize = 10;
/// Shortest word that is checked, in characters. Shorter ones are marks and units.
const MIN_WORD: usize = 3;
/// Levels of JSON inside texts of JSON.
const MAX_INNER: usize = 4;

/// What begins the sentence of a README that lists the words which the importer adds.
const OWN_WORDS: &str = "Words that it adds: ";

/// The words that the importer adds on purpose, as the README says: a line that begins with "Words that it adds:" and
/// lists them, each in backticks.
pub(super) struct OwnWords(BTreeSet<String>);

impl OwnWords {
    pub(super) fn parse(readme: &str) -> Self {
        let lists = readme.lines().filter_map(|line| line.split_once(OWN_WORDS));
        let quoted = lists.flat_map(|(_, list)| list.split('`').skip(1).step_by(2));
        Self(quoted.flat_map(words).collect())
    }
}

/// Returns the texts with words that the input does not have.
pub(super) fn invented(files: &MemoryFiles, output: &SandboxOutput, own: &OwnWords) -> Vec<String> {
    let mut known = own.0.clone();
    for (path, bytes) in files.all() {
        add_words(path, &mut known);
        let text = String::from_utf8_lossy(bytes);
        add_words(&text, &mut known);
        add_words(&unescaped(&text), &mut known);
        add_json(&text, MAX_INNER, &mut known);
        if bytes.starts_with(sqlite::MAGIC) {
            add_rows(files, path, &mut known);
        }
    }
    let mut faults = Vec::new();
    for line in output.produced.exports.iter().flat_map(|export| &export.lines) {
        for (place, text) in texts(line) {
            let unknown = words(&text).find(|word| !known.contains(word));
            faults.extend(unknown.map(|word| {
                format!(
                    "{place}: the word {word:?} is not in the input: {text:?}; if the importer adds it on purpose, write \
                     in README.md: {OWN_WORDS}`{word}`"
                )
            }));
            if faults.len() >= MAX_FAULTS {
                return faults;
            }
        }
    }
    faults
}

/// Replaces escaped characters as in JSON, however often they are escaped, in text that may be cut or no JSON at all.
fn unescaped(text: &str) -> String {
    let (mut out, mut letters) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        while letters.next_if_eq(&'\\').is_some() {}
        match letters.next() {
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                out.push(code.and_then(char::from_u32).unwrap_or(' '));
            }
            Some('n' | 'r' | 't' | 'b' | 'f') | None => out.push(' '),
            Some(other) => out.push(other),
        }
    }
    out
}

fn add_words(text: &str, known: &mut BTreeSet<String>) {
    known.extend(words(text));
}

/// Adds the words of the rows of a database, in which nothing stands between one value and the next.
fn add_rows(files: &MemoryFiles, path: &str, known: &mut BTreeSet<String>) {
    let bundle = Bundle::from_files(files.all().map(|(path, bytes)| (path, bytes.to_vec())));
    let Ok(database) = Database::open(&bundle, path) else { return };
    for table in database.tables() {
        for row in database.rows(table).flatten() {
            for column in table.columns() {
                match row.get(column) {
                    Ok(sqlite::Value::Text(text)) => add_value(&Value::String(text), MAX_INNER, known),
                    Ok(sqlite::Value::Blob(bytes)) => add_words(&String::from_utf8_lossy(&bytes), known),
                    _ => {}
                }
            }
        }
    }
}

/// Adds the words of texts in JSON, also in JSON inside such texts, where they are escaped once more.
fn add_json(text: &str, levels: usize, known: &mut BTreeSet<String>) {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.map_while(Result::ok).for_each(|value| add_value(&value, levels, known));
}

fn add_value(value: &Value, levels: usize, known: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            add_words(text, known);
            if levels > 0 && text.trim_start().starts_with(['{', '[']) {
                add_json(text, levels - 1, known);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_value(item, levels, known)),
        Value::Object(members) => {
            for (name, member) in members {
                add_words(name, known);
                add_value(member, levels, known);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The words of a text in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphabetic());
    parts.filter(|part| part.chars().nth(MIN_WORD - 1).is_some()).map(str::to_lowercase)
}

/// The texts of a record that show as somebody's words, each with its place.
fn texts(line: &Line) -> Vec<(String, String)> {
    match line {
        Line::Conversation(record) => conversation_texts(record),
        Line::Evidence(record) => {
            let contents = items(record).into_iter().map(|item| item.content.clone());
            contents.map(|content| (record.locator.clone(), content)).collect()
        }
        Line::Relation(_) | Line::Embedding(_) | Line::Account(_) | Line::Skip(_) | Line::Warning(_) => {
            Vec::new()
        }
    }
}

fn conversation_texts(record: &ConversationRecord) -> Vec<(String, String)> {
    let title = record.title.iter().map(|title| (record.locator.clone(), title.clone()));
    let messages = record.messages.iter().flat_map(|message| {
        let place = format!("{}#{}", record.locator, message.id);
        let contents = message.content.iter().flat_map(content_texts);
        contents.map(move |text| (place.clone(), text))
    });
    title.chain(messages).collect()
}

fn content_texts(content: &Content) -> Vec<String> {
    let parts = content.parts.iter().filter_map(|part| part.text.clone());
    content.text.iter().cloned().chain(parts).collect()
}

fn items(record: &Evidence) -> Vec<&Item> {
    match &record.claim {
        Claim::Statement(item) => vec![item],
        Claim::Snapshot { items, .. } => items.iter().collect(),
        Claim::Edit { edit: Edit::Add(item) | Edit::Replace { item, .. }, .. } => vec![item],
        Claim::Edit { edit: Edit::Remove { .. }, .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_inside_escaped_texts() {
        let mut known = BTreeSet::new();
        add_json(r#"{"a": "Bake br\u00f6t", "b": "{\"c\": \"r\\u00fcbe\"}"}"#, MAX_INNER, &mut known);
        for word in ["bake", "bröt", "rübe"] {
            assert!(known.contains(word), "{word}: {known:?}");
        }
        assert!(!known.contains("rye"));
        assert_eq!(words("A 25-kg Bag, c3po").collect::<Vec<_>>(), ["bag"]);
    }

    #[test]
    fn words_of_cut_json_are_found() {
        assert_eq!(unescaped(r#""a\nCold \"br\\u00f6t\" \"#), r#""a Cold "bröt"  "#);
    }

    #[test]
    fn a_readme_lists_the_words_that_are_added() {
        let own = OwnWords::parse("# Notes\n\nWords that it adds: `Image`, `see below`.\n`other`\n");
        assert_eq!(own.0.into_iter().collect::<Vec<_>>(), ["below", "image", "see"]);
    }
}
