//! Where the bytes of attachments are among the files of the export, and what the files were called.

use std::{cell::Cell, collections::BTreeMap, ops::Bound};

use satchel_importer::{Arena, Bundle, ImportError, JsonArray, json::Object, names};

use crate::layout::{self, Kind};

/// Bytes of `conversation_asset_file_names.json`: about 60 a file, so this is enough for a million files.
const NAMES_LIMIT: u64 = 64 * 1024 * 1024;
/// Rows of `library_files.json` that are kept: 100 times the largest library seen.
const MAX_LIBRARY_ROWS: usize = 250_000;
/// Bytes at the head of `library_files.json` in which its rows are read, about 500 each.
const LIBRARY_LIMIT: usize = 64 * 1024 * 1024;

/// The files that attachments may point at.
#[derive(Debug, Default)]
pub(crate) struct Assets {
    files: Vec<File>,
    /// File name (without folders) → index into `files`.
    by_name: BTreeMap<String, usize>,
    /// Id of a file → what the side files say about it.
    known: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct File {
    path: String,
    used: Cell<bool>,
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

impl Assets {
    /// Reads names and side files below `folder`, but for the `sources` of conversations; `warn` hears of side files
    /// that cannot be read.
    pub(crate) fn read(
        bundle: &Bundle,
        folder: &str,
        sources: &[String],
        mut warn: impl FnMut(&str, &str),
    ) -> Result<Self, ImportError> {
        let mut assets = Self::default();
        for entry in bundle.entries().iter().filter(|entry| !sources.contains(&entry.path)) {
            let Some(below) = entry.path.strip_prefix(folder) else { continue };
            match layout::kind(below) {
                Kind::Asset | Kind::Stranger => assets.add_file(&entry.path),
                Kind::AssetNames => match bundle.read(&entry.path, NAMES_LIMIT) {
                    Ok(bytes) => assets.add_names(&String::from_utf8_lossy(&bytes)),
                    Err(error) => warn(&entry.path, &error.message),
                },
                Kind::Library => assets.add_library(bundle, &entry.path)?,
                Kind::Conversations
                | Kind::Manifest
                | Kind::User
                | Kind::Settings
                | Kind::Copy
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
        self.files.push(File { path: path.to_owned(), used: Cell::new(false) });
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

    fn add_library(&mut self, bundle: &Bundle, path: &str) -> Result<(), ImportError> {
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
            rows += 1;
            rows < MAX_LIBRARY_ROWS
        })
    }

    /// What the files say about `id`; the file that it leads to counts as used.
    pub(crate) fn find(&self, id: &str) -> Found<'_> {
        let known = self.known.get(id);
        let name = known.and_then(|known| known.name.as_deref());
        let dat = || self.by_name.get(format!("{id}.dat").as_str());
        let at = dat().or_else(|| self.by_name.get(name?)).or_else(|| self.beginning_with(id));
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
