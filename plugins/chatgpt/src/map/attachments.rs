//! The files of a message, each once: asset pointers in its content, the list beside it, the library, and links into the sandbox.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Content, Message, Role, Source,
    address::unsigned,
    json::{Object, objects},
};

use super::content::AssetPointer;
use crate::assets::{self, Assets};

/// Prefix of links into the sandbox.
const SANDBOX: &str = "sandbox:/";
/// Links of one message that are followed.
const MAX_LINKS: usize = 200;

/// Merges `pointers` with a list like `metadata.attachments`, whose entries say more about the same files.
pub(crate) fn merge<'a>(
    pointers: Vec<AssetPointer<'a>>,
    listed: Option<&'a str>,
    assets: &'a Assets<'a>,
    arena: &'a Arena,
) -> Vec<Attachment<'a>> {
    let mut files = Files { assets, found: Vec::new(), by_id: BTreeMap::new() };
    for pointer in pointers {
        files.add_pointer(pointer);
    }
    for entry in listed.map(|raw| objects(raw, arena)).unwrap_or_default() {
        files.add_entry(&entry);
    }
    files.finish()
}

/// The canvas document that `canvas` names, if the export has its file.
pub(crate) fn canvas_document<'a>(
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

/// Adds the files that the library assigns to `messages`, and those that the messages at `linked` link to. All belong to the
/// conversation `thread`.
pub(crate) fn add_related<'a>(
    messages: &mut [Message<'a>],
    linked: &[usize],
    thread: &str,
    assets: &'a Assets<'a>,
    arena: &'a Arena,
) {
    if !assets.library.is_empty() {
        for message in &mut *messages {
            let id = message.provider_message_id.as_deref().unwrap_or(&message.id);
            add_files(&mut message.attachments, assets.library.of_message(id), assets);
        }
    }
    for at in linked {
        if let Some(message) = messages.get_mut(*at) {
            add_links(message, thread, assets, arena);
        }
    }
}

/// Whether an answer links to files of the sandbox.
pub(crate) fn has_links(message: &Message<'_>) -> bool {
    message.role == Role::Assistant
        && message.content.as_ref().and_then(Content::text).is_some_and(|text| text.contains(SANDBOX))
}

fn add_links<'a>(message: &mut Message<'a>, thread: &str, assets: &'a Assets<'a>, arena: &'a Arena) {
    let Some(text) = message.content.as_ref().and_then(Content::text) else { return };
    let mut links: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(SANDBOX) {
        let link = link_at(text.get(at..).unwrap_or_default());
        if !links.contains(&link) && links.len() < MAX_LINKS {
            links.push(link);
        }
    }
    let id = message.provider_message_id.as_deref().unwrap_or(&message.id).to_owned();
    for link in links {
        let name = percent_decode(link.rsplit('/').next().unwrap_or_default());
        if name.is_empty() {
            continue;
        }
        if let Some(file) = assets.named(&name, &id, thread) {
            add_files(&mut message.attachments, [file], assets);
        } else if !message.attachments.iter().any(|file| file.name.as_deref() == Some(&name)) {
            message.attachments.push(Attachment {
                source: Some(Source::Uri(Cow::Borrowed(arena.alloc_str(link)))),
                ..attachment(Some(arena.alloc_str(&name)), None, None)
            });
        }
    }
}

/// The link at the start of `text`, up to the end of the word or of the Markdown link.
fn link_at(text: &str) -> &str {
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '"' | '<' | '>' | '`'));
    text.get(..end.unwrap_or(text.len())).unwrap_or_default().trim_end_matches(['.', ',', ';'])
}

/// `my%20file.csv` as `my file.csv`.
fn percent_decode(name: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds the files with these `ids` that `files` lacks.
fn add_files<'a>(
    files: &mut Vec<Attachment<'a>>,
    ids: impl IntoIterator<Item = &'a str>,
    assets: &'a Assets<'a>,
) {
    let mut all = Files { assets, found: std::mem::take(files), by_id: BTreeMap::new() };
    for id in ids {
        if !all.found.iter().any(|file| file.provider_id.as_deref() == Some(id)) {
            all.add(id);
        }
    }
    *files = all.finish();
}

/// The files of one message.
struct Files<'a> {
    assets: &'a Assets<'a>,
    found: Vec<Attachment<'a>>,
    by_id: BTreeMap<&'a str, usize>,
}

impl<'a> Files<'a> {
    fn add_pointer(&mut self, pointer: AssetPointer<'a>) {
        let id = assets::id_of(pointer.address);
        let file = self.add(id);
        file.kind = pointer.kind;
        file.mime_type = pointer.mime.map(Cow::Owned).or(file.mime_type.take());
        file.size_bytes = pointer.size.or(file.size_bytes);
        if file.source.is_none() {
            file.source = Some(Source::Uri(unsigned(pointer.address)));
        }
    }

    fn add_entry(&mut self, entry: &Object<'a>) {
        let text = |key| entry.get(key).nonempty_text();
        let (name, mime) = (text("name"), text("mime_type"));
        let Some(id) = text("id") else {
            if name.is_some() {
                self.found.push(attachment(name, mime, None));
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

    /// Detects missing types from the first bytes of the files.
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

    /// The attachment of `id`, which is added if it is new.
    fn add(&mut self, id: &'a str) -> &mut Attachment<'a> {
        let at = *self.by_id.entry(id).or_insert_with(|| {
            let known = self.assets.find(id);
            let mut file = attachment(known.name, known.mime, known.size);
            file.provider_id = Some(Cow::Borrowed(id));
            file.source = known.path.map(|path| Source::Path(Cow::Borrowed(path)));
            self.found.push(file);
            self.found.len() - 1
        });
        &mut self.found[at]
    }
}

fn attachment<'a>(name: Option<&'a str>, mime: Option<&'a str>, size: Option<u64>) -> Attachment<'a> {
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
    fn a_pointer_and_a_list_entry_of_one_file_are_merged() {
        let (assets, arena) = (Assets::default(), Arena::new());
        let pointer = AssetPointer {
            address: "sediment://file_1",
            kind: AttachmentKind::Image,
            mime: None,
            size: Some(3),
        };
        let listed =
            r#"[{"id":"file_1","name":"a.bin","mime_type":"image/png","size":4},{"name":"b.txt"},7]"#;
        let found = merge(vec![pointer], Some(listed), &assets, &arena);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name.as_deref(), Some("a.bin"));
        assert_eq!(found[0].size_bytes, Some(4));
        assert_eq!(found[0].source, Some(Source::Uri("sediment://file_1".into())));
        assert_eq!(found[1].kind, AttachmentKind::Document);
    }
    #[test]
    fn links_end_before_punctuation() {
        assert_eq!(link_at("sandbox:/mnt/data/a.csv) and"), "sandbox:/mnt/data/a.csv");
        assert_eq!(link_at("sandbox:/mnt/data/a.csv. Then"), "sandbox:/mnt/data/a.csv");
        assert_eq!(percent_decode("my%20file%.csv"), "my file%.csv");
        assert_eq!(percent_decode("%C3%A9"), "\u{e9}");
    }
}
