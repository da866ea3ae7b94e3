//! Finds PAM documents among the files of a source, by the schema that they declare and not by their names.

use std::{collections::HashMap, io::Read};

use satchel_pam::{conversation, embedding, parse, store};

use super::Bundle;
use crate::{FileEntry, FileSet as _};

/// The file of a Satchel bundle that lists all others.
pub const MANIFEST: &str = "satchel-manifest.json";
/// The signature of the manifest.
pub const SIGNATURE: &str = "satchel-manifest.sig";

/// The name of the memory store in every bundle.
pub(crate) const STORE: &str = "memory-store.json";
/// Bytes at the start of a file that are searched for `schema`; almost all writers put it there.
const HEAD: u64 = 4 << 10;
/// The longest file, in bytes, that is searched to its end for `schema`; a file with a PAM name always is.
const MAX_SEARCHED_BYTES: u64 = 16 << 20;
/// The longest conversation document, in bytes: it is held in memory, and none of its messages exceeds the limit of the
/// store.
pub const MAX_CONVERSATION_BYTES: u64 = 120 << 20;

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
    pub companions: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DocumentKind {
    Store,
    Conversation,
    Embeddings,
}

impl PamFiles {
    /// Returns all files, sorted by name.
    pub fn files(&self) -> Vec<String> {
        let Self { root: _, store, conversations, embeddings, companions } = self;
        let mut files: Vec<String> =
            store.iter().chain(conversations).chain(embeddings).chain(companions).cloned().collect();
        files.sort();
        files
    }

    fn add(&mut self, kind: DocumentKind, name: String) {
        match kind {
            DocumentKind::Store => self.store = Some(name),
            DocumentKind::Conversation => self.conversations.push(name),
            DocumentKind::Embeddings => self.embeddings.push(name),
        }
    }
}

/// Returns the PAM documents of `bundle`: each store with the documents in or below its folder, and all others as one
/// set.
pub fn find(bundle: &Bundle) -> Vec<PamFiles> {
    let single = bundle.list().len() == 1;
    let mut documents: Vec<(DocumentKind, String)> = bundle
        .list()
        .iter()
        .filter(|entry| single || has_json_extension(&entry.path))
        .filter_map(|entry| Some((kind_of(bundle, entry)?, entry.path.clone())))
        .collect();
    // Of two stores in one folder, the one with the usual name belongs to the bundle.
    documents.sort_by_key(|(kind, name)| {
        (*kind != DocumentKind::Store, folder_of(name).to_owned(), !has_file_name(name, STORE))
    });
    let mut found: Vec<PamFiles> = Vec::new();
    let mut roots: HashMap<String, usize> = HashMap::new();
    let mut without_store = PamFiles::default();
    for (kind, name) in documents {
        if kind == DocumentKind::Store {
            let root = folder_of(&name).to_owned();
            roots.entry(root.clone()).or_insert(found.len());
            found.push(PamFiles { root, store: Some(name), ..PamFiles::default() });
            continue;
        }
        match nearest_store(&roots, &name) {
            Some(at) => found[at].add(kind, name),
            None => without_store.add(kind, name),
        }
    }
    for entry in bundle.list() {
        if let Some(at) =
            nearest_store(&roots, &entry.path).filter(|at| is_companion(&found[*at].root, &entry.path))
        {
            found[at].companions.push(entry.path.clone());
        }
    }
    found.extend((without_store != PamFiles::default()).then_some(without_store));
    found
}

/// Returns the files around a store that does not declare its schema.
pub fn find_around(bundle: &Bundle, store: &str) -> PamFiles {
    let root = folder_of(store).to_owned();
    let mut files = PamFiles { store: Some(store.to_owned()), root, ..PamFiles::default() };
    for entry in bundle.list().iter().filter(|entry| entry.path != store) {
        let Some(name) = entry.path.strip_prefix(&files.root) else { continue };
        if name.starts_with("conversations/") && has_json_extension(name) {
            files.conversations.push(entry.path.clone());
        } else if name == "embeddings.json" {
            files.embeddings.push(entry.path.clone());
        } else if is_companion(&files.root, &entry.path) {
            files.companions.push(entry.path.clone());
        }
    }
    files
}

/// Returns the store in the nearest folder above a file.
fn nearest_store(roots: &HashMap<String, usize>, name: &str) -> Option<usize> {
    let mut folder = folder_of(name);
    loop {
        if let Some(at) = roots.get(folder) {
            return Some(*at);
        }
        folder = folder_of(folder.strip_suffix('/')?);
    }
}

fn is_companion(root: &str, name: &str) -> bool {
    name.strip_prefix(root)
        .is_some_and(|name| name == MANIFEST || name == SIGNATURE || name.starts_with("attachments/"))
}

fn kind_of(bundle: &Bundle, entry: &FileEntry) -> Option<DocumentKind> {
    let head = read_head(bundle, &entry.path, HEAD)?;
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    if !text.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    if let Some(schema) = parse::schema_of(&head) {
        return kind_of_schema(&schema);
    }
    let usual = has_file_name(&entry.path, STORE)
        || has_file_name(&entry.path, "embeddings.json")
        || folder_of(&entry.path).ends_with("conversations/");
    // Writers that sort their keys put `schema` near the end.
    if (head.len() as u64) < HEAD || !usual && entry.size > MAX_SEARCHED_BYTES {
        return None;
    }
    let whole = bundle.open(&entry.path, 0).ok()?;
    kind_of_schema(&parse::schema_from(whole).ok()??)
}

fn kind_of_schema(schema: &str) -> Option<DocumentKind> {
    match schema {
        store::SCHEMA => Some(DocumentKind::Store),
        conversation::SCHEMA => Some(DocumentKind::Conversation),
        embedding::SCHEMA => Some(DocumentKind::Embeddings),
        _ => None,
    }
}

/// Returns the first bytes of a file, or `None` if it cannot be read; the next reader of the file will report the
/// error.
fn read_head(bundle: &Bundle, name: &str, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bundle.open(name, 0).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the folder of a file in its source, with a final `/`, or an empty string.
pub fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |end| &name[..=end])
}

fn has_file_name(path: &str, name: &str) -> bool {
    path.rsplit('/').next() == Some(name)
}

fn has_json_extension(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}
