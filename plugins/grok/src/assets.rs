//! The uploaded and generated files of the export: their paths, types and sizes.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeMap,
};

use satchel_importer::{Bundle, sniff};

use crate::layout::{FileKind, asset_id};

/// The files that attachments may refer to, by id.
pub(crate) struct Assets<'b> {
    bundle: &'b Bundle,
    files: BTreeMap<&'b str, AssetFile<'b>>,
}

struct AssetFile<'b> {
    path: &'b str,
    used: Cell<bool>,
    mime: OnceCell<Option<&'static str>>,
}

/// One file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asset<'b> {
    pub(crate) id: &'b str,
    pub(crate) path: &'b str,
    /// Detected from its first bytes: the export gives neither name nor type.
    pub(crate) mime: Option<&'static str>,
    pub(crate) size: Option<u64>,
}

impl<'b> Assets<'b> {
    /// The assets among `files`.
    pub(crate) fn new(bundle: &'b Bundle, files: &'b [(FileKind, String)]) -> Self {
        let assets = files.iter().filter(|(kind, _)| *kind == FileKind::Asset);
        let file = |path: &'b String| AssetFile { path, used: Cell::new(false), mime: OnceCell::new() };
        let files = assets.filter_map(|(_, path)| Some((asset_id(path)?, file(path)))).collect();
        Self { bundle, files }
    }

    /// Finds the file of `address`, an id or a path with an id among its segments, and marks it as used.
    pub(crate) fn find(&self, address: &str) -> Option<Asset<'b>> {
        let (path, _) = address.split_once(['?', '#']).unwrap_or((address, ""));
        let (id, file) = path.rsplit('/').find_map(|part| self.files.get_key_value(part))?;
        file.used.set(true);
        Some(Asset {
            id,
            path: file.path,
            mime: *file.mime.get_or_init(|| sniff::mime(self.bundle, file.path)),
            size: self.bundle.entry(file.path).map(|entry| entry.size),
        })
    }

    /// The number of files that no message refers to, and the path of the first.
    pub(crate) fn unused(&self) -> Option<(usize, &'b str)> {
        let mut unused = self.files.values().filter(|file| !file.used.get());
        let first = unused.next()?;
        Some((1 + unused.count(), first.path))
    }
}

#[cfg(test)]
mod tests {
    use satchel_importer::AttachmentKind;

    use super::*;

    #[test]
    fn files_are_found_by_id_and_by_path() {
        let bundle = Bundle::from_files([
            ("prod-mc-asset-server/a-1/content", b"\x89PNG\r\n\x1a\n0000".to_vec()),
            ("prod-mc-asset-server/b-2/content", "plain, é".as_bytes().to_vec()),
            ("prod-mc-asset-server/c-3/content", vec![0, 1, 2]),
        ]);
        let files: Vec<_> =
            bundle.entries().iter().map(|entry| (FileKind::Asset, entry.path.clone())).collect();
        let assets = Assets::new(&bundle, &files);
        let image = assets.find("a-1").expect("the file is there");
        assert_eq!(
            (image.mime, image.size, AttachmentKind::of(image.mime, None)),
            (Some("image/png"), Some(12), AttachmentKind::Image)
        );
        assert_eq!(
            assets.find("users/u/b-2/content?x=/c-3").map(|asset| asset.mime),
            Some(Some("text/plain"))
        );
        assert_eq!(assets.find("users/u/generated/d-4/image.jpg"), None);
        assert_eq!(assets.unused(), Some((1, "prod-mc-asset-server/c-3/content")));
        let other = assets.find("c-3").map(|asset| AttachmentKind::of(asset.mime, None));
        assert_eq!(other, Some(AttachmentKind::File));
    }
}
