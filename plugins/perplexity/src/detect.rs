//! Finds threads among files, by the keys of their turns.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser, json::Kind, names,
};

/// `{metadata, conversations: [{query, answer, …}]}`.
pub(crate) const TURNS: &str = "perplexity-importer/2026.01";
/// `{status, thread_metadata, entries: [{query_str, blocks, …}]}`.
pub(crate) const ENTRIES: &str = "perplexity-importer/2026.02";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 2] = [TURNS, ENTRIES];

/// Bytes of a head that are sampled first, for each layout.
const HEAD: usize = 64 * 1024;
/// Bytes that are sampled if those do not decide: for the usual layout, and for each other one. With read-ahead they stay
/// below the 16 MiB of a file that the host allows.
const LONG_HEADS: [usize; 2] = [8 * 1024 * 1024, 512 * 1024];
/// Threads of one head that are sampled.
const MAX_ELEMENTS: u64 = 8;
/// Turns of one thread that are sampled.
const MAX_TURNS: usize = 16;

/// Every export among the files: the threads of one folder in one format.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut found: BTreeMap<(&str, &str), Detection> = BTreeMap::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if !names::is_json(path) || names::is_junk(path) {
            continue;
        }
        let Some(Threads { format, layout: _ }) = find_threads(bundle, path)? else { continue };
        let export = found.entry((names::split(path).0, format)).or_insert_with(|| Detection {
            format: format.to_owned(),
            confidence: 95,
            ..Detection::default()
        });
        export.files.push(path.to_owned());
    }
    Ok(found.into_values().collect())
}

/// The threads of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) format: &'static str,
    pub(crate) layout: Layout,
}

/// Where a file has its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// An RFC 6901 pointer to the list or object of threads.
    pointer: &'static str,
    /// They are members of an object, each with its name as the key.
    keyed: bool,
}

impl Layout {
    /// In the order in which they are tried: a file that is a thread has no others.
    const ALL: [Self; 6] = [
        Self { pointer: "", keyed: false },
        Self { pointer: "/threads", keyed: false },
        Self { pointer: "/conversations", keyed: false },
        Self { pointer: "", keyed: true },
        Self { pointer: "/threads", keyed: true },
        Self { pointer: "/conversations", keyed: true },
    ];

    /// The threads of the file `path`.
    pub(crate) fn threads(self, path: &str) -> JsonArray<'_> {
        let threads = JsonArray::new(path).pointer(self.pointer);
        if self.keyed { threads.members() } else { threads }
    }
}

/// Finds the threads of a file; none if it has none.
pub(crate) fn find_threads(bundle: &Bundle, path: &str) -> Result<Option<Threads>, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for layout in Layout::ALL {
        if let Some(found) = sample(bundle, path, layout, HEAD)? {
            return Ok(Some(found));
        }
    }
    if size <= HEAD as u64 {
        return Ok(None);
    }
    let [usual, other] = LONG_HEADS;
    for (at, layout) in Layout::ALL.into_iter().enumerate() {
        let bytes = if at == 0 { usual } else { other };
        if let Some(found) = sample(bundle, path, layout, bytes)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Samples the first `bytes` for threads in `layout`.
fn sample(bundle: &Bundle, path: &str, layout: Layout, bytes: usize) -> Result<Option<Threads>, ImportError> {
    let mut format = None;
    let sampled = layout.threads(path).sample(bundle, bytes, |element| {
        format = format_of(&element, layout);
        format.is_none() && element.index() + 1 < MAX_ELEMENTS
    });
    match sampled {
        // The pointer leads to nothing.
        Err(error) if error.kind == ErrorKind::NotThisFormat => {}
        sampled => sampled?,
    }
    Ok(format.map(|format| Threads { format, layout }))
}

/// The keys of one element.
#[derive(Default)]
struct Keys<'a> {
    metadata: BTreeSet<&'a str>,
    /// The keys of each of the first turns.
    turns: Vec<BTreeSet<&'a str>>,
    entries: Vec<BTreeSet<&'a str>>,
    /// It has a list of turns, perhaps an empty one.
    has_turns: bool,
}

fn format_of(element: &Element<'_>, layout: Layout) -> Option<&'static str> {
    let mut keys = Keys::default();
    // A sample may end inside the element; what was read before counts.
    let (Ok(()) | Err(_)) = keys.read(&mut element.parser(), layout);
    let turn = |keys: &BTreeSet<&str>| {
        keys.contains("query") && (keys.contains("answer") || keys.contains("sources"))
    };
    let entry = |keys: &BTreeSet<&str>| {
        keys.contains("query_str")
            || (keys.contains("backend_uuid") && (keys.contains("blocks") || keys.contains("text")))
            || (keys.contains("query_status") && turn(keys))
    };
    let is_thread = ["thread_id", "thread_title", "thread_url"].iter().any(|key| keys.metadata.contains(key));
    if keys.entries.iter().any(entry) {
        Some(ENTRIES)
    } else if keys.turns.iter().any(turn) || (is_thread && keys.has_turns) {
        Some(TURNS)
    } else {
        None
    }
}

impl<'a> Keys<'a> {
    fn read(&mut self, json: &mut Parser<'a>, layout: Layout) -> Result<(), JsonError> {
        // A thread can be a bare list of entries only if it has a name: any other list could be anything.
        if layout.keyed && json.kind()? == Kind::Array {
            return read_items(json, &mut self.entries);
        }
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "metadata" => read_keys(json, &mut self.metadata)?,
                "conversations" if json.kind()? == Kind::Array => {
                    self.has_turns = true;
                    read_items(json, &mut self.turns)?;
                }
                "entries" if json.kind()? == Kind::Array => read_items(json, &mut self.entries)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads the keys of the first items of a list.
fn read_items<'a>(json: &mut Parser<'a>, found: &mut Vec<BTreeSet<&'a str>>) -> Result<(), JsonError> {
    if json.enter_array()? {
        while json.item()? {
            if found.len() < MAX_TURNS {
                found.push(BTreeSet::new());
                if let Some(last) = found.last_mut() {
                    read_keys(json, last)?;
                }
            }
        }
    }
    Ok(())
}

fn read_keys<'a>(json: &mut Parser<'a>, found: &mut BTreeSet<&'a str>) -> Result<(), JsonError> {
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            found.insert(key);
        }
    }
    Ok(())
}
