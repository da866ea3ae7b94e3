//! Finds PAM documents among the files of a source, by the schema that they declare and not by their names.

use std::{collections::HashMap, io::Read};

use satchel_pam::{conversation, embedding, parse, store};

use super::Bundle;
use crate::{Entry, Files as _};

/// The file of a Satchel bundle that lists all others.
pub const MANIFEST: &str = "satchel-manifest.json";
/// The signature of the manifest.
pub const SIGNATURE: &str = "satchel-manifest.sig";

/// The name of the memory store in every bundle.
const STORE: &str = "memory-store.json";
/// Bytes at the start of a file that are searched for `schema`; almost all writers put it there.
const HEAD: u64 = 4 << 10;
/// The longest file, in bytes, that is searched to its end for `schema`; a file with a PAM name always is.
const SEARCHED: u64 = 16 << 20;
/// The longest conversation document, in bytes: it is held in memory, and none of its messages exceeds the limit of the
/// store.
pub const LONGEST_CONVERSATION: u64 = 120 << 20;

/// The documents that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PamFiles {
    /// The folder of the store in the source, with a final `/`, or empty.
    pub root: String,
    /// `None` if the documents came without a store.
    pub store: Option<String>,
    pub conversations: Vec<String>,
    pub embeddings: Vec<String>,
    /// Manifest, signature and attachments of a bundle.
    pub beside: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Store,
    Conversation,
    Embeddings,
}

impl PamFiles {
    /// Returns all files, sorted by name.
    pub fn files(&self) -> Vec<String> {
        let Self { root: _, store, conversations, embeddings, beside } = self;
        let mut files: Vec<String> =
            store.iter().chain(conversations).chain(embeddings).chain(beside).cloned().collect();
        files.sort();
        files
    }

    fn add(&mut self, kind: Kind, name: String) {
        match kind {
            Kind::Store => self.store = Some(name),
            Kind::Conversation => self.conversations.push(name),
            Kind::Embeddings => self.embeddings.push(name),
        }
    }
}

/// Returns the PAM documents of `bundle`: each store with the documents in or below its folder, and all others as one
/// set.
pub fn find(bundle: &Bundle) -> Vec<PamFiles> {
    let lone = bundle.list().len() == 1;
    let mut documents: Vec<(Kind, String)> = bundle
        .list()
        .iter()
        .filter(|entry| lone || has_json_extension(&entry.path))
        .filter_map(|entry| Some((kind_of(bundle, entry)?, entry.path.clone())))
        .collect();
    // Of two stores in one folder, the one with the usual name belongs to the bundle.
    documents
        .sort_by_key(|(kind, name)| (*kind != Kind::Store, folder_of(name).to_owned(), !named(name, STORE)));
    let mut found: Vec<PamFiles> = Vec::new();
    let mut roots: HashMap<String, usize> = HashMap::new();
    let mut homeless = PamFiles::default();
    for (kind, name) in documents {
        if kind == Kind::Store {
            let root = folder_of(&name).to_owned();
            roots.entry(root.clone()).or_insert(found.len());
            found.push(PamFiles { root, store: Some(name), ..PamFiles::default() });
            continue;
        }
        match home(&roots, &name) {
            Some(at) => found[at].add(kind, name),
            None => homeless.add(kind, name),
        }
    }
    for entry in bundle.list() {
        if let Some(at) = home(&roots, &entry.path).filter(|at| beside(&found[*at].root, &entry.path)) {
            found[at].beside.push(entry.path.clone());
        }
    }
    found.extend((homeless != PamFiles::default()).then_some(homeless));
    found
}

/// Returns the files around a store that does not declare its schema.
pub fn around(bundle: &Bundle, store: &str) -> PamFiles {
    let root = folder_of(store).to_owned();
    let mut files = PamFiles { store: Some(store.to_owned()), root, ..PamFiles::default() };
    for entry in bundle.list().iter().filter(|entry| entry.path != store) {
        let Some(name) = entry.path.strip_prefix(&files.root) else { continue };
        if name.starts_with("conversations/") && has_json_extension(name) {
            files.conversations.push(entry.path.clone());
        } else if name == "embeddings.json" {
            files.embeddings.push(entry.path.clone());
        } else if beside(&files.root, &entry.path) {
            files.beside.push(entry.path.clone());
        }
    }
    files
}

/// Returns the store in the nearest folder above a file.
fn home(roots: &HashMap<String, usize>, name: &str) -> Option<usize> {
    let mut folder = folder_of(name);
    loop {
        if let Some(at) = roots.get(folder) {
            return Some(*at);
        }
        folder = folder_of(folder.strip_suffix('/')?);
    }
}

fn beside(root: &str, name: &str) -> bool {
    name.strip_prefix(root)
        .is_some_and(|name| name == MANIFEST || name == SIGNATURE || name.starts_with("attachments/"))
}

fn kind_of(bundle: &Bundle, entry: &Entry) -> Option<Kind> {
    let head = read(bundle, &entry.path, HEAD)?;
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    if !text.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    if let Some(schema) = parse::schema_of(&head) {
        return kind(&schema);
    }
    let usual = named(&entry.path, STORE)
        || named(&entry.path, "embeddings.json")
        || folder_of(&entry.path).ends_with("conversations/");
    // Writers that sort their keys put `schema` near the end.
    if (head.len() as u64) < HEAD || !usual && entry.size > SEARCHED {
        return None;
    }
    let whole = bundle.open(&entry.path, 0).ok()?;
    kind(&parse::schema_from(whole).ok()??)
}

fn kind(schema: &str) -> Option<Kind> {
    match schema {
        store::SCHEMA => Some(Kind::Store),
        conversation::SCHEMA => Some(Kind::Conversation),
        embedding::SCHEMA => Some(Kind::Embeddings),
        _ => None,
    }
}

/// Returns the first bytes of a file, or `None` if it cannot be read; the next reader of the file will report the
/// error.
fn read(bundle: &Bundle, name: &str, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bundle.open(name, 0).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the folder of a file in its source, with a final `/`, or an empty string.
pub fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |end| &name[..=end])
}

fn named(path: &str, name: &str) -> bool {
    path.rsplit('/').next() == Some(name)
}

fn has_json_extension(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}
