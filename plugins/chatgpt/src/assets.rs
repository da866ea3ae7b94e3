//! The files that attachments refer to: where they are in the export, and what the other files say about them.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    ops::Bound,
};

use satchel_importer::{
    Arena, Bundle, ImportError, JsonArray, Sink,
    json::{Object, Value},
    names, sniff,
};

use crate::{
    layout::{self, FileKind},
    record_list,
};

mod library;
mod lookup;

use library::Library;
pub(crate) use lookup::Lookup;

/// Bytes of `conversation_asset_file_names.json`: at about 60 a file, enough for a million files.
const NAMES_LIMIT: u64 = 64 * 1024 * 1024;
/// Rows of `library_files.json`: 40 times the largest library seen, and about 60 MB.
const MAX_LIBRARY_ROWS: usize = 100_000;
/// Bytes at the head of `library_files.json` that are read; a row has about 500.
const LIBRARY_LIMIT: usize = 64 * 1024 * 1024;

/// The files that attachments may refer to.
#[derive(Default)]
pub(crate) struct Assets<'b> {
    bundle: Option<&'b Bundle>,
    files: Vec<File>,
    /// File name (without folders) → index into `files`.
    by_name: BTreeMap<String, usize>,
    /// Path → index into `files`.
    by_path: BTreeMap<String, usize>,
    /// Id of a file → what the side files say about it.
    info: BTreeMap<String, FileInfo>,
    pub(crate) library: Library,
    /// Canvas documents by id.
    documents: BTreeMap<String, File>,
    /// Path of `chat.html`.
    page: Option<String>,
    /// The table of `chat.html`: id → path below the folder. Read when no other file has an id.
    page_table: OnceCell<BTreeMap<String, String>>,
    /// Look-ups by the current conversation.
    lookups: RefCell<Vec<Lookup>>,
}

#[derive(Debug)]
struct File {
    path: String,
    used: Cell<bool>,
    mime: OnceCell<Option<&'static str>>,
}

impl File {
    fn new(path: &str) -> Self {
        Self { path: path.to_owned(), used: Cell::new(false), mime: OnceCell::new() }
    }
}

#[derive(Debug, Default)]
struct FileInfo {
    name: Option<String>,
    mime: Option<String>,
    size: Option<u64>,
}

/// What the export says about one file. Its `Debug` text goes into stored notes ([`crate::reuse`]): with another text every
/// conversation with files is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found<'s> {
    pub(crate) path: Option<&'s str>,
    pub(crate) name: Option<&'s str>,
    pub(crate) mime: Option<&'s str>,
    pub(crate) size: Option<u64>,
}

impl<'b> Assets<'b> {
    /// Reads the names of the files in `folder`, except those of `conversations`, and the side files about them; warns about side
    /// files that cannot be read.
    pub(crate) fn read(
        bundle: &'b Bundle,
        folder: &str,
        conversations: &[String],
        sink: &mut Sink,
    ) -> Result<Self, ImportError> {
        let mut assets = Self { bundle: Some(bundle), ..Self::default() };
        for entry in bundle.entries() {
            let Some(path) = entry.path.strip_prefix(folder) else { continue };
            let kind = layout::kind(path);
            // The table of a page is used even if its conversations are read.
            if kind != FileKind::Page && conversations.contains(&entry.path) {
                continue;
            }
            match kind {
                FileKind::Asset | FileKind::Unknown => assets.add_file(&entry.path),
                FileKind::AssetNames => match bundle.read(&entry.path, NAMES_LIMIT) {
                    Ok(bytes) => assets.add_names(&String::from_utf8_lossy(&bytes)),
                    Err(error) => sink.warn(&entry.path, &error.message),
                },
                FileKind::Library => {
                    if !assets.add_library(bundle, &entry.path)? {
                        sink.warn(&entry.path, "it lists too many files; the last ones are passed over");
                    }
                }
                FileKind::Textdoc => assets.add_document(&entry.path),
                FileKind::Page => assets.page = Some(entry.path.clone()),
                FileKind::Conversations
                | FileKind::Manifest
                | FileKind::User
                | FileKind::Settings
                | FileKind::Feedback
                | FileKind::Comparisons
                | FileKind::Shared
                | FileKind::Groups
                | FileKind::Codex
                | FileKind::Memories
                | FileKind::NotRead => {}
            }
        }
        Ok(assets)
    }

    fn add_file(&mut self, path: &str) {
        let (_, name) = names::split(path);
        if names::is_junk(path) {
            return;
        }
        self.by_name.entry(name.to_owned()).or_insert(self.files.len());
        self.by_path.insert(path.to_owned(), self.files.len());
        self.files.push(File::new(path));
    }

    fn add_document(&mut self, path: &str) {
        let (_, name) = names::split(path);
        let id = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        self.documents.insert(id.to_owned(), File::new(path));
    }

    /// `{"file-X.dat": "original name"}`
    fn add_names(&mut self, text: &str) {
        let arena = Arena::new();
        for (key, value) in Object::parse(text.trim_start_matches('\u{feff}'), &arena).fields() {
            let id = key.strip_suffix(".dat").unwrap_or(key);
            if let Some(name) = value.nonempty_text() {
                self.info.entry(id.to_owned()).or_default().name = Some(name.to_owned());
            }
        }
    }

    /// False if the file lists more than [`MAX_LIBRARY_ROWS`].
    fn add_library(&mut self, bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
        let mut rows = 0;
        JsonArray::new(path).sample(bundle, LIBRARY_LIMIT, |element| {
            let arena = element.arena();
            let row = Object::parse(element.text(), arena);
            for id in [row.text("file_id"), row.object("id", arena).text("id")].into_iter().flatten() {
                let info = self.info.entry(id.to_owned()).or_default();
                info.name = info.name.take().or_else(|| row.text("file_name").map(ToOwned::to_owned));
                info.mime = row.text("mime_type").map(ToOwned::to_owned);
                info.size = row.get("file_size_bytes").as_u64();
            }
            self.library.add(&row, arena);
            rows += 1;
            rows <= MAX_LIBRARY_ROWS
        })?;
        Ok(rows <= MAX_LIBRARY_ROWS)
    }

    /// Finds the file `id` and marks it as used.
    pub(crate) fn find(&self, id: &str) -> Found<'_> {
        self.lookups.borrow_mut().push(Lookup::File(id.to_owned()));
        let info = self.info.get(id);
        let name = info.and_then(|info| info.name.as_deref());
        let dat = || self.by_name.get(format!("{id}.dat").as_str());
        let at = dat().or_else(|| self.by_name.get(name?)).or_else(|| self.find_by_prefix(id));
        let at = at.or_else(|| self.find_in_page(id));
        let file = at.and_then(|at| self.files.get(*at)).inspect(|file| file.used.set(true));
        Found {
            path: file.map(|file| file.path.as_str()),
            name,
            mime: info.and_then(|info| info.mime.as_deref()),
            size: info.and_then(|info| info.size),
        }
    }

    /// Finds the canvas document `id` and marks it as used.
    pub(crate) fn document(&self, id: &str) -> Option<&str> {
        self.lookups.borrow_mut().push(Lookup::Document(id.to_owned()));
        self.documents.get(id).inspect(|file| file.used.set(true)).map(|file| file.path.as_str())
    }

    /// The id of the library file `name` that a message of the conversation `thread` shows.
    pub(crate) fn named(&self, name: &str, message: &str, thread: &str) -> Option<&str> {
        let owned = str::to_owned;
        let lookup = Lookup::Named { name: owned(name), message: owned(message), thread: owned(thread) };
        self.lookups.borrow_mut().push(lookup);
        self.library.named(name, message, thread)
    }

    /// Forgets the look-ups of the conversation before.
    pub(crate) fn clear_lookups(&self) {
        self.lookups.take();
    }

    /// The look-ups since then, each once.
    pub(crate) fn take_lookups(&self) -> Vec<Lookup> {
        let mut lookups = self.lookups.take();
        lookups.sort();
        lookups.dedup();
        lookups
    }

    /// Repeats a look-up and returns its result as text: equal texts mean equal attachments.
    pub(crate) fn repeat(&self, lookup: &Lookup) -> String {
        match lookup {
            Lookup::File(id) => {
                let found = self.find(id);
                format!("{found:?} {:?}", found.path.and_then(|path| self.size(path)))
            }
            Lookup::Document(id) => {
                let path = self.document(id);
                format!("{path:?} {:?}", path.and_then(|path| self.size(path)))
            }
            Lookup::Named { name, message, thread } => {
                format!("{:?}", self.library.named(name, message, thread))
            }
        }
    }

    /// Canvas documents that no message named: id and path.
    pub(crate) fn unused_documents(&self) -> impl Iterator<Item = (&str, &str)> {
        let unused = self.documents.iter().filter(|(_, file)| !file.used.get());
        unused.map(|(id, file)| (id.as_str(), file.path.as_str()))
    }

    /// The type of a file, detected from its first bytes.
    pub(crate) fn mime(&self, path: &str) -> Option<&'static str> {
        let file = self.files.get(*self.by_path.get(path)?)?;
        *file.mime.get_or_init(|| sniff::mime(self.bundle?, path))
    }

    /// Bytes of a file.
    pub(crate) fn size(&self, path: &str) -> Option<u64> {
        Some(self.bundle?.entry(path)?.size)
    }

    /// The file to which the table in `chat.html` maps `id`.
    fn find_in_page(&self, id: &str) -> Option<&usize> {
        let page = self.page.as_deref()?;
        let table = self.page_table.get_or_init(|| {
            let text =
                self.bundle.and_then(|bundle| record_list::assets_in_page(bundle, page)).unwrap_or_default();
            let arena = Arena::new();
            let entry = |(key, value): (&str, Value<'_>)| {
                Some((id_of(key).to_owned(), value.nonempty_text()?.to_owned()))
            };
            Object::parse(&text, &arena).fields().filter_map(entry).collect()
        });
        let path = table.get(id)?;
        let (folder, _) = names::split(page);
        self.by_path.get(&format!("{folder}{path}")).or_else(|| self.by_name.get(names::split(path).1))
    }

    /// `file-X-holiday.jpg` for `file-X`, but not `file-XY.jpg`.
    fn find_by_prefix(&self, id: &str) -> Option<&usize> {
        if id.len() < SHORTEST_ID {
            return None;
        }
        let names = self
            .by_name
            .range::<str, _>((Bound::Included(id), Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(id));
        let whole = |name: &str| !name[id.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        names.take(MAX_PREFIX_MATCHES).find(|(name, _)| whole(name)).map(|(_, at)| at)
    }

    /// Files that no message refers to: how many, and the first.
    pub(crate) fn unused(&self) -> Option<(usize, &str)> {
        let mut unused = self.files.iter().filter(|file| !file.used.get());
        let first = unused.next()?;
        Some((1 + unused.count(), &first.path))
    }
}

/// Bytes; a shorter id could be the beginning of any name.
const SHORTEST_ID: usize = 6;
/// Names that begin with an id and are compared with it.
const MAX_PREFIX_MATCHES: usize = 64;

/// The id inside an asset pointer: `file-service://file-X`, `sediment://file_X`, `sediment://0a1b#file_X#p_0.png`.
pub(crate) fn id_of(pointer: &str) -> &str {
    let rest = pointer.split_once("://").map_or(pointer, |(_, rest)| rest);
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    rest.split('#').find(|part| part.starts_with("file")).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_extracted_from_pointers() {
        assert_eq!(id_of("file-service://file-AbC"), "file-AbC");
        assert_eq!(id_of("sediment://file_00ff"), "file_00ff");
        assert_eq!(id_of("sediment://0a1b#file_00ff#p_0.png"), "file_00ff");
        assert_eq!(id_of("https://files.example.com/x.png?sig=1"), "files.example.com/x.png");
        assert_eq!(id_of("bare"), "bare");
    }

    #[test]
    fn an_id_does_not_match_a_longer_one() {
        let mut assets = Assets::default();
        assets.add_file("x/file-Named12-other.jpg");
        assert_eq!(assets.find("file-Named1"), Found::default());
        assets.add_file("x/file-Named1-mine.jpg");
        assert_eq!(assets.find("file-Named1").path, Some("x/file-Named1-mine.jpg"));
        assert_eq!(assets.unused(), Some((1, "x/file-Named12-other.jpg")));
    }
}
