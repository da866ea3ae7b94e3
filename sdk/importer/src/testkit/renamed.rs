//! Renamed fields: when a provider calls a field otherwise, its words are found, or the receipt says that something is missing.
//!
//! Each key of JSON, each column of a table and each class of a page is renamed in turn, everywhere in a fixture. What the
//! person or the model says in the fixture as it is must then still be the content of some message or memory or stand in a call of a tool,
//! and no other role may say it; or the run must warn of something or skip something that it did not before, or not take the file for
//! its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use satchel_pam::{
    conversation::{Content, Role},
    prose,
    record::{Claim, ConversationRecord, Evidence, Line, Skip, Warning},
};

use serde_json::Value;

use super::{FixtureError, entries_of, fields::value_of, fixtures, produce, samples::sample_folders};
use crate::{Bundle, Importer, pam::conversation::ToolInput};

/// A text counts as found where so many of a hundred pairs of neighbouring words are: marks of sources in it may change.
const FOUND_PERCENT: usize = 75;
/// JSON inside a text inside a text, and so on.
const MOST_NESTED_TEXTS: usize = 4;
/// Characters of a lost text that a fault shows.
const SHOWN: usize = 60;

/// The files of an export, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Renames every field of every fixture below `folder` in turn; fails with those whose words vanish in silence.
pub fn renamed<T: Importer>(folder: impl AsRef<Path>) -> Result<(), FixtureError> {
    let mut faults = Vec::new();
    for fixture in fixtures(folder.as_ref())? {
        let name = fixture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = renamed_in::<T>(&fixture.join("input"))?;
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    FixtureError::of_faults(faults)
}

/// As [`renamed`], for each sample export of `provider`, a file alone or a folder, where such lie beside the repository that the
/// crate in the folder `plugin` is of.
pub fn renamed_samples<T: Importer>(plugin: impl AsRef<Path>, provider: &str) -> Result<(), FixtureError> {
    let mut faults = Vec::new();
    for folder in sample_folders(plugin.as_ref(), provider) {
        for path in entries_of(&folder)? {
            let found = renamed_in::<T>(&path)?;
            faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    FixtureError::of_faults(faults)
}

/// Renames every field of the export at `path` in turn.
fn renamed_in<T: Importer>(path: &Path) -> Result<Vec<String>, FixtureError> {
    let files = read(path).map_err(FixtureError::at(path))?;
    let run = |files: &Files| Outcome::of::<T>(files).map_err(FixtureError::at(path));
    let before = run(&files)?;
    let said = before.said_in(&files);
    let claimed = || files.iter().filter(|(name, _)| before.claimed.contains(*name));
    let fields: BTreeSet<Field> = claimed().flat_map(|(name, bytes)| fields(name, bytes)).collect();
    let mut faults = Vec::new();
    for field in fields {
        let changed = files.iter().map(|(name, bytes)| (name.clone(), field.rename(name, bytes))).collect();
        let after = run(&changed)?;
        let shown = |text: &str| text.chars().take(SHOWN).collect::<String>();
        if let Some(lost) = before.lost_silently(&said, &after) {
            faults.push(format!("with {field:?} renamed {:?} is gone, and nothing says so", shown(lost)));
        } else if let Some(given) = before.given_silently(&after) {
            let given = shown(given);
            faults.push(format!("with {field:?} renamed {given:?} is said by another, and nothing says so"));
        }
    }
    Ok(faults)
}

/// A file under its own name, or all files of a folder.
fn read(path: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    if path.is_dir() {
        read_folder(path, "", &mut files)?;
    } else {
        files.insert(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), fs::read(path)?);
    }
    Ok(files)
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_folder(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// What an importer made of files, as far as words go.
#[derive(Debug, Default)]
struct Outcome {
    claimed: BTreeSet<String>,
    /// What people and models say, with the place of its conversation.
    said: Vec<(String, String)>,
    /// The same as words.
    speech: Words,
    /// Who says each text.
    speakers: BTreeMap<String, BTreeSet<Role>>,
    /// All contents of messages, and what stands in calls of tools.
    contents: Words,
    /// Skips, warnings and errors.
    remarks: BTreeSet<String>,
}

impl Outcome {
    fn of<T: Importer>(files: &Files) -> Result<Self, crate::ImportError> {
        let mut outcome = Self::default();
        for export in produce::<T>(&Bundle::from_files(files.clone()))?.exports {
            outcome.claimed.extend(export.detection.files);
            outcome.remarks.extend(export.error.map(|error| error.to_string()));
            for line in export.lines {
                match line {
                    Line::Conversation(record) => outcome.add(&record),
                    Line::Skip(Skip { locator, reason: text, .. })
                    | Line::Warning(Warning { locator, message: text }) => {
                        outcome.remarks.insert(format!("{locator}: {text}"));
                    }
                    Line::Evidence(Evidence { claim, .. }) => {
                        // What was a message may now be a memory.
                        let items = match &claim {
                            Claim::Statement(item) => std::slice::from_ref(item),
                            Claim::Snapshot { items, .. } => items.as_slice(),
                            Claim::Edit { .. } => &[],
                        };
                        items.iter().for_each(|item| outcome.contents.add(&item.content));
                    }
                    Line::Relation(_) | Line::Embedding(_) | Line::Account(_) => {}
                }
            }
        }
        Ok(outcome)
    }

    fn add(&mut self, record: &ConversationRecord) {
        for message in &record.messages {
            for text in message.content.iter().flat_map(texts) {
                self.contents.add(text);
                if prose::is_prose(text) {
                    self.speakers.entry(text.to_owned()).or_default().insert(message.role);
                }
                if matches!(message.role, Role::User | Role::Assistant) && prose::is_prose(text) {
                    self.speech.add(text);
                    self.said.push((record.locator.clone(), text.to_owned()));
                }
            }
            for call in &message.tool_calls {
                let input = call.input.as_ref().map(|input| match input {
                    ToolInput::Text(text) => text.as_str(),
                    ToolInput::Object(object) => object.as_str(),
                });
                input.into_iter().chain(call.output.as_deref()).for_each(|text| self.contents.add(text));
            }
        }
    }

    /// What is said, as it stands in the files: derived texts, such as a document after its changes, are nobody's words. Of files
    /// that are no JSON it is what came out. Each with its file, or the place of its conversation.
    fn said_in(&self, files: &Files) -> Vec<(String, String)> {
        let mut said = Vec::new();
        for (name, bytes) in files.iter().filter(|(name, _)| self.claimed.contains(*name)) {
            match value_of(bytes) {
                Some(value) => {
                    let mut found = Vec::new();
                    prose_in(&value, MOST_NESTED_TEXTS, &mut found);
                    found.retain(|text| self.speech.hold(text));
                    said.extend(found.into_iter().map(|text| (name.clone(), text)));
                }
                None => said.extend(self.said.iter().filter(|(place, _)| place.starts_with(name)).cloned()),
            }
        }
        said
    }

    /// Whether `after` has a remark that is not here.
    fn told_more(&self, after: &Self) -> bool {
        after.remarks.iter().any(|remark| !self.remarks.contains(remark))
    }

    /// A text that another role says in `after`, although nothing new is said.
    fn given_silently(&self, after: &Self) -> Option<&str> {
        if self.told_more(after) {
            return None;
        }
        let others = |text: &String, roles| after.speakers.get(text).is_some_and(|now| now != roles);
        self.speakers.iter().find(|(text, roles)| others(text, *roles)).map(|(text, _)| text.as_str())
    }

    /// A text that is gone in `after`, although its file is still taken and nothing new is said.
    fn lost_silently<'s>(&self, said: &'s [(String, String)], after: &Self) -> Option<&'s str> {
        if self.told_more(after) {
            return None;
        }
        let refused: Vec<_> = self.claimed.difference(&after.claimed).collect();
        let taken = |place: &str| !refused.iter().any(|file| place.starts_with(file.as_str()));
        let lost = said.iter().find(|(place, text)| taken(place) && !after.contents.hold(text));
        lost.map(|(_, text)| text.as_str())
    }
}

/// Natural language among the strings of `value`, also of JSON in strings.
fn prose_in(value: &Value, levels: usize, found: &mut Vec<String>) {
    match value {
        Value::String(text) => match value_of(text.as_bytes()) {
            Some(inner) if levels > 0 && (inner.is_object() || inner.is_array()) => {
                prose_in(&inner, levels - 1, found);
            }
            _ if prose::is_prose(text) => found.push(text.clone()),
            _ => {}
        },
        Value::Array(items) => items.iter().for_each(|item| prose_in(item, levels, found)),
        Value::Object(members) => members.values().for_each(|member| prose_in(member, levels, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Texts, to be asked whether another one is among them.
#[derive(Debug, Default)]
struct Words {
    text: String,
    pairs: BTreeSet<(String, String)>,
}

impl Words {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.pairs.extend(pairs(text));
    }

    fn hold(&self, text: &str) -> bool {
        let pairs = pairs(text);
        let found = pairs.iter().filter(|pair| self.pairs.contains(pair)).count();
        self.text.contains(text.trim()) || (found > 0 && found * 100 >= pairs.len() * FOUND_PERCENT)
    }
}

fn texts(content: &Content) -> impl Iterator<Item = &str> {
    content.text.as_deref().into_iter().chain(content.parts.iter().filter_map(|part| part.text.as_deref()))
}

/// Each word of a text with the one behind it; tags of HTML are no words.
fn pairs(text: &str) -> BTreeSet<(String, String)> {
    let pieces = text.split('<').enumerate().map(|(index, piece)| {
        let tag = index > 0 && piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        piece.split_once('>').filter(|_| tag).map_or(piece, |(_, behind)| behind)
    });
    let plain = pieces.collect::<Vec<_>>().join(" ");
    let words: Vec<&str> =
        plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// What may be called otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    /// A key of JSON, also of JSON inside a page.
    Key(String),
    /// A key of JSON inside a string.
    EscapedKey(String),
    Column(String),
    Class(String),
}

impl Field {
    /// The file with this field called otherwise; only bytes of names change.
    fn rename(&self, file: &str, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        let renamed = match self {
            Self::Key(key) => rename_keys(&text, &format!("\"{key}\""), &format!("\"x_{key}\"")),
            Self::EscapedKey(key) => {
                rename_keys(&text, &format!("\\\"{key}\\\""), &format!("\\\"x_{key}\\\""))
            }
            Self::Column(column) if is_table(file) => rename_column(&text, column),
            Self::Class(class) if is_page(file) => rename_class(&text, class),
            Self::Column(_) | Self::Class(_) => return bytes.to_vec(),
        };
        // What is no UTF-8 stays as it is, unless something is renamed in it.
        if renamed == text { bytes.to_vec() } else { renamed.into_bytes() }
    }
}

fn fields(file: &str, bytes: &[u8]) -> Vec<Field> {
    let text = String::from_utf8_lossy(bytes);
    let mut fields: Vec<Field> = keys(&text, "\"").map(|key| Field::Key(key.to_owned())).collect();
    fields.extend(keys(&text, "\\\"").map(|key| Field::EscapedKey(key.to_owned())));
    if is_table(file) {
        fields.extend(head(&text).map(|column| Field::Column(column.to_owned())));
    }
    if is_page(file) {
        let classes = text.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next());
        fields.extend(classes.flat_map(str::split_whitespace).map(|class| Field::Class(class.to_owned())));
    }
    fields
}

/// What stands between two of `quote`, before a colon.
fn keys<'t>(text: &'t str, quote: &str) -> impl Iterator<Item = &'t str> {
    let parts: Vec<&str> = text.split(quote).collect();
    let keys: Vec<&str> = parts
        .windows(2)
        .filter(|pair| {
            // What begins with a colon or a comma stands between two strings.
            let between = pair[0].is_empty() || pair[0].starts_with([':', ',']);
            pair[1].trim_start().starts_with(':') && !pair[0].contains(['\\', '"']) && !between
        })
        .map(|pair| pair[0])
        .collect();
    keys.into_iter()
}

fn rename_keys(text: &str, old: &str, new: &str) -> String {
    let mut parts = text.split(old);
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        renamed.push_str(if part.trim_start().starts_with(':') { new } else { old });
        renamed.push_str(part);
    }
    renamed
}

fn is_table(file: &str) -> bool {
    file.to_ascii_lowercase().ends_with(".csv")
}

fn is_page(file: &str) -> bool {
    file.to_ascii_lowercase().ends_with(".html")
}

fn head(text: &str) -> impl Iterator<Item = &str> {
    let line = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
    line.split(',').map(|cell| cell.trim_matches('"'))
}

fn rename_column(text: &str, column: &str) -> String {
    let end = text.find('\n').unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    line.replacen(column, &format!("x {column}"), 1) + rest
}

fn rename_class(text: &str, class: &str) -> String {
    let mut parts = text.split("class=\"");
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (names, rest) = part.split_at(part.find('"').unwrap_or(0));
        let names: Vec<String> = names
            .split(' ')
            .map(|name| if name == class { format!("x-{name}") } else { name.to_owned() })
            .collect();
        renamed.push_str("class=\"");
        renamed.push_str(&names.join(" "));
        renamed.push_str(rest);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_renamed_everywhere() {
        let json = r#"[{"a": "x \"b\": 1", "c":{"a" : "a", "d:": ":"}}, {"a":"\"a\":"}]"#;
        let key = |name: &str| Field::Key(name.to_owned());
        assert_eq!(
            fields("a.json", json.as_bytes()).into_iter().collect::<BTreeSet<_>>(),
            [
                key("a"),
                key("c"),
                key("d:"),
                Field::EscapedKey("b".to_owned()),
                Field::EscapedKey("a".to_owned())
            ]
            .into()
        );
        let renamed = key("a").rename("a.json", json.as_bytes());
        let wanted = r#"[{"x_a": "x \"b\": 1", "c":{"x_a" : "a", "d:": ":"}}, {"x_a":"\"a\":"}]"#;
        assert_eq!(String::from_utf8_lossy(&renamed), wanted);
        let escaped = Field::EscapedKey("b".to_owned()).rename("a.json", json.as_bytes());
        assert!(String::from_utf8_lossy(&escaped).contains(r#"x \"x_b\": 1"#));
    }

    #[test]
    fn columns_and_classes_are_names_too() {
        let table = "\u{feff}Time,\"Author\"\r\n1,Time\r\n";
        let fields_of = fields("a.CSV", table.as_bytes());
        assert_eq!(fields_of, [Field::Column("Time".to_owned()), Field::Column("Author".to_owned())]);
        let renamed = String::from_utf8(fields_of[0].rename("a.csv", table.as_bytes()));
        assert_eq!(renamed.as_deref(), Ok("\u{feff}x Time,\"Author\"\r\n1,Time\r\n"));
        let page = "<p class=\"a b\">a</p><p class=\"b\">";
        let renamed = Field::Class("b".to_owned()).rename("a.html", page.as_bytes());
        assert_eq!(String::from_utf8_lossy(&renamed), "<p class=\"a x-b\">a</p><p class=\"x-b\">");
    }

    #[test]
    fn a_text_with_other_marks_is_found_and_another_text_is_not() {
        let mut words = Words::default();
        words.add("Tea is a hot drink made of leaves【1†source】, and it is good.");
        assert!(words.hold("<p>Tea is a hot drink made of <b>leaves</b> [1], and it is good.</p>"));
        assert!(!words.hold("Coffee is a hot drink made of beans, and it is bad."));
        assert!(!words.hold("leaf"));
    }

    #[test]
    fn words_of_the_source_are_found_in_json_inside_json() {
        let mut found = Vec::new();
        let value =
            serde_json::json!({"id": "a", "list": ["tea is hot", "{\"a\": [\"rye is sour\"]}", 5, null]});
        prose_in(&value, MOST_NESTED_TEXTS, &mut found);
        assert_eq!(found, ["tea is hot", "rye is sour"]);
    }
}
