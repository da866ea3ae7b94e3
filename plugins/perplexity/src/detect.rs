//! Finds threads among files, by what their turns hold.

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

/// Bytes of a head that are looked at first, for each layout.
const HEAD: usize = 64 * 1024;
/// Bytes that are looked at where those do not decide: for the usual layout, and for each other. With what is read ahead they are less
/// than the 16 MiB of a file that the host allows.
const LONG_HEADS: [usize; 2] = [8 * 1024 * 1024, 512 * 1024];
/// Threads of one file after which its head has said what it can.
const MAX_ELEMENTS: u64 = 8;
/// Turns of one thread that are looked at.
const MAX_TURNS: usize = 16;

/// Every export among the files: the threads of one folder in one shape.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut found: BTreeMap<(&str, &str), Detection> = BTreeMap::new();
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if !names::is_json(path) || names::is_junk(path) {
            continue;
        }
        let Some(Found { format, layout: _ }) = look(bundle, path)? else { continue };
        let export = found.entry((names::split(path).0, format)).or_insert_with(|| Detection {
            format: format.to_owned(),
            confidence: 85,
            ..Detection::default()
        });
        export.files.push(path.to_owned());
    }
    Ok(found.into_values().collect())
}

/// What a file is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) format: &'static str,
    pub(crate) layout: Layout,
}

/// Where the threads of a file stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// An RFC 6901 pointer to what holds them.
    pointer: &'static str,
    /// They are members of an object, each under its name.
    keyed: bool,
}

impl Layout {
    /// In the order in which they are tried: a file that is a thread holds no others.
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

/// What a file is; none if it holds no threads.
pub(crate) fn look(bundle: &Bundle, path: &str) -> Result<Option<Found>, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for layout in Layout::ALL {
        if let Some(found) = sample(bundle, path, layout, HEAD)? {
            return Ok(Some(found));
        }
    }
    if size <= HEAD as u64 {
        return Ok(None);
    }
    let [first, others] = LONG_HEADS;
    for (at, layout) in Layout::ALL.into_iter().enumerate() {
        let bytes = if at == 0 { first } else { others };
        if let Some(found) = sample(bundle, path, layout, bytes)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What the first `bytes` show if the threads stand so.
fn sample(bundle: &Bundle, path: &str, layout: Layout, bytes: usize) -> Result<Option<Found>, ImportError> {
    let mut format = None;
    let sampled = layout.threads(path).sample(bundle, bytes, |element| {
        format = judge(&element, layout);
        format.is_none() && element.index() + 1 < MAX_ELEMENTS
    });
    match sampled {
        // There is nothing of that name.
        Err(error) if error.kind == ErrorKind::NotThisFormat => {}
        sampled => sampled?,
    }
    Ok(format.map(|format| Found { format, layout }))
}

/// What one element shows.
#[derive(Default)]
struct Seen<'a> {
    metadata: BTreeSet<&'a str>,
    /// The keys of each of the first turns.
    turns: Vec<BTreeSet<&'a str>>,
    entries: Vec<BTreeSet<&'a str>>,
    /// A list of turns is there, perhaps an empty one.
    listed: bool,
}

fn judge(element: &Element<'_>, layout: Layout) -> Option<&'static str> {
    let mut seen = Seen::default();
    // A sample may break off inside the element; what was seen before counts.
    let (Ok(()) | Err(_)) = seen.read(&mut element.parser(), layout);
    let turn = |keys: &BTreeSet<&str>| {
        keys.contains("query") && (keys.contains("answer") || keys.contains("sources"))
    };
    let entry = |keys: &BTreeSet<&str>| {
        keys.contains("query_str")
            || (keys.contains("backend_uuid") && (keys.contains("blocks") || keys.contains("text")))
            || (keys.contains("query_status") && turn(keys))
    };
    let threaded = ["thread_id", "thread_title", "thread_url"].iter().any(|key| seen.metadata.contains(key));
    if seen.entries.iter().any(entry) {
        Some(ENTRIES)
    } else if seen.turns.iter().any(turn) || (threaded && seen.listed) {
        Some(TURNS)
    } else {
        None
    }
}

impl<'a> Seen<'a> {
    fn read(&mut self, json: &mut Parser<'a>, layout: Layout) -> Result<(), JsonError> {
        // A thread that is nothing but its entries has a name, or there would be no telling it from a list of something else.
        if layout.keyed && json.kind()? == Kind::Array {
            return lists(json, &mut self.entries);
        }
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "metadata" => keys(json, &mut self.metadata)?,
                "conversations" if json.kind()? == Kind::Array => {
                    self.listed = true;
                    lists(json, &mut self.turns)?;
                }
                "entries" if json.kind()? == Kind::Array => lists(json, &mut self.entries)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The keys of the first items of a list, as far as it goes.
fn lists<'a>(json: &mut Parser<'a>, found: &mut Vec<BTreeSet<&'a str>>) -> Result<(), JsonError> {
    if json.enter_array()? {
        while json.item()? {
            if found.len() < MAX_TURNS {
                found.push(BTreeSet::new());
                if let Some(last) = found.last_mut() {
                    keys(json, last)?;
                }
            }
        }
    }
    Ok(())
}

fn keys<'a>(json: &mut Parser<'a>, found: &mut BTreeSet<&'a str>) -> Result<(), JsonError> {
    if json.enter_object()? {
        while let Some(key) = json.key()? {
            found.insert(key);
        }
    }
    Ok(())
}
