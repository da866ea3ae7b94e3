//! Where the bytes of attachments are among the files of the export, and what the files were called.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
    ops::Bound,
};

use satchel_importer::{
    Arena, Bundle, ImportError, JsonArray,
    json::{Object, Value},
    names, sniff,
};

use crate::{
    layout::{self, Kind},
    source,
};

mod library;
mod questions;

pub(crate) use library::Library;
use questions::Asked;
pub(crate) use questions::Question;

/// Bytes of `conversation_asset_file_names.json`: about 60 a file, so this is enough for a million files.
const NAMES_LIMIT: u64 = 64 * 1024 * 1024;
/// Rows of `library_files.json` that are kept: 40 times the largest library seen, and about 60 MB.
const MAX_LIBRARY_ROWS: usize = 100_000;
/// Bytes at the head of `library_files.json` in which its rows are read, about 500 each.
const LIBRARY_LIMIT: usize = 64 * 1024 * 1024;

/// The files that attachments may point at.
#[derive(Default)]
pub(crate) struct Assets<'b> {
    bundle: Option<&'b Bundle>,
    files: Vec<File>,
    /// File name (without folders) → index into `files`.
    by_name: BTreeMap<String, usize>,
    /// Path → index into `files`.
    by_path: BTreeMap<String, usize>,
    /// Id of a file → what the side files say about it.
    known: BTreeMap<String, Known>,
    pub(crate) library: Library,
    /// Canvas documents: id → index into `documents`.
    by_document: BTreeMap<String, usize>,
    documents: Vec<File>,
    /// `chat.html`, and what its table says: id → path below the folder. Read when nothing else knows an id.
    page: Option<String>,
    asked: Asked,
    in_page: OnceCell<BTreeMap<String, String>>,
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
struct Known {
    name: Option<String>,
    mime: Option<String>,
    size: Option<u64>,
}

/// What is known about one pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found<'s> {
    pub(crate) path: Option<&'s str>,
    pub(crate) name: Option<&'s str>,
    pub(crate) mime: Option<&'s str>,
    pub(crate) size: Option<u64>,
}

impl<'b> Assets<'b> {
    /// Reads names and side files below `folder`, but for the `sources` of conversations; `warn` hears of side files
    /// that cannot be read.
    pub(crate) fn read(
        bundle: &'b Bundle,
        folder: &str,
        sources: &[String],
        mut warn: impl FnMut(&str, &str),
    ) -> Result<Self, ImportError> {
        let mut assets = Self { bundle: Some(bundle), ..Self::default() };
        for entry in bundle.entries() {
            let Some(below) = entry.path.strip_prefix(folder) else { continue };
            let kind = layout::kind(below);
            // A page has its table even where it is the source.
            if kind != Kind::Page && sources.contains(&entry.path) {
                continue;
            }
            match kind {
                Kind::Asset | Kind::Stranger => assets.add_file(&entry.path),
                Kind::AssetNames => match bundle.read(&entry.path, NAMES_LIMIT) {
                    Ok(bytes) => assets.add_names(&String::from_utf8_lossy(&bytes)),
                    Err(error) => warn(&entry.path, &error.message),
                },
                Kind::Library => {
                    if !assets.add_library(bundle, &entry.path)? {
                        warn(&entry.path, "it lists too many files; the last ones are passed over");
                    }
                }
                Kind::Textdoc => assets.add_document(&entry.path),
                Kind::Page => assets.page = Some(entry.path.clone()),
                Kind::Conversations
                | Kind::Manifest
                | Kind::User
                | Kind::Settings
                | Kind::Feedback
                | Kind::Comparisons
                | Kind::Shared
                | Kind::Groups
                | Kind::Codex
                | Kind::Memories
                | Kind::NotRead => {}
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
        self.by_document.insert(id.to_owned(), self.documents.len());
        self.documents.push(File::new(path));
    }

    /// `{"file-X.dat": "name it had"}`
    fn add_names(&mut self, text: &str) {
        let arena = Arena::new();
        for (key, value) in Object::parse(text.trim_start_matches('\u{feff}'), &arena).fields() {
            let id = key.strip_suffix(".dat").unwrap_or(key);
            if let Some(name) = value.words() {
                self.known.entry(id.to_owned()).or_default().name = Some(name.to_owned());
            }
        }
    }

    /// False if it lists more than are kept.
    fn add_library(&mut self, bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
        let mut rows = 0;
        JsonArray::new(path).sample(bundle, LIBRARY_LIMIT, |element| {
            let arena = element.arena();
            let row = Object::parse(element.text(), arena);
            for id in [row.text("file_id"), row.object("id", arena).text("id")].into_iter().flatten() {
                let known = self.known.entry(id.to_owned()).or_default();
                known.name = known.name.take().or_else(|| row.text("file_name").map(ToOwned::to_owned));
                known.mime = row.text("mime_type").map(ToOwned::to_owned);
                known.size = row.get("file_size_bytes").as_u64();
            }
            self.library.add(&row, arena);
            rows += 1;
            rows <= MAX_LIBRARY_ROWS
        })?;
        Ok(rows <= MAX_LIBRARY_ROWS)
    }

    /// What the files say about `id`; the file that it leads to counts as used.
    pub(crate) fn find(&self, id: &str) -> Found<'_> {
        self.asked.note(Question::File(id.to_owned()));
        let known = self.known.get(id);
        let name = known.and_then(|known| known.name.as_deref());
        let dat = || self.by_name.get(format!("{id}.dat").as_str());
        let at = dat().or_else(|| self.by_name.get(name?)).or_else(|| self.beginning_with(id));
        let at = at.or_else(|| self.of_page(id));
        let file = at.and_then(|at| self.files.get(*at));
        if let Some(file) = file {
            file.used.set(true);
        }
        Found {
            path: file.map(|file| file.path.as_str()),
            name,
            mime: known.and_then(|known| known.mime.as_deref()),
            size: known.and_then(|known| known.size),
        }
    }

    /// The canvas document `id`; it counts as used.
    pub(crate) fn document(&self, id: &str) -> Option<&str> {
        self.asked.note(Question::Document(id.to_owned()));
        let file = self.documents.get(*self.by_document.get(id)?)?;
        file.used.set(true);
        Some(&file.path)
    }

    /// The file of the library that is called `name`, in this message of this conversation.
    pub(crate) fn named(&self, name: &str, message: &str, thread: &str) -> Option<&str> {
        self.asked.note(Question::Named {
            name: name.to_owned(),
            message: message.to_owned(),
            thread: thread.to_owned(),
        });
        self.library.named(name, message, thread)
    }

    /// Canvas documents that no message named: id and path.
    pub(crate) fn unused_documents(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.by_document.iter().filter_map(|(id, at)| Some((id, self.documents.get(*at)?)));
        all.filter(|(_, file)| !file.used.get()).map(|(id, file)| (id.as_str(), file.path.as_str()))
    }

    /// The type of a file by its first bytes.
    pub(crate) fn mime(&self, path: &str) -> Option<&'static str> {
        let file = self.files.get(*self.by_path.get(path)?)?;
        *file.mime.get_or_init(|| sniff::mime(self.bundle?, path))
    }

    /// Bytes of a file.
    pub(crate) fn size(&self, path: &str) -> Option<u64> {
        Some(self.bundle?.entry(path)?.size)
    }

    /// What the table in `chat.html` says of an id.
    fn of_page(&self, id: &str) -> Option<&usize> {
        let page = self.page.as_deref()?;
        let table = self.in_page.get_or_init(|| {
            let text =
                self.bundle.and_then(|bundle| source::assets_in_page(bundle, page)).unwrap_or_default();
            let arena = Arena::new();
            let entry =
                |(key, value): (&str, Value<'_>)| Some((id_of(key).to_owned(), value.words()?.to_owned()));
            Object::parse(&text, &arena).fields().filter_map(entry).collect()
        });
        let path = table.get(id)?;
        let (folder, _) = names::split(page);
        self.by_path.get(&format!("{folder}{path}")).or_else(|| self.by_name.get(names::split(path).1))
    }

    /// `file-X-holiday.jpg` for `file-X`, but not `file-XY.jpg`.
    fn beginning_with(&self, id: &str) -> Option<&usize> {
        if id.len() < SHORTEST_ID {
            return None;
        }
        let names = self
            .by_name
            .range::<str, _>((Bound::Included(id), Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(id));
        let whole = |name: &str| !name[id.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        // A name that only begins like the id is passed over; there are few of those.
        names.take(MAX_NEIGHBOURS).find(|(name, _)| whole(name)).map(|(_, at)| at)
    }

    /// Files that no message pointed at: how many, and the first.
    pub(crate) fn unused(&self) -> Option<(usize, &str)> {
        let mut unused = self.files.iter().filter(|file| !file.used.get());
        let first = unused.next()?;
        Some((1 + unused.count(), &first.path))
    }
}

/// Bytes; a shorter id would match the beginning of any name.
const SHORTEST_ID: usize = 6;
/// Names that begin with one id and belong to another.
const MAX_NEIGHBOURS: usize = 64;

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
    fn pointers_hold_ids() {
        assert_eq!(id_of("file-service://file-AbC"), "file-AbC");
        assert_eq!(id_of("sediment://file_00ff"), "file_00ff");
        assert_eq!(id_of("sediment://0a1b#file_00ff#p_0.png"), "file_00ff");
        assert_eq!(id_of("https://files.example.com/x.png?sig=1"), "files.example.com/x.png");
        assert_eq!(id_of("bare"), "bare");
    }

    #[test]
    fn an_id_is_not_taken_for_a_longer_one() {
        let mut assets = Assets::default();
        assets.add_file("x/file-Named12-other.jpg");
        assert_eq!(assets.find("file-Named1"), Found::default());
        assets.add_file("x/file-Named1-mine.jpg");
        assert_eq!(assets.find("file-Named1").path, Some("x/file-Named1-mine.jpg"));
        assert_eq!(assets.unused(), Some((1, "x/file-Named12-other.jpg")));
    }
}
