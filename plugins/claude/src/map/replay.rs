//! Rebuilds documents that the model wrote by tool calls or in its text. Each version becomes a file of its message.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Arena, Attachment, AttachmentKind, Message, json::Object};

use super::{calls::CallState, files, late_results::TracedMessage, markup::InlineDocument};

/// Bytes of changed texts of one conversation; each change copies the whole text.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of changed texts that are attached for each byte of the conversation, because the host limits the output. If there
/// are more, only the last version on each path becomes a file.
const MAX_RATIO: usize = 8;
/// Messages of one conversation that are visited in search of base versions.
const MAX_STEPS: usize = 1_000_000;
/// The folder for files that the person gets; others are the model's own.
const OUTPUTS: &str = "/mnt/user-data/outputs/";

const NO_BASE: &str = "a change of an artifact does not fit what came before; that version is not rebuilt";
const TOO_LARGE: &str =
    "the versions of the artifacts are too large to be rebuilt; they stand in their calls";

/// One change of a document.
struct Change<'a> {
    document: &'a str,
    title: Option<&'a str>,
    mime: Option<&'a str>,
    edit: Edit<'a>,
}

enum Edit<'a> {
    Whole(&'a str),
    Replace { old: &'a str, new: &'a str },
}

/// A document after a message.
#[derive(Clone, Copy)]
struct Version<'a> {
    text: &'a str,
    title: Option<&'a str>,
    mime: Option<&'a str>,
    /// It was rebuilt from a change, so no call holds its text.
    changed: bool,
    /// A later message changed it.
    superseded: bool,
}

/// Attaches every version; returns the indices in the export's list of messages of changes that failed, and why.
///
/// `size` is the conversation's size in the export, in bytes.
pub(super) fn attach<'a>(
    messages: &mut [Message<'a>],
    traced: &[TracedMessage<'a>],
    size: usize,
    arena: &'a Arena,
) -> Vec<(usize, &'static str)> {
    let mut failures = Vec::new();
    let mut replay: Option<Replay<'a>> = None;
    for one in traced {
        let Some(message) = messages.get(one.message) else { continue };
        for change in changes(message, one, arena) {
            let replay = replay.get_or_insert_with(|| Replay::new(messages));
            if let Err(reason) = replay.apply(one.message, &change, arena) {
                failures.push((one.index, reason));
            }
        }
    }
    if let Some(replay) = replay {
        replay.attach(messages, size.saturating_mul(MAX_RATIO));
    }
    failures
}

/// The changes of one message, in the order of its blocks.
fn changes<'a>(message: &Message<'a>, traced: &TracedMessage<'a>, arena: &'a Arena) -> Vec<Change<'a>> {
    let calls = message.tool_calls.iter().zip(&traced.calls);
    let done =
        calls.filter(|(_, trace)| !matches!(trace.state, CallState::Failed | CallState::Orphan { .. }));
    let called = done
        .filter_map(|(call, trace)| Some((trace.block, Change::of_call(&call.name, trace.input?, arena)?)));
    let inline = traced.documents.iter().filter_map(|one| Some((one.block, Change::of_document(one)?)));
    let mut all: Vec<(usize, Change<'a>)> = called.chain(inline).collect();
    all.sort_by_key(|(block, _)| *block);
    all.into_iter().map(|(_, change)| change).collect()
}

impl<'a> Change<'a> {
    /// The change by a document in a text; none if it has no id.
    fn of_document(document: &InlineDocument<'a>) -> Option<Self> {
        let InlineDocument { id, title, kind, text, .. } = *document;
        Some(Self { document: id?, title, mime: kind, edit: Edit::Whole(text) })
    }

    /// The change by a call; none if it writes no document.
    fn of_call(tool: &str, input: &'a str, arena: &'a Arena) -> Option<Self> {
        if !matches!(tool, "artifacts" | "create_file" | "str_replace") {
            return None;
        }
        let fields = Object::parse(input, arena);
        let text = |key| fields.get(key).text();
        let replace =
            || Some(Edit::Replace { old: fields.text("old_str")?, new: text("new_str").unwrap_or_default() });
        if tool == "artifacts" {
            let edit = match text("command") {
                Some("update") => replace()?,
                _ => Edit::Whole(fields.text("content")?),
            };
            let mime = fields.text("type").filter(|kind| kind.contains('/'));
            return Some(Self { document: fields.text("id")?, title: fields.text("title"), mime, edit });
        }
        let path = fields.text("path").filter(|path| path.starts_with(OUTPUTS))?;
        let edit = if tool == "create_file" { Edit::Whole(fields.text("file_text")?) } else { replace()? };
        let name = path.rsplit('/').next();
        Some(Self { document: path, title: name, mime: None, edit })
    }
}

struct Replay<'a> {
    parents: Vec<Option<usize>>,
    /// By document and message.
    versions: BTreeMap<(&'a str, usize), Version<'a>>,
    bytes: usize,
    steps: usize,
}

impl<'a> Replay<'a> {
    fn new(messages: &[Message<'_>]) -> Self {
        let places: BTreeMap<&str, usize> =
            messages.iter().enumerate().map(|(at, message)| (&*message.id, at)).collect();
        let parent = |message: &Message<'_>| places.get(message.parent.as_deref()?).copied();
        Self { parents: messages.iter().map(parent).collect(), versions: BTreeMap::new(), bytes: 0, steps: 0 }
    }

    fn apply(&mut self, message: usize, change: &Change<'a>, arena: &'a Arena) -> Result<(), &'static str> {
        let place = self.base(message, change.document);
        let base = place.and_then(|place| self.versions.get(&(change.document, place)).copied());
        let (text, changed) = match (&change.edit, base) {
            (Edit::Whole(text), _) => (*text, false),
            (Edit::Replace { old, new }, Some(base)) => {
                let (before, after) = base.text.split_once(old).ok_or(NO_BASE)?;
                self.bytes += before.len() + new.len() + after.len();
                if self.bytes > MAX_BYTES {
                    return Err(TOO_LARGE);
                }
                (&*arena.alloc_str(&[before, new, after].concat()), true)
            }
            (Edit::Replace { .. }, None) => return Err(NO_BASE),
        };
        if let Some(base) = place.and_then(|place| self.versions.get_mut(&(change.document, place))) {
            base.superseded = true;
        }
        let title = change.title.or(base.and_then(|base| base.title));
        let mime = change.mime.or(base.and_then(|base| base.mime));
        let version = Version { text, title, mime, changed, superseded: false };
        self.versions.insert((change.document, message), version);
        Ok(())
    }

    /// The message whose version a change is based on: the message itself, else its nearest ancestor with one.
    fn base(&mut self, message: usize, document: &'a str) -> Option<usize> {
        let mut at = message;
        while !self.versions.contains_key(&(document, at)) {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return None;
            }
            at = self.parents.get(at).copied().flatten()?;
        }
        Some(at)
    }

    /// Attaches the versions; changed ones take `limit` bytes at most.
    fn attach(self, messages: &mut [Message<'a>], limit: usize) {
        let changed = |version: &&Version<'_>| version.changed;
        let all: usize = self.versions.values().filter(changed).map(|version| version.text.len()).sum();
        let mut left = limit;
        for ((document, message), version) in self.versions {
            if version.changed {
                if (all > limit && version.superseded) || version.text.len() > left {
                    continue;
                }
                left -= version.text.len();
            }
            if let Some(message) = messages.get_mut(message) {
                message.attachments.extend(version.file(document));
            }
        }
    }
}

impl<'a> Version<'a> {
    fn file(&self, document: &'a str) -> Option<Attachment<'a>> {
        let bytes = files::bytes(self.text)?;
        Some(Attachment {
            kind: AttachmentKind::Document,
            name: self.title.map(Cow::Borrowed),
            mime_type: Some(self.mime.unwrap_or("text/plain").into()),
            size_bytes: Some(bytes.len() as u64),
            provider_id: Some(document.into()),
            source: Some(files::source(bytes)),
            ..Attachment::default()
        })
    }
}
