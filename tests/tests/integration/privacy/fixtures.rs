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
use satchel_core::export::{ExportFormat, ExportRequest, Selection};
use satchel_tests::{
    samples::{SampleExport, copy, samples},
    test_core::{TestCore, full_export},
};
use serde_json::Value;

use super::{files, identifiers};

/// A field identifies somebody if its target in the table contains one of these words.
const IDENTIFYING_TARGETS: [&str; 5] = ["account", "participant", "people", "owner", "whose export"];
/// Names of fields that identify somebody only in combination with the file that they are in.
const AMBIGUOUS_FIELDS: [&str; 4] = ["id", "uuid", "name", "title"];
/// Minimum length of a canary; shorter values occur everywhere.
const MIN_CANARY_CHARS: usize = 4;
/// Values that identify nobody: roles, names of fields, and the names of programs that answer.
const NOT_IDENTIFYING: [&str; 14] = [
    "account",
    "assistant",
    "automation",
    "birch",
    "cedar",
    "github copilot",
    "helper",
    "human",
    "somebody",
    "system",
    "text",
    "token",
    "tool",
    "user",
];
/// Minimum length in bytes of an id that cannot occur in a text by chance.
const MIN_OPAQUE_BYTES: usize = 16;
/// Fields of PAM documents with the words of people and models, which stay unchanged.
const TEXT_FIELDS: [&str; 7] =
    ["text", "content", "summary", "system_instruction", "input", "output", "snippet"];

/// A row of a field table whose field identifies somebody.
struct IdentifyingField {
    root: String,
    /// Field names below the root.
    path: Vec<String>,
    /// Whether the row also covers everything below the path.
    recursive: bool,
}

impl IdentifyingField {
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.trim().strip_prefix('|')?.split(" | ").map(str::trim);
        let path = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        let (outcome, target) = (cells.next()?, cells.collect::<Vec<_>>().join(" "));
        let private = outcome.starts_with("dropped: private");
        let mut names = Vec::new();
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            names.extend((!name.is_empty()).then(|| name.to_owned()));
            names.extend((0..(part.len() - name.len()) / 2).map(|_| "[]".to_owned()));
        }
        let below = names.pop_if(|last| last == "**").is_some();
        let first = target.trim_start_matches('`');
        let identifying = IDENTIFYING_TARGETS
            .iter()
            .any(|word| if below { first.starts_with(word) } else { target.contains(word) });
        let root = if names.is_empty() { return None } else { names.remove(0) };
        (private || identifying && !names.is_empty()).then_some(Self { root, path: names, recursive: below })
    }

    /// Returns whether this row covers the value at `path` in the file named `file`.
    fn covers(&self, file: &str, path: &[String]) -> bool {
        let length = path.len() == self.path.len() || (self.recursive && path.len() > self.path.len());
        let same = self.path.iter().zip(path).all(|(own, name)| own == name || own == "*");
        let names: Vec<&String> = self.path.iter().filter(|name| *name != "[]").collect();
        let general =
            names.is_empty() || matches!(names[..], [one] if AMBIGUOUS_FIELDS.contains(&one.as_str()));
        let named = || {
            file.split(|c: char| !c.is_alphanumeric())
                .any(|word| !word.is_empty() && self.root.starts_with(word))
        };
        length && same && (!general || named())
    }
}

fn identifying_fields(provider: &str) -> Result<Vec<IdentifyingField>> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(provider).join("README.md");
    let text = fs::read_to_string(readme)?;
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        inside = line.starts_with('|') && (inside || line.starts_with("| Path |"));
        inside
    });
    Ok(lines.filter_map(IdentifyingField::parse).collect())
}

/// Values that identify somebody, with the place where each was first found.
type Canaries = BTreeMap<String, String>;

fn add_canary(text: &str, place: impl FnOnce() -> String, canaries: &mut Canaries) {
    let text = text.trim();
    let distinctive = text.chars().count() >= MIN_CANARY_CHARS && text.chars().any(char::is_alphabetic);
    if distinctive && !NOT_IDENTIFYING.contains(&text.to_lowercase().as_str()) {
        canaries.entry(text.to_owned()).or_insert_with(place);
    }
}

/// Collects the canaries from the files of an export.
fn collect_canaries(
    sample: &SampleExport,
    fields: &[IdentifyingField],
    canaries: &mut Canaries,
) -> Result<()> {
    for file in files(&sample.input)? {
        let name = file.strip_prefix(&sample.input)?.to_string_lossy().into_owned();
        let bytes = fs::read(&file)?;
        let lines =
            || serde_json::Deserializer::from_slice(&bytes).into_iter().collect::<Result<Vec<_>, _>>();
        let value: Option<Value> =
            serde_json::from_slice(&bytes).ok().or_else(|| lines().ok().map(Value::Array));
        let Some(value) = value else { continue };
        let mut walk = CanaryCollector { name: &name, fields, canaries, path: Vec::new() };
        walk.visit(&value);
    }
    Ok(())
}

struct CanaryCollector<'w> {
    name: &'w str,
    fields: &'w [IdentifyingField],
    canaries: &'w mut Canaries,
    path: Vec<String>,
}

impl CanaryCollector<'_> {
    fn visit(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    self.path.push(key.clone());
                    self.visit(member);
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                self.path.push("[]".to_owned());
                items.iter().for_each(|item| self.visit(item));
                self.path.pop();
            }
            Value::String(text) => {
                // The role of a participant does not say who it is.
                let part = self.path.last().is_some_and(|key| key == "role");
                let identifying =
                    !part && self.fields.iter().any(|field| field.covers(self.name, &self.path));
                if identifying || is_address(text) {
                    let place = || format!("{}: {}", self.name, self.path.join("."));
                    add_canary(text, place, self.canaries);
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
    text.len() >= MIN_OPAQUE_BYTES && text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(of_id)
}

/// Removes what was said from a document: everywhere, or in memories only.
fn remove_texts(value: &mut Value, everywhere: bool) {
    match value {
        Value::Object(members) => {
            let here = everywhere || members.contains_key("content_hash");
            // The content of a message is an object that also contains addresses, so it is not removed as a whole.
            let removable = |key: &str, value: &Value| {
                TEXT_FIELDS.contains(&key) && (value.is_string() || key == "input")
            };
            members.retain(|key, value| !here || !removable(key, value));
            members.values_mut().for_each(|member| remove_texts(member, everywhere));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_texts(item, everywhere)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the bytes of a bundle's file twice: without anything that was said, and without the words of memories only.
fn searchable_texts(path: &Path) -> Result<[Vec<u8>; 2]> {
    let bytes = fs::read(path)?;
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if ending == "md" {
        let text = String::from_utf8(bytes)?.to_lowercase();
        return Ok([without_quotes(&text).into_bytes(), text.into_bytes()]);
    }
    if ending != "json" {
        return Ok([bytes.clone(), bytes]);
    }
    let value: Value = serde_json::from_slice(&bytes)?;
    let without = |everywhere: bool| {
        let mut value = value.clone();
        remove_texts(&mut value, everywhere);
        value.to_string().to_lowercase().into_bytes()
    };
    Ok([without(true), without(false)])
}

/// Returns a Markdown document without quotes, code blocks and links to memories, which contain what was said.
fn without_quotes(text: &str) -> String {
    let mut fence = None;
    let unquoted = text.lines().filter(|line| {
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
    unquoted.collect::<Vec<_>>().join("\n")
}

/// Returns the forms in which a text may be written.
fn written_forms(text: &str) -> Result<Vec<Vec<u8>>> {
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
fn contains_words(form: &[u8], text: &[u8]) -> bool {
    let part_of_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.windows(form.len()).enumerate().any(|(at, window)| {
        window == form
            && !part_of_word(at.checked_sub(1).and_then(|before| text.get(before)))
            && !part_of_word(text.get(at + form.len()))
    })
}

/// Returns the Base64 of a text that begins at each of three offsets, without the characters that its neighbours
/// affect.
fn base64_forms(text: &str) -> Vec<Vec<u8>> {
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
fn find_canaries(bundle: &Path, canaries: &Canaries) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in files(bundle)? {
        let name = path.strip_prefix(bundle)?.to_string_lossy().to_lowercase();
        // The bytes of attachments are exported unchanged, whatever they contain.
        let [without_texts, all] = if name.starts_with("attachments/") {
            [Vec::new(), Vec::new()]
        } else {
            searchable_texts(&path)?
        };
        let bytes = fs::read(&path)?;
        for (canary, place) in canaries {
            let text = if is_opaque(canary) { &all } else { &without_texts };
            let plain = written_forms(canary)?
                .iter()
                .any(|form| contains_words(form, text) || contains_words(form, name.as_bytes()));
            let within = |form: &Vec<u8>| bytes.windows(form.len()).any(|window| window == form);
            if plain || !name.starts_with("attachments/") && base64_forms(canary).iter().any(within) {
                found.push(format!("{canary:?} ({place}) is in {name}"));
            }
        }
    }
    Ok(found)
}

#[test]
fn a_stripped_export_contains_no_identifying_value_of_any_fixture() -> Result<()> {
    let (mut leaked, mut searched) = (Vec::new(), BTreeSet::new());
    for built_in in satchel_plugins::BUILT_IN {
        let fields = identifying_fields(built_in.name)?;
        let folder = tempfile::tempdir()?;
        let core = TestCore::open(&folder.path().join("data"))?;
        let mut canaries = Canaries::new();
        for sample in samples()?.iter().filter(|sample| sample.provider == built_in.name) {
            let place = folder.path().join(format!("export {}", sample.behaviour));
            copy(&sample.input, &place)?;
            for import in core.import(&place)? {
                for account in &import.accounts {
                    let place = || format!("the account of {}", sample.behaviour);
                    add_canary(&account.id, place, &mut canaries);
                    account.name.iter().for_each(|name| add_canary(name, place, &mut canaries));
                }
            }
            collect_canaries(sample, &fields, &mut canaries)?;
        }
        core.export(&folder.path().join("all"))?;
        let mut identifying = BTreeSet::new();
        for path in files(&folder.path().join("all"))? {
            if let Ok(value) = serde_json::from_slice::<Value>(&fs::read(&path)?) {
                identifiers::collect_identifiers(&value, &mut identifying);
            }
        }
        identifying.iter().for_each(|text| add_canary(text, || "a full export".to_owned(), &mut canaries));
        ensure!(fields.is_empty() || !canaries.is_empty(), "{}: no canaries were found", built_in.name);
        searched.extend(canaries.keys().cloned());
        let out = folder.path().join("stripped");
        let selection = Selection { strip: true, ..Selection::default() };
        let request = ExportRequest { selection, attachments: true, ..full_export(out.clone()) };
        core.export_with(&request).with_context(|| built_in.name.to_owned())?;
        let one = format!("{}: ", built_in.name);
        leaked.extend(find_canaries(&out, &canaries)?.into_iter().map(|fault| format!("{one}{fault}")));
        let notes = folder.path().join("notes");
        core.export_with(&ExportRequest {
            output: notes.clone(),
            format: ExportFormat::Markdown,
            ..request
        })?;
        leaked.extend(find_canaries(&notes, &canaries)?.into_iter().map(|fault| format!("{one}{fault}")));
        let report = verify::path(&out, &verify::VerifyOptions::default())?;
        ensure!(report.valid, "{one}{:?}", report.issues);
    }
    ensure!(searched.len() > 30, "too few canaries were found: {searched:?}");
    ensure!(leaked.is_empty(), "{} were exported:\n{}", leaked.len(), leaked.join("\n"));
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
        assert_eq!(find_canaries(folder.path(), &canaries)?.len(), expected, "{text}");
    }
    Ok(())
}
