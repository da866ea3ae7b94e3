//! Files of a message: uploads by id and images by address, each once, with their bytes if the export has them.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Source,
    address::{is_uri, unsigned},
    json::{Object, Value},
};

use super::markup::Artifact;
use crate::{assets::Assets, raw::visit};

/// The server of relative paths; it requires a login.
const ASSET_SERVER: &str = "https://assets.grok.com/";

/// Collects the files of one message.
pub(crate) struct Files<'a> {
    assets: &'a Assets<'a>,
    arena: &'a Arena,
    pub(crate) attachments: Vec<Attachment<'a>>,
    /// Indices by id and by address.
    by_key: BTreeMap<Cow<'a, str>, usize>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(assets: &'a Assets<'a>, arena: &'a Arena) -> Self {
        Self { assets, arena, attachments: Vec::new(), by_key: BTreeMap::new() }
    }

    /// Adds the items of a list: ids, addresses, or objects with one of them. `media` is the first half of the MIME type of
    /// files whose type is not known otherwise.
    pub(crate) fn add(&mut self, list: Value<'a>, media: Option<&str>) {
        visit(list, self.arena, |item| match item {
            Value::Text(text) if !text.trim().is_empty() => {
                self.entry(text, media);
            }
            Value::Raw(raw) if raw.starts_with('{') => {
                self.add_object(&Object::parse(raw, self.arena), media);
            }
            Value::Text(_) | Value::Raw(_) | Value::Null => {}
        });
    }

    /// Adds an image by its address, and by its id if that is known.
    pub(crate) fn add_image(&mut self, address: &'a str, id: Option<&'a str>, title: Option<&'a str>) {
        let Some(file) = self.entry(address, Some("image")) else { return };
        file.name = file.name.take().or(title.map(Cow::Borrowed));
        file.provider_id = file.provider_id.take().or(id.map(Cow::Borrowed));
        if let (Some(id), Some(Source::Uri(_))) = (id, &file.source)
            && let Some(asset) = self.assets.find(id)
            && let Some(file) = self.by_key.get(address).and_then(|at| self.attachments.get_mut(*at))
        {
            file.source = Some(Source::Path(asset.path.into()));
            file.mime_type = asset.mime.map(Cow::Borrowed);
            file.size_bytes = asset.size;
        }
    }

    /// Adds a document that the model wrote into its text, if the export has it as a file too.
    pub(super) fn add_artifact(&mut self, artifact: &Artifact<'a>) {
        let Some(version) = artifact.version.filter(|version| self.assets.find(version).is_some()) else {
            return;
        };
        if let Some(file) = self.entry(version, None) {
            file.name = artifact.title.map(Cow::Borrowed);
            file.mime_type = artifact.mime.map(Cow::Borrowed).or(file.mime_type.take());
            file.kind = AttachmentKind::Document;
        }
    }

    fn add_object(&mut self, object: &Object<'a>, media: Option<&str>) {
        let first = |keys: &[&str]| keys.iter().find_map(|key| object.text(key));
        let id = first(&["file_id", "asset_id", "fileMetadataId", "file_metadata_id", "id", "_id"]);
        let address = first(&["file_uri", "fileUri", "url", "uri", "link", "key"]);
        let Some(key) = id.filter(|id| self.assets.find(id).is_some()).or(address).or(id) else { return };
        let Some(file) = self.entry(key, media) else { return };
        let name = first(&["file_name", "fileName", "name", "title"]);
        let mime = first(&["mime_type", "fileMimeType", "file_mime_type", "content_type"]);
        file.provider_id = id.map(Cow::Borrowed).or(file.provider_id.take());
        file.name = name.map(Cow::Borrowed).or(file.name.take());
        if mime.is_some() || name.is_some() {
            file.mime_type = mime.map(Cow::Borrowed).or(file.mime_type.take());
            let kind = AttachmentKind::of(file.mime_type.as_deref(), name);
            file.kind = if kind == AttachmentKind::File { file.kind } else { kind };
        }
    }

    /// The attachment of an id or an address; it is added if it is new.
    fn entry(&mut self, key: &'a str, media: Option<&str>) -> Option<&mut Attachment<'a>> {
        let asset = self.assets.find(key);
        // A file can have two addresses, or an id and an address.
        let canonical: Cow<'a, str> = asset.map_or(Cow::Borrowed(key), |asset| Cow::Borrowed(asset.id));
        let at = self
            .by_key
            .get(&canonical)
            .or_else(|| self.by_key.get(key))
            .copied()
            .unwrap_or(self.attachments.len());
        self.by_key.insert(canonical, at);
        self.by_key.insert(Cow::Borrowed(key), at);
        if at == self.attachments.len() {
            let is_path = key.contains('/');
            let name = key.split_once(['?', '#']).map_or(key, |(name, _)| name);
            let mut file = Attachment {
                kind: AttachmentKind::of(media, Some(name)),
                provider_id: (!is_path).then_some(Cow::Borrowed(key)),
                source: is_path.then(|| Source::Uri(full_url(key))),
                ..Attachment::default()
            };
            if let Some(asset) = asset {
                file.kind = asset.mime.map_or(file.kind, |mime| AttachmentKind::of(Some(mime), None));
                file.provider_id = Some(Cow::Borrowed(asset.id));
                file.mime_type = asset.mime.map(Cow::Borrowed);
                file.size_bytes = asset.size;
                file.source = Some(Source::Path(asset.path.into()));
            }
            self.attachments.push(file);
        }
        self.attachments.get_mut(at)
    }
}

/// The URL of a path on the server, or of a URL, without its signature.
fn full_url(text: &str) -> Cow<'_, str> {
    if is_uri(text) {
        return unsigned(text);
    }
    Cow::Owned(format!("{ASSET_SERVER}{}", unsigned(text.trim_start_matches('/'))))
}

#[cfg(test)]
mod tests {
    use satchel_importer::Bundle;

    use super::*;

    fn check(list: &str, expected: &[(AttachmentKind, Option<&str>, Option<&str>)]) {
        let bundle = Bundle::from_files([("prod-mc-asset-server/a-1/content", b"%PDF-1.7".to_vec())]);
        let files: Vec<_> = bundle
            .entries()
            .iter()
            .map(|entry| (crate::layout::FileKind::Asset, entry.path.clone()))
            .collect();
        let (assets, arena) = (Assets::new(&bundle, &files), Arena::new());
        let mut files = Files::new(&assets, &arena);
        files.add(Value::Raw(list), None);
        let actual = files.attachments.iter().map(|file| {
            let place = match &file.source {
                Some(Source::Path(place) | Source::Uri(place)) => Some(place.as_ref()),
                _ => None,
            };
            (file.kind, file.provider_id.as_deref(), place)
        });
        assert_eq!(actual.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ids_lead_to_bytes_and_paths_to_the_server() {
        check(
            r#"["a-1", "b-2", "users/u/a-1/content", "users/u/generated/c-3/image.jpg", "https://example.com/d.png?sig=1", "", null, 7]"#,
            &[
                (AttachmentKind::Document, Some("a-1"), Some("prod-mc-asset-server/a-1/content")),
                (AttachmentKind::File, Some("b-2"), None),
                (
                    AttachmentKind::Image,
                    None,
                    Some("https://assets.grok.com/users/u/generated/c-3/image.jpg"),
                ),
                (AttachmentKind::Image, None, Some("https://example.com/d.png")),
            ],
        );
    }

    #[test]
    fn objects_are_read_by_their_keys() {
        check(
            r#"[{"fileMetadataId":"x-1","fileName":"a.csv","fileMimeType":"text/csv","fileUri":"users/u/x-1/content"},{"odd":1},{"id":"a-1"}]"#,
            &[
                (AttachmentKind::Document, Some("x-1"), Some("https://assets.grok.com/users/u/x-1/content")),
                (AttachmentKind::Document, Some("a-1"), Some("prod-mc-asset-server/a-1/content")),
            ],
        );
    }
}
