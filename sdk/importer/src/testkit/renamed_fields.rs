//! Checks that no text is lost silently when a provider renames a field.
//!
//! Each JSON key, each column of a table and each class of a page is renamed in turn, everywhere in a fixture. Every text of the person and
//! the model must then still be in a message with the same role, in a memory or in a tool call. Otherwise the run must report a warning or
//! a skip that it did not report before, or must not claim the file.

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
use crate::{Bundle, Importer, pam::conversation::ToolInput, sqlite};

/// A text counts as found if this share of its pairs of adjacent words is: markers of sources in it may change.
const MIN_FOUND_PERCENT: usize = 75;
/// Deepest nesting of JSON in texts of JSON.
const MAX_NESTED_TEXTS: usize = 4;
/// Characters of a lost text that are shown.
const MAX_SHOWN: usize = 60;

/// The files of an export by path.
type Files = BTreeMap<String, Vec<u8>>;

/// Renames every field of every fixture in `folder` in turn.
///
/// # Errors
/// One line for each field whose renaming loses a text silently.
pub fn check_renamed_fields<T: Importer>(folder: impl AsRef<Path>) -> Result<(), FixtureError> {
    let mut faults = Vec::new();
    for fixture in fixtures(folder.as_ref())? {
        let name = fixture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = check_export::<T>(&fixture.join("input"))?;
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    FixtureError::of_faults(faults)
}

/// Does the same with each sample export of `provider`, a file or a folder, beside the repository of the crate in the folder `plugin`. Does
/// nothing if there are none.
pub fn check_renamed_samples<T: Importer>(
    plugin: impl AsRef<Path>,
    provider: &str,
) -> Result<(), FixtureError> {
    let mut faults = Vec::new();
    for folder in sample_folders(plugin.as_ref(), provider) {
        for path in entries_of(&folder)? {
            let found = check_export::<T>(&path)?;
            faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    FixtureError::of_faults(faults)
}

/// Renames every field of the export at `path` in turn; one fault for each that is not reported.
fn check_export<T: Importer>(path: &Path) -> Result<Vec<String>, FixtureError> {
    let files = read(path).map_err(FixtureError::at(path))?;
    let run = |files: &Files| Output::of::<T>(files).map_err(FixtureError::at(path));
    let before = run(&files)?;
    let texts = before.source_texts(&files);
    let claimed = || files.iter().filter(|(name, _)| before.claimed.contains(*name));
    let fields: BTreeSet<Field> = claimed().flat_map(|(name, bytes)| fields(name, bytes)).collect();
    let mut faults = Vec::new();
    for field in fields {
        let changed = files.iter().map(|(name, bytes)| (name.clone(), field.rename(name, bytes))).collect();
        let after = run(&changed)?;
        let shown = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
        if let Some(lost) = before.lost_silently(&texts, &after) {
            faults.push(format!("with {field:?} renamed {:?} is gone, and nothing says so", shown(lost)));
        } else if let Some(text) = before.changed_role_silently(&after) {
            let text = shown(text);
            faults.push(format!("with {field:?} renamed {text:?} has another role, and nothing says so"));
        }
    }
    Ok(faults)
}

/// A single file, or all files of a folder.
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

/// The texts that an importer emitted, and its reports.
#[derive(Debug, Default)]
struct Output {
    claimed: BTreeSet<String>,
    /// The texts of the person and the model, each with the locator of its conversation.
    emitted_texts: Vec<(String, String)>,
    /// The same texts, for search.
    spoken_texts: TextIndex,
    /// The roles of each text.
    roles: BTreeMap<String, BTreeSet<Role>>,
    /// The contents of all messages, tool calls and memories.
    contents: TextIndex,
    /// Skips, warnings and errors.
    reports: BTreeSet<String>,
}

impl Output {
    fn of<T: Importer>(files: &Files) -> Result<Self, crate::ImportError> {
        let mut output = Self::default();
        for export in produce::<T>(&Bundle::from_files(files.clone()))?.exports {
            output.claimed.extend(export.detection.files);
            output.reports.extend(export.error.map(|error| error.to_string()));
            for line in export.lines {
                match line {
                    Line::Conversation(record) => output.add(&record),
                    Line::Skip(Skip { locator, reason: text, .. })
                    | Line::Warning(Warning { locator, message: text }) => {
                        output.reports.insert(format!("{locator}: {text}"));
                    }
                    Line::Evidence(Evidence { claim, .. }) => {
                        // A message may have become a memory.
                        let items = match &claim {
                            Claim::Statement(item) => std::slice::from_ref(item),
                            Claim::Snapshot { items, .. } => items.as_slice(),
                            Claim::Edit { .. } => &[],
                        };
                        items.iter().for_each(|item| output.contents.add(&item.content));
                    }
                    Line::Relation(_) | Line::Embedding(_) | Line::Account(_) => {}
                }
            }
        }
        Ok(output)
    }

    fn add(&mut self, record: &ConversationRecord) {
        for message in &record.messages {
            for text in message.content.iter().flat_map(texts) {
                self.contents.add(text);
                if prose::is_prose(text) {
                    self.roles.entry(text.to_owned()).or_default().insert(message.role);
                }
                if matches!(message.role, Role::User | Role::Assistant) && prose::is_prose(text) {
                    self.spoken_texts.add(text);
                    self.emitted_texts.push((record.locator.clone(), text.to_owned()));
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

    /// The texts of the person and the model that are in the files: derived texts, such as a document after edits, do not count. For files
    /// that are not JSON, the emitted texts. Each with its file or the locator of its conversation.
    fn source_texts(&self, files: &Files) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        for (name, bytes) in files.iter().filter(|(name, _)| self.claimed.contains(*name)) {
            match value_of(bytes) {
                Some(value) => {
                    let mut found = Vec::new();
                    collect_prose(&value, MAX_NESTED_TEXTS, &mut found);
                    found.retain(|text| self.spoken_texts.contains(text));
                    texts.extend(found.into_iter().map(|text| (name.clone(), text)));
                }
                None => texts
                    .extend(self.emitted_texts.iter().filter(|(place, _)| place.starts_with(name)).cloned()),
            }
        }
        texts
    }

    /// Whether `after` has a report that this output has not.
    fn reports_more(&self, after: &Self) -> bool {
        after.reports.iter().any(|report| !self.reports.contains(report))
    }

    /// A text that has other roles in `after`, without a new report.
    fn changed_role_silently(&self, after: &Self) -> Option<&str> {
        if self.reports_more(after) {
            return None;
        }
        let others = |text: &String, roles| after.roles.get(text).is_some_and(|now| now != roles);
        self.roles.iter().find(|(text, roles)| others(text, *roles)).map(|(text, _)| text.as_str())
    }

    /// A text that is not in `after`, although its file is still claimed and there is no new report.
    fn lost_silently<'s>(&self, texts: &'s [(String, String)], after: &Self) -> Option<&'s str> {
        if self.reports_more(after) {
            return None;
        }
        let refused: Vec<_> = self.claimed.difference(&after.claimed).collect();
        let claimed = |place: &str| !refused.iter().any(|file| place.starts_with(file.as_str()));
        let lost = texts.iter().find(|(place, text)| claimed(place) && !after.contents.contains(text));
        lost.map(|(_, text)| text.as_str())
    }
}

/// Collects the natural language in the strings of `value`, also in JSON inside strings.
fn collect_prose(value: &Value, levels: usize, found: &mut Vec<String>) {
    match value {
        Value::String(text) => match value_of(text.as_bytes()) {
            Some(inner) if levels > 0 && (inner.is_object() || inner.is_array()) => {
                collect_prose(&inner, levels - 1, found);
            }
            _ if prose::is_prose(text) => found.push(text.clone()),
            _ => {}
        },
        Value::Array(items) => items.iter().for_each(|item| collect_prose(item, levels, found)),
        Value::Object(members) => members.values().for_each(|member| collect_prose(member, levels, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Texts in which another one can be searched.
#[derive(Debug, Default)]
struct TextIndex {
    text: String,
    pairs: BTreeSet<(String, String)>,
}

impl TextIndex {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.pairs.extend(pairs(text));
    }

    fn contains(&self, text: &str) -> bool {
        let pairs = pairs(text);
        let found = pairs.iter().filter(|pair| self.pairs.contains(pair)).count();
        self.text.contains(text.trim()) || (found > 0 && found * 100 >= pairs.len() * MIN_FOUND_PERCENT)
    }
}

fn texts(content: &Content) -> impl Iterator<Item = &str> {
    content.text.as_deref().into_iter().chain(content.parts.iter().filter_map(|part| part.text.as_deref()))
}

/// Each word of a text with the next one; HTML tags are left out.
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

/// A field that can be renamed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    /// A JSON key, also of JSON inside a page.
    Key(String),
    /// A key of JSON inside a string.
    EscapedKey(String),
    Column(String),
    Class(String),
}

impl Field {
    /// The file with this field renamed; only bytes of names change.
    fn rename(&self, file: &str, bytes: &[u8]) -> Vec<u8> {
        if is_database_log(file) {
            return bytes.to_vec();
        }
        if is_database(bytes) {
            return self.rename_in_place(bytes);
        }
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
        // Keeps invalid UTF-8 unless something is renamed.
        if renamed == text { bytes.to_vec() } else { renamed.into_bytes() }
    }

    /// The database with this key renamed. Each byte of a database has its place, so the name keeps its length.
    fn rename_in_place(&self, bytes: &[u8]) -> Vec<u8> {
        let (quote, key) = match self {
            Self::Key(key) => ("\"", key),
            Self::EscapedKey(key) => ("\\\"", key),
            Self::Column(_) | Self::Class(_) => return bytes.to_vec(),
        };
        let mut renamed = bytes.to_vec();
        let name = format!("{quote}{key}{quote}");
        let found = memchr::memmem::find_iter(bytes, name.as_bytes());
        let is_key = |at: &usize| {
            let behind = bytes.get(at + name.len()..).unwrap_or_default();
            behind.trim_ascii_start().starts_with(b":")
        };
        for at in found.filter(is_key) {
            if let Some(first) = renamed.get_mut(at + quote.len()).filter(|first| first.is_ascii()) {
                *first = if *first == b'X' { b'Y' } else { b'X' };
            }
        }
        renamed
    }
}

fn fields(file: &str, bytes: &[u8]) -> Vec<Field> {
    if is_database_log(file) {
        // Its sums would not fit any more, and what follows would be as if it had never been written.
        return Vec::new();
    }
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

/// The texts between two of `quote` that precede a colon.
fn keys<'t>(text: &'t str, quote: &str) -> impl Iterator<Item = &'t str> {
    let parts: Vec<&str> = text.split(quote).collect();
    let keys: Vec<&str> = parts
        .windows(2)
        .filter(|pair| {
            // A text that begins with a colon or comma is between two strings.
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

fn is_database(bytes: &[u8]) -> bool {
    bytes.starts_with(sqlite::MAGIC)
}

/// Whether it is a file that `SQLite` has beside a database.
fn is_database_log(file: &str) -> bool {
    ["-wal", "-shm", "-journal"].iter().any(|suffix| file.ends_with(suffix))
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
    fn keys_in_a_database_keep_their_place() {
        let mut bytes = sqlite::MAGIC.to_vec();
        bytes.extend_from_slice(b"\xff{\"a\": \"a\", \"b\": 1}");
        let renamed = Field::Key("a".to_owned()).rename("a.db", &bytes);
        assert_eq!(renamed.strip_prefix(sqlite::MAGIC), Some(&b"\xff{\"X\": \"a\", \"b\": 1}"[..]));
        assert_eq!(fields("a.db-wal", b"\"a\": 1"), []);
    }

    #[test]
    fn columns_and_classes_are_renamed() {
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
    fn a_text_with_other_markers_is_found_and_another_text_is_not() {
        let mut words = TextIndex::default();
        words.add("Tea is a hot drink made of leaves【1†source】, and it is good.");
        assert!(words.contains("<p>Tea is a hot drink made of <b>leaves</b> [1], and it is good.</p>"));
        assert!(!words.contains("Coffee is a hot drink made of beans, and it is bad."));
        assert!(!words.contains("leaf"));
    }

    #[test]
    fn texts_are_found_in_json_inside_json() {
        let mut found = Vec::new();
        let value =
            serde_json::json!({"id": "a", "list": ["tea is hot", "{\"a\": [\"rye is sour\"]}", 5, null]});
        collect_prose(&value, MAX_NESTED_TEXTS, &mut found);
        assert_eq!(found, ["tea is hot", "rye is sour"]);
    }
}
