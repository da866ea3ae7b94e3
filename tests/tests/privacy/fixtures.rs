//! Canaries from every fixture of every importer: a stripped export contains none of the values by which the original
//! fields identify somebody.
//!
//! The importers' READMEs say which fields these are: the rows of their field tables that map to an account or to
//! people, and private rows. E-mail addresses anywhere in a file are added, and the accounts and people in a full
//! export.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::export::{ExportRequest, Format, Selection};
use satchel_tests::{
    archive::{Archive, whole},
    exports::{Sample, copy, samples},
};
use serde_json::Value;

use super::{files, identifiers};

/// A field identifies somebody if its target in the table contains one of these words.
const TELLING: [&str; 5] = ["account", "participant", "people", "owner", "whose export"];
/// Names of fields that identify somebody only in combination with the file that they are in.
const GENERAL: [&str; 4] = ["id", "uuid", "name", "title"];
/// Minimum length of a canary; shorter values occur everywhere.
const LONG_ENOUGH: usize = 4;
/// Values that identify nobody.
const NOBODY: [&str; 8] =
    ["account", "assistant", "human", "system", "tool", "user", "automation", "somebody"];
/// Minimum length in bytes of an id that cannot occur in a text by chance.
const OPAQUE: usize = 16;
/// Fields of PAM documents with the words of people and models, which stay unchanged.
const SAID: [&str; 7] = ["text", "content", "summary", "system_instruction", "input", "output", "snippet"];

/// A row of a field table whose field identifies somebody.
struct Row {
    root: String,
    /// Field names below the root.
    path: Vec<String>,
    /// Whether the row also covers everything below the path.
    below: bool,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.trim().strip_prefix('|')?.split(" | ").map(str::trim);
        let path = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        let (fate, goes) = (cells.next()?, cells.collect::<Vec<_>>().join(" "));
        let private = fate.starts_with("dropped: private");
        let mut names = Vec::new();
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            names.extend((!name.is_empty()).then(|| name.to_owned()));
            names.extend((0..(part.len() - name.len()) / 2).map(|_| "[]".to_owned()));
        }
        let below = names.pop_if(|last| last == "**").is_some();
        let first = goes.trim_start_matches('`');
        let tells =
            TELLING.iter().any(|word| if below { first.starts_with(word) } else { goes.contains(word) });
        let root = if names.is_empty() { return None } else { names.remove(0) };
        (private || tells && !names.is_empty()).then_some(Self { root, path: names, below })
    }

    /// Returns whether this row covers the value at `path` in the file named `file`.
    fn fits(&self, file: &str, path: &[String]) -> bool {
        let length = path.len() == self.path.len() || (self.below && path.len() > self.path.len());
        let same = self.path.iter().zip(path).all(|(own, name)| own == name || own == "*");
        let names: Vec<&String> = self.path.iter().filter(|name| *name != "[]").collect();
        let general = names.is_empty() || matches!(names[..], [one] if GENERAL.contains(&one.as_str()));
        let named = || {
            file.split(|c: char| !c.is_alphanumeric())
                .any(|word| !word.is_empty() && self.root.starts_with(word))
        };
        length && same && (!general || named())
    }
}

fn rows(provider: &str) -> Result<Vec<Row>> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(provider).join("README.md");
    let text = fs::read_to_string(readme)?;
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        inside = line.starts_with('|') && (inside || line.starts_with("| Path |"));
        inside
    });
    Ok(lines.filter_map(Row::parse).collect())
}

/// Values that identify somebody, with the place where each was first found.
type Canaries = BTreeMap<String, String>;

fn add(text: &str, place: impl FnOnce() -> String, canaries: &mut Canaries) {
    let text = text.trim();
    let spoken = text.chars().count() >= LONG_ENOUGH && text.chars().any(char::is_alphabetic);
    if spoken && !NOBODY.contains(&text.to_lowercase().as_str()) {
        canaries.entry(text.to_owned()).or_insert_with(place);
    }
}

/// Collects the canaries from the files of an export.
fn canaries_of(sample: &Sample, rows: &[Row], canaries: &mut Canaries) -> Result<()> {
    for file in files(&sample.input)? {
        let name = file.strip_prefix(&sample.input)?.to_string_lossy().into_owned();
        let bytes = fs::read(&file)?;
        let lines =
            || serde_json::Deserializer::from_slice(&bytes).into_iter().collect::<Result<Vec<_>, _>>();
        let value: Option<Value> =
            serde_json::from_slice(&bytes).ok().or_else(|| lines().ok().map(Value::Array));
        let Some(value) = value else { continue };
        let mut walk = Walk { name: &name, rows, canaries, path: Vec::new() };
        walk.value(&value);
    }
    Ok(())
}

struct Walk<'w> {
    name: &'w str,
    rows: &'w [Row],
    canaries: &'w mut Canaries,
    path: Vec<String>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    self.path.push(key.clone());
                    self.value(member);
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                self.path.push("[]".to_owned());
                items.iter().for_each(|item| self.value(item));
                self.path.pop();
            }
            Value::String(text) => {
                // The role of a participant does not say who it is.
                let part = self.path.last().is_some_and(|key| key == "role");
                let tells = !part && self.rows.iter().any(|row| row.fits(self.name, &self.path));
                if tells || is_address(text) {
                    let place = || format!("{}: {}", self.name, self.path.join("."));
                    add(text, place, self.canaries);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns whether a text is an e-mail address and nothing else.
fn is_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| {
        let plain = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c == '@');
        plain(name) && plain(host) && host.contains('.')
    })
}

/// Returns whether a text is an id and not a word.
fn is_opaque(text: &str) -> bool {
    let of_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.len() >= OPAQUE && text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(of_id)
}

/// Removes what was said from a document: everywhere, or in memories only.
fn without_words(value: &mut Value, everywhere: bool) {
    match value {
        Value::Object(members) => {
            let here = everywhere || members.contains_key("content_hash");
            // The content of a message is an object that also contains addresses, so it is not removed as a whole.
            let said =
                |key: &str, value: &Value| SAID.contains(&key) && (value.is_string() || key == "input");
            members.retain(|key, value| !here || !said(key, value));
            members.values_mut().for_each(|member| without_words(member, everywhere));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_words(item, everywhere)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the bytes of a bundle's file twice: without anything that was said, and without the words of memories only.
fn texts(path: &Path) -> Result<[Vec<u8>; 2]> {
    let bytes = fs::read(path)?;
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if ending == "md" {
        let text = String::from_utf8(bytes)?.to_lowercase();
        return Ok([unquoted(&text).into_bytes(), text.into_bytes()]);
    }
    if ending != "json" {
        return Ok([bytes.clone(), bytes]);
    }
    let value: Value = serde_json::from_slice(&bytes)?;
    let without = |everywhere: bool| {
        let mut value = value.clone();
        without_words(&mut value, everywhere);
        value.to_string().to_lowercase().into_bytes()
    };
    Ok([without(true), without(false)])
}

/// Returns a Markdown document without quotes, code blocks and links to memories, which contain what was said.
fn unquoted(text: &str) -> String {
    let mut fence = None;
    let own = text.lines().filter(|line| {
        let line = line.trim_start();
        let marks = line.len() - line.trim_start_matches('`').len();
        if let Some(open) = fence {
            if marks >= open && line.len() == marks {
                fence = None;
            }
            return false;
        }
        fence = (marks >= 3).then_some(marks);
        fence.is_none() && !line.starts_with('>') && !line.contains(".md#mem-")
    });
    own.collect::<Vec<_>>().join("\n")
}

/// Returns the forms in which a text may be written.
fn forms(text: &str) -> Result<Vec<Vec<u8>>> {
    let text = text.to_lowercase();
    let escaped = serde_json::to_string(&text)?;
    let percent: String =
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02x}")
                }
            })
            .collect();
    let mut forms = vec![text.clone().into_bytes(), escaped.trim_matches('"').into(), percent.into_bytes()];
    forms.dedup();
    Ok(forms)
}

/// Returns whether a form occurs in a text as whole words.
fn stands(form: &[u8], text: &[u8]) -> bool {
    let part_of_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.windows(form.len()).enumerate().any(|(at, window)| {
        window == form
            && !part_of_word(at.checked_sub(1).and_then(|before| text.get(before)))
            && !part_of_word(text.get(at + form.len()))
    })
}

/// Returns the Base64 of a text that begins at each of three offsets, without the characters that its neighbours
/// affect.
fn encoded(text: &str) -> Vec<Vec<u8>> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encoded = |before: usize| {
        let bits: Vec<u8> = vec![0; before].into_iter().chain(text.bytes()).collect();
        let whole = bits.chunks_exact(3).skip(usize::from(before > 0));
        let letters = whole.flat_map(|three| {
            let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            [18, 12, 6, 0].map(|shift| LETTERS[((number >> shift) & 63) as usize])
        });
        letters.collect::<Vec<u8>>()
    };
    [0, 1, 2].map(encoded).into_iter().filter(|form| form.len() >= 12).collect()
}

/// Returns the canaries found in a bundle, with their places.
fn found(bundle: &Path, canaries: &Canaries) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in files(bundle)? {
        let name = path.strip_prefix(bundle)?.to_string_lossy().to_lowercase();
        // The bytes of attachments are exported unchanged, whatever they contain.
        let [told, all] =
            if name.starts_with("attachments/") { [Vec::new(), Vec::new()] } else { texts(&path)? };
        let bytes = fs::read(&path)?;
        for (canary, place) in canaries {
            let text = if is_opaque(canary) { &all } else { &told };
            let plain = forms(canary)?.iter().any(|form| stands(form, text) || stands(form, name.as_bytes()));
            let within = |form: &Vec<u8>| bytes.windows(form.len()).any(|window| window == form);
            if plain || !name.starts_with("attachments/") && encoded(canary).iter().any(within) {
                found.push(format!("{canary:?} ({place}) stands in {name}"));
            }
        }
    }
    Ok(found)
}

#[test]
fn nothing_that_an_export_says_of_its_people_leaves_with_a_stripped_one() -> Result<()> {
    let (mut left, mut told) = (Vec::new(), BTreeSet::new());
    for built_in in satchel_plugins::BUILT_IN {
        let rows = rows(built_in.name)?;
        let folder = tempfile::tempdir()?;
        let archive = Archive::open(&folder.path().join("data"))?;
        let mut canaries = Canaries::new();
        for sample in samples()?.iter().filter(|sample| sample.provider == built_in.name) {
            let place = folder.path().join(format!("export {}", sample.behaviour));
            copy(&sample.input, &place)?;
            for import in archive.import(&place)? {
                for account in &import.accounts {
                    let place = || format!("the account of {}", sample.behaviour);
                    add(&account.id, place, &mut canaries);
                    account.name.iter().for_each(|name| add(name, place, &mut canaries));
                }
            }
            canaries_of(sample, &rows, &mut canaries)?;
        }
        archive.export(&folder.path().join("all"))?;
        let mut telling = BTreeSet::new();
        for path in files(&folder.path().join("all"))? {
            if let Ok(value) = serde_json::from_slice::<Value>(&fs::read(&path)?) {
                identifiers::collect(&value, &mut telling);
            }
        }
        telling.iter().for_each(|text| add(text, || "a whole export".to_owned(), &mut canaries));
        ensure!(rows.is_empty() || !canaries.is_empty(), "{}: there is something to find", built_in.name);
        told.extend(canaries.keys().cloned());
        let out = folder.path().join("stripped");
        let selection = Selection { strip: true, ..Selection::default() };
        let request = ExportRequest { selection, attachments: true, ..whole(out.clone()) };
        archive.export_by(&request).with_context(|| built_in.name.to_owned())?;
        let one = format!("{}: ", built_in.name);
        left.extend(found(&out, &canaries)?.into_iter().map(|fault| format!("{one}{fault}")));
        let notes = folder.path().join("notes");
        archive.export_by(&ExportRequest { output: notes.clone(), format: Format::Markdown, ..request })?;
        left.extend(found(&notes, &canaries)?.into_iter().map(|fault| format!("{one}{fault}")));
        let report = verify::path(&out, &verify::Options::default())?;
        ensure!(report.valid, "{one}{:?}", report.issues);
    }
    ensure!(told.len() > 30, "there is something to find: {told:?}");
    ensure!(left.is_empty(), "{} are found:\n{}", left.len(), left.join("\n"));
    Ok(())
}

/// The search finds a canary in every form in which it may be written.
#[test]
fn a_canary_is_found_however_it_is_written() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let canaries: Canaries = [("Ines Brandt", ""), ("6f1eaa10-0000-4000-8000-0000000000ab", "")]
        .map(|(text, at)| (text.to_owned(), at.to_owned()))
        .into();
    let cases = [
        (r#"{"title": "of INES BRANDT"}"#, 1),
        (r#"{"title": "of Ines%20Brandt!"}"#, 1),
        (r#"{"title": "of Ines Brandts"}"#, 0),
        (r#"{"messages": [{"content": {"text": "Ines Brandt"}}]}"#, 0),
        (r#"{"messages": [{"content": {"text": "6F1EAA10-0000-4000-8000-0000000000AB"}}]}"#, 1),
        (
            r#"{"memories": [{"content_hash": "", "content": "Ines Brandt 6f1eaa10-0000-4000-8000-0000000000ab"}]}"#,
            0,
        ),
        (r#"{"title": "eCBJbmVzIEJyYW5kdCB5eQ=="}"#, 1),
        (r#"{"title": "SW5lcyBCcmFuZHQ"}"#, 1),
    ];
    for (text, expected) in cases {
        fs::write(folder.path().join("a.json"), text)?;
        assert_eq!(found(folder.path(), &canaries)?.len(), expected, "{text}");
    }
    Ok(())
}
