//! Documents that the model wrote by tool calls or into its text, rebuilt: each version as a file of the message that made it.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Arena, Attachment, AttachmentKind, Message, json::Object};

use super::{calls::State, files, later::Traced, written::Written};

/// Bytes of changed texts of one conversation; each change makes a whole text anew.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of changed texts that are handed over for each byte of the conversation: the host bounds what an export gives. Where
/// there are more, only the last version on each path is a file.
const MAX_RATIO: usize = 8;
/// Messages walked over in search of what a change is based on, in one conversation.
const MAX_STEPS: usize = 1_000_000;
/// Where the model puts the files that it hands over; others are its own.
const OUTPUTS: &str = "/mnt/user-data/outputs/";

const NO_BASE: &str = "a change of an artifact does not fit what came before; that version is not rebuilt";
const TOO_LARGE: &str =
    "the versions of the artifacts are too large to be rebuilt; they stand in their calls";

/// One call that writes a document.
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
    /// A change made it, so that its text stands in no call.
    changed: bool,
    /// A later message changed it.
    superseded: bool,
}

/// Attaches every version that the calls make; gives the places in the export's list of messages where that failed.
///
/// `size` is that of the conversation in the export, in bytes.
pub(super) fn attach<'a>(
    messages: &mut [Message<'a>],
    traced: &[Traced<'a>],
    size: usize,
    arena: &'a Arena,
) -> Vec<(usize, &'static str)> {
    let mut failures = Vec::new();
    let mut replay: Option<Replay<'a>> = None;
    for one in traced {
        let Some(message) = messages.get(one.message) else { continue };
        for change in changes(message, one, arena) {
            let replay = replay.get_or_insert_with(|| Replay::of(messages));
            if let Err(reason) = replay.apply(one.message, &change, arena) {
                failures.push((one.index, reason));
            }
        }
    }
    if let Some(replay) = replay {
        replay.hand_over(messages, size.saturating_mul(MAX_RATIO));
    }
    failures
}

/// What one message changes, in the order of its blocks.
fn changes<'a>(message: &Message<'a>, traced: &Traced<'a>, arena: &'a Arena) -> Vec<Change<'a>> {
    let calls = message.tool_calls.iter().zip(&traced.calls);
    let done = calls.filter(|(_, trace)| !matches!(trace.state, State::Failed | State::Stray { .. }));
    let called =
        done.filter_map(|(call, trace)| Some((trace.block, Change::of(&call.name, trace.input?, arena)?)));
    let written = traced.written.iter().filter_map(|one| Some((one.block, Change::written(one)?)));
    let mut all: Vec<(usize, Change<'a>)> = called.chain(written).collect();
    all.sort_by_key(|(block, _)| *block);
    all.into_iter().map(|(_, change)| change).collect()
}

impl<'a> Change<'a> {
    /// What a document in a text changes; none if it cannot be told from others.
    fn written(written: &Written<'a>) -> Option<Self> {
        let Written { id, title, kind, text, .. } = *written;
        Some(Self { document: id?, title, mime: kind, edit: Edit::Whole(text) })
    }

    /// What a call changes; none if it writes no document.
    fn of(tool: &str, input: &'a str, arena: &'a Arena) -> Option<Self> {
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
    fn of(messages: &[Message<'_>]) -> Self {
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

    /// The message whose version a message builds on: itself, else the nearest above it.
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

    /// Makes files of the versions, as far as changed ones do not take more than `limit` bytes.
    fn hand_over(self, messages: &mut [Message<'a>], limit: usize) {
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
