//! The files of a message: those its text points at and those listed beside it, each once.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Source,
    address::unsigned,
    json::{Object, objects},
};

use super::content::Pointer;
use crate::assets::{self, Assets};

/// Joins `pointers` with the list in `metadata.attachments`; where both name a file, the list knows more.
pub(crate) fn attachments<'a>(
    pointers: Vec<Pointer<'a>>,
    listed: Option<&'a str>,
    assets: &'a Assets<'a>,
    arena: &'a Arena,
) -> Vec<Attachment<'a>> {
    let mut files = Files { assets, found: Vec::new(), by_id: BTreeMap::new() };
    for pointer in pointers {
        files.point(pointer);
    }
    for entry in listed.map(|raw| objects(raw, arena)).unwrap_or_default() {
        files.list(&entry);
    }
    files.finish()
}

/// The canvas document that `canvas` names, if its file lies in the export.
pub(crate) fn document<'a>(
    canvas: &'a str,
    assets: &'a Assets<'a>,
    arena: &'a Arena,
) -> Option<Attachment<'a>> {
    let canvas = Object::parse(canvas, arena);
    let id = canvas.text("textdoc_id")?;
    let path = assets.document(id)?;
    Some(Attachment {
        kind: AttachmentKind::Document,
        name: canvas.text("title").map(Cow::Borrowed),
        mime_type: Some("application/json".into()),
        size_bytes: assets.size(path),
        provider_id: Some(Cow::Borrowed(id)),
        source: Some(Source::Path(Cow::Borrowed(path))),
        ..Attachment::default()
    })
}

/// Adds to `files` those of `ids`, each once.
pub(crate) fn add_known<'a>(
    files: &mut Vec<Attachment<'a>>,
    ids: impl IntoIterator<Item = &'a str>,
    assets: &'a Assets<'a>,
) {
    for id in ids {
        if files.iter().any(|file| file.provider_id.as_deref() == Some(id)) {
            continue;
        }
        let mut all = Files { assets, found: std::mem::take(files), by_id: BTreeMap::new() };
        all.add(id);
        *files = all.finish();
    }
}

struct Files<'a> {
    assets: &'a Assets<'a>,
    found: Vec<Attachment<'a>>,
    by_id: BTreeMap<&'a str, usize>,
}

impl<'a> Files<'a> {
    fn point(&mut self, pointer: Pointer<'a>) {
        let id = assets::id_of(pointer.address);
        let file = self.add(id);
        file.kind = pointer.kind;
        file.mime_type = pointer.mime.map(Cow::Owned).or(file.mime_type.take());
        file.size_bytes = pointer.size.or(file.size_bytes);
        if file.source.is_none() {
            file.source = Some(Source::Uri(unsigned(pointer.address)));
        }
    }

    fn list(&mut self, entry: &Object<'a>) {
        let text = |key| entry.get(key).words();
        let (name, mime) = (text("name"), text("mime_type"));
        let Some(id) = text("id") else {
            if name.is_some() {
                self.found.push(Attachment { name: name.map(Cow::Borrowed), ..described(name, mime, None) });
            }
            return;
        };
        let pointed = self.by_id.contains_key(id);
        let file = self.add(id);
        file.name = name.map(Cow::Borrowed).or(file.name.take());
        file.mime_type = mime.map(Cow::Borrowed).or(file.mime_type.take());
        file.size_bytes = entry.get("size").as_u64().or(file.size_bytes);
        if !pointed {
            file.kind = AttachmentKind::of(file.mime_type.as_deref(), file.name.as_deref());
        }
    }

    /// The files, those without a type by their first bytes.
    fn finish(mut self) -> Vec<Attachment<'a>> {
        for file in &mut self.found {
            let Some(Source::Path(path)) = &file.source else { continue };
            file.size_bytes = file.size_bytes.or_else(|| self.assets.size(path));
            if file.mime_type.is_some() {
                continue;
            }
            file.mime_type = self.assets.mime(path).map(Cow::Borrowed);
            if file.kind == AttachmentKind::File {
                file.kind = AttachmentKind::of(file.mime_type.as_deref(), file.name.as_deref());
            }
        }
        self.found
    }

    /// The attachment of `id`, new or as it stands.
    fn add(&mut self, id: &'a str) -> &mut Attachment<'a> {
        let at = *self.by_id.entry(id).or_insert_with(|| {
            let known = self.assets.find(id);
            let mut file = described(known.name, known.mime, known.size);
            file.provider_id = Some(Cow::Borrowed(id));
            file.source = known.path.map(|path| Source::Path(Cow::Borrowed(path)));
            self.found.push(file);
            self.found.len() - 1
        });
        &mut self.found[at]
    }
}

fn described<'a>(name: Option<&'a str>, mime: Option<&'a str>, size: Option<u64>) -> Attachment<'a> {
    Attachment {
        kind: AttachmentKind::of(mime, name),
        name: name.map(Cow::Borrowed),
        mime_type: mime.map(Cow::Borrowed),
        size_bytes: size,
        ..Attachment::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_pointed_at_and_listed_is_one() {
        let (assets, arena) = (Assets::default(), Arena::new());
        let pointer =
            Pointer { address: "sediment://file_1", kind: AttachmentKind::Image, mime: None, size: Some(3) };
        let listed =
            r#"[{"id":"file_1","name":"a.bin","mime_type":"image/png","size":4},{"name":"b.txt"},7]"#;
        let found = attachments(vec![pointer], Some(listed), &assets, &arena);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name.as_deref(), Some("a.bin"));
        assert_eq!(found[0].size_bytes, Some(4));
        assert_eq!(found[0].source, Some(Source::Uri("sediment://file_1".into())));
        assert_eq!(found[1].kind, AttachmentKind::Document);
    }
}
