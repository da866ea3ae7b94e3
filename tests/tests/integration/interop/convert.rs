//! Compares with `pam convert` of the official SDK on the importers' fixtures: everything that it extracts correctly,
//! we store too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::{
    samples::{SampleExport, samples},
    test_core::{ExportedState, TestCore},
};
use serde_json::Value;

/// The providers that the SDK can read.
const PROVIDERS: [&str; 5] = ["chatgpt", "claude", "copilot", "gemini", "grok"];
/// Keys whose values the SDK makes up, and keys that describe a thing rather than its content.
const NOT_CONTENT: [&str; 6] = ["id", "type", "provider_id", "ref", "size_bytes", "mime_type"];
/// Lines of memories that the SDK writes about the account. A name and an address are not statements of a person, and
/// the importers take only the id of an account.
const ACCOUNT: [&str; 3] = ["Owner profile from", "Name: ", "Email: "];

/// The kinds of things that are compared.
const KINDS: [&str; 7] =
    ["conversations", "messages", "texts", "citations", "attachments", "tool calls", "memories"];

/// For one kind: how many the SDK found, how many of those we store, and how many we store in total.
#[derive(Clone, Copy, Default)]
struct KindCount {
    sdk: usize,
    stored: usize,
    ours: usize,
}

/// The comparison for one provider.
#[derive(Default)]
struct Comparison {
    exports: usize,
    counts: BTreeMap<&'static str, KindCount>,
    missing: Vec<String>,
    /// Things that we do not store, but that the receipt reports as skipped or with a warning.
    reported: Vec<String>,
}

impl Comparison {
    /// Adds the comparison of one export whose receipt lists `issues` skips and warnings. Everything that we leave out
    /// on purpose must be listed there, each thing by itself.
    fn add(&mut self, one: Self, issues: usize) {
        self.exports += 1;
        for (kind, count) in one.counts {
            let sum = self.counts.entry(kind).or_default();
            *sum = KindCount {
                sdk: sum.sdk + count.sdk,
                stored: sum.stored + count.stored,
                ours: sum.ours + count.ours,
            };
        }
        let whole = |line: &&String| !["conversations", "messages"].iter().any(|kind| line.starts_with(kind));
        let things: BTreeSet<&String> = one.missing.iter().filter(whole).collect();
        if things.len() <= issues {
            self.reported.extend(one.missing);
        } else {
            self.missing.extend(one.missing);
        }
    }

    fn record(&mut self, kind: &'static str, held: bool, what: impl FnOnce() -> String) {
        let count = self.counts.entry(kind).or_default();
        count.sdk += 1;
        count.stored += usize::from(held);
        if !held {
            self.missing.push(format!("{kind}: {}", what()));
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} exports", self.exports)?;
        for kind in KINDS {
            let KindCount { sdk, stored: held, ours } = self.counts.get(kind).copied().unwrap_or_default();
            write!(f, ", {kind} {held}/{sdk} (ours {ours})")?;
        }
        Ok(())
    }
}

#[test]
fn we_store_everything_that_pam_convert_extracts() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let samples: Vec<SampleExport> = samples()?
        .into_iter()
        .filter(|sample| PROVIDERS.contains(&sample.provider))
        // These belong to another producer; the SDK assigns them to a wrong provider.
        .filter(|sample| !sample.behaviour.ends_with("left-alone"))
        .collect();
    let converted = convert(&python, &samples, &dir.path().join("bundles"))?;
    let mut tallies: BTreeMap<&str, Comparison> = BTreeMap::new();
    for (at, sample) in samples.iter().enumerate() {
        let Some(bundles) = converted.get(&at) else { continue };
        let core = TestCore::open(&dir.path().join(format!("data-{at}")))?;
        let imports = core.import(&sample.input)?;
        let issues = imports.iter().map(|import| import.skipped.len() + import.warnings.len()).sum();
        let (ours, mut tally) = (core.state()?, Comparison::default());
        count_stored(&ours, &mut tally);
        for bundle in bundles {
            compare(&sample.behaviour, &ExportedState::read(bundle)?, &ours, &mut tally);
        }
        tallies.entry(sample.provider).or_default().add(tally, issues);
    }
    let mut report = String::from("stored of what `pam convert` extracts:\n");
    for (provider, tally) in &tallies {
        writeln!(report, "  {provider}: {tally}")?;
        tally
            .reported
            .iter()
            .try_for_each(|line| writeln!(report, "    not stored, as the receipt reports: {line}"))?;
    }
    eprintln!("{report}");
    ensure!(tallies.len() == PROVIDERS.len(), "the SDK read no export of some provider");
    let missing: Vec<&String> = tallies.values().flat_map(|tally| &tally.missing).collect();
    ensure!(missing.is_empty(), "{report}missing: {missing:#?}");
    Ok(())
}

/// Runs `pam convert` on every folder of every sample; returns the resulting bundles by sample.
fn convert(python: &Path, samples: &[SampleExport], out: &Path) -> Result<BTreeMap<usize, Vec<PathBuf>>> {
    let mut wanted = String::new();
    for (at, sample) in samples.iter().enumerate() {
        let mut folders = vec![sample.input.clone()];
        while let Some(folder) = folders.pop() {
            writeln!(wanted, "{at}\t{}", folder.display())?;
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                folders.extend(Some(path).filter(|path| path.is_dir() && !path.ends_with("__MACOSX")));
            }
        }
    }
    let mut child = Command::new(python)
        .args(["-c", include_str!("convert.py")])
        .arg(out)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("a pipe")?.write_all(wanted.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", super::output_text(&output));
    let mut bundles: BTreeMap<usize, Vec<PathBuf>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(ended) = line.strip_prefix('\u{1e}') else { continue };
        let ended: Value = serde_json::from_str(ended)?;
        let (Some(at), Some(bundle), true) =
            (ended["at"].as_str(), ended["bundle"].as_str(), ended["error"].is_null())
        else {
            continue;
        };
        bundles.entry(at.parse()?).or_default().push(bundle.into());
    }
    Ok(bundles)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Counts what we store.
fn count_stored(state: &ExportedState, tally: &mut Comparison) {
    let mut add = |kind, number| tally.counts.entry(kind).or_default().ours += number;
    add("conversations", state.conversations.len());
    add("memories", state.memories.len());
    for message in state.conversations.values().flat_map(|conversation| list(conversation, "messages")) {
        add("messages", 1);
        let mut texts = Vec::new();
        collect_values(&message["content"], &mut texts);
        add("texts", usize::from(texts.iter().any(|text| text.len() > 4)));
        add("citations", list(message, "citations").len());
        add("attachments", list(message, "attachments").len());
        add("tool calls", list(message, "tool_calls").len());
    }
}

fn compare(name: &str, sdk: &ExportedState, ours: &ExportedState, tally: &mut Comparison) {
    for conversation in sdk.conversations.values() {
        let id = &conversation["provider"]["conversation_id"];
        let same = |one: &&Value| one["provider"]["conversation_id"] == *id;
        let mut pool: Vec<&Value> = ours.conversations.values().filter(same).collect();
        let found = !pool.is_empty();
        if !found {
            // The SDK makes up ids where it finds none.
            pool = ours.conversations.values().collect();
        }
        let before = tally.missing.len();
        let pool: Vec<&Value> = pool.into_iter().flat_map(|one| list(one, "messages")).collect();
        for message in list(conversation, "messages") {
            compare_message(name, message, &pool, tally);
        }
        let whole = found || tally.missing.len() == before;
        tally.record("conversations", whole, || format!("{name}: {id}"));
    }
    let all: Vec<WordSet> =
        ours.memories.iter().chain(ours.conversations.values()).map(WordSet::of).collect();
    for memory in &sdk.memories {
        let content = memory["content"].as_str().unwrap_or_default();
        for line in content.lines().filter(|line| !ACCOUNT.iter().any(|label| line.starts_with(label))) {
            // The SDK adds its own label in front of a value.
            let value = line.split_once(": ").map_or(line, |(_, value)| value);
            let held = all.iter().any(|words| words.contains(line) || words.contains(value));
            tally.record("memories", held, || format!("{name}: {line:?}"));
        }
    }
}

fn compare_message(name: &str, message: &Value, pool: &[&Value], tally: &mut Comparison) {
    let id = message["provider_message_id"].as_str();
    let family: Vec<&Value> = match id {
        Some(id) => pool.iter().copied().filter(|one| same_provider_message(one, id)).collect(),
        None => pool.to_vec(),
    };
    let text = message["content"]["text"].as_str().filter(|text| !text.trim().is_empty());
    let attached =
        ["citations", "attachments", "tool_calls"].iter().any(|key| !list(message, key).is_empty());
    if family.iter().all(|one| one["is_thought"] == true) && text.is_none() && !attached {
        // Without an id from the export and without any text, nothing was extracted.
        return;
    }
    let at = || format!("{name}: message {id:?}");
    let words: Vec<WordSet> = family.iter().map(|one| WordSet::of(one)).collect();
    let held = |value: &str| words.iter().any(|words| words.contains(value));
    tally.record("messages", id.map_or(text.is_none_or(held), |_| !family.is_empty()), at);
    if let Some(text) = text {
        tally.record("texts", held(text), || format!("{} {text:?}", at()));
    }
    for (kind, key) in
        [("citations", "citations"), ("attachments", "attachments"), ("tool calls", "tool_calls")]
    {
        for item in list(message, key) {
            let mut texts = Vec::new();
            collect_values(item, &mut texts);
            if !texts.is_empty() {
                tally.record(kind, texts.iter().all(|text| held(text)), || format!("{} {item}", at()));
            }
        }
    }
}

/// Returns whether `message` may come from the provider's message `id`: thoughts are separate messages without such an
/// id.
fn same_provider_message(message: &Value, id: &str) -> bool {
    message["provider_message_id"] == id || message["is_thought"] == true
}

/// Collects the texts and numbers in a value.
fn collect_values(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => texts.push(number.to_string()),
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_values(item, texts)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !NOT_CONTENT.contains(&key.as_str()))
            .for_each(|(_, value)| collect_values(value, texts)),
    }
}

/// All words that occur anywhere in one of our records.
struct WordSet(BTreeSet<String>);

impl WordSet {
    fn of(value: &Value) -> Self {
        let mut words = BTreeSet::new();
        collect_words(&value.to_string().replace("\\n", " ").replace("\\t", " "), &mut words);
        Self(words)
    }

    /// Returns whether all words of `text` are among these. The query and fragment of an address, which may sign it,
    /// are ignored.
    fn contains(&self, text: &str) -> bool {
        let address = text.starts_with("http").then(|| text.split(['?', '#']).next()).flatten();
        let mut words = BTreeSet::new();
        collect_words(address.unwrap_or(text), &mut words);
        words.is_subset(&self.0)
    }
}

fn collect_words(text: &str, words: &mut BTreeSet<String>) {
    let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.extend(split.map(str::to_lowercase));
}
