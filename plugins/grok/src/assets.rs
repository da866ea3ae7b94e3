//! The uploaded and generated files of the export: where their bytes are, and what they are.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
};

use satchel_importer::{AttachmentKind, Bundle, sniff};

use crate::layout::{Kind, asset_id};

/// The files that attachments may point at, by id.
pub(crate) struct Assets<'b> {
    bundle: &'b Bundle,
    files: BTreeMap<&'b str, File<'b>>,
}

struct File<'b> {
    path: &'b str,
    used: Cell<bool>,
    mime: OnceCell<Option<&'static str>>,
}

/// What is known about one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found<'b> {
    pub(crate) id: &'b str,
    pub(crate) path: &'b str,
    /// By its first bytes: the export gives neither name nor type.
    pub(crate) mime: Option<&'static str>,
    pub(crate) size: Option<u64>,
}

impl Found<'_> {
    /// What it is, by its type.
    pub(crate) fn kind(&self) -> AttachmentKind {
        AttachmentKind::of(self.mime, None)
    }
}

impl<'b> Assets<'b> {
    /// The assets among `files`.
    pub(crate) fn new(bundle: &'b Bundle, files: &'b [(Kind, String)]) -> Self {
        let named = files.iter().filter(|(kind, _)| *kind == Kind::Asset);
        let file = |path: &'b String| File { path, used: Cell::new(false), mime: OnceCell::new() };
        let files = named.filter_map(|(_, path)| Some((asset_id(path)?, file(path)))).collect();
        Self { bundle, files }
    }

    /// The file that `address` names: an id, or a path with one among its segments. It counts as used.
    pub(crate) fn find(&self, address: &str) -> Option<Found<'b>> {
        let (before, _) = address.split_once(['?', '#']).unwrap_or((address, ""));
        let (id, file) = before.rsplit('/').find_map(|part| self.files.get_key_value(part))?;
        file.used.set(true);
        Some(Found {
            id,
            path: file.path,
            mime: *file.mime.get_or_init(|| sniff::mime(self.bundle, file.path)),
            size: self.bundle.entry(file.path).map(|entry| entry.size),
        })
    }

    /// Files that nothing pointed at: how many, and the first.
    pub(crate) fn unused(&self) -> Option<(usize, &'b str)> {
        let mut unused = self.files.values().filter(|file| !file.used.get());
        let first = unused.next()?;
        Some((1 + unused.count(), first.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_id_and_by_path() {
        let bundle = Bundle::from_files([
            ("prod-mc-asset-server/a-1/content", b"\x89PNG\r\n\x1a\n0000".to_vec()),
            ("prod-mc-asset-server/b-2/content", "plain, é".as_bytes().to_vec()),
            ("prod-mc-asset-server/c-3/content", vec![0, 1, 2]),
        ]);
        let files: Vec<_> = bundle.entries().iter().map(|entry| (Kind::Asset, entry.path.clone())).collect();
        let assets = Assets::new(&bundle, &files);
        let image = assets.find("a-1").expect("the file is there");
        assert_eq!(
            (image.mime, image.size, image.kind()),
            (Some("image/png"), Some(12), AttachmentKind::Image)
        );
        assert_eq!(
            assets.find("users/u/b-2/content?x=/c-3").map(|found| found.mime),
            Some(Some("text/plain"))
        );
        assert_eq!(assets.find("users/u/generated/d-4/image.jpg"), None);
        assert_eq!(assets.unused(), Some((1, "prod-mc-asset-server/c-3/content")));
        assert_eq!(assets.find("c-3").map(|found| found.kind()), Some(AttachmentKind::File));
    }
}
