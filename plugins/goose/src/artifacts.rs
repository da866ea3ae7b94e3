//! The outputs of tools that were too long for a message. An export has them beside its messages, which name their files.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Attachment, AttachmentKind, Bundle, Fields, ImportError, JsonArray, RecordKind, Role, Sink, Source,
    names, unless_malformed, warnings::shortened,
};

use crate::{
    export::not_found_is_empty,
    piece::Piece,
    transcript::{MAX_LENGTH, fields_of},
};

/// Bytes of all outputs of one export, which are kept in the memory of the guest.
const MAX_BYTES: usize = 24 * 1024 * 1024;
/// Outputs of one export. Real ones have some dozens.
const MAX_FOUND: usize = 10_000;
/// Outputs that are named when they are left out.
const MAX_NAMED: usize = 1000;
/// Bytes of the path of a file.
const MAX_PATH: usize = 4096;

/// The outputs of one export, by the paths of their files.
#[derive(Debug, Default)]
pub(crate) struct Artifacts {
    found: BTreeMap<String, Artifact>,
    /// Places of those that cannot be kept, and why.
    left_out: Vec<(String, &'static str)>,
    /// Number of further ones.
    more_left_out: usize,
    bytes: usize,
    /// The place and the name of a field that is not known.
    unknown: Option<(String, String)>,
}

#[derive(Debug)]
struct Artifact {
    place: String,
    /// Taken by the first result that names it.
    content: Option<String>,
}

impl Artifacts {
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut artifacts = Self::default();
        let list = JsonArray::new(path).pointer("/artifacts").limit(MAX_LENGTH);
        let walk = list.survey(bundle, |element| {
            if let Some(fields) = unless_malformed(fields_of(&element))? {
                artifacts.add(fields, format!("{path}.artifacts[{}]", element.index()));
            }
            Ok(true)
        });
        not_found_is_empty(walk)?;
        Ok(artifacts)
    }

    fn add(&mut self, mut fields: Fields<'_>, place: String) {
        let (path, content) = (fields.take_text("path"), fields.take_text("content"));
        // The program computes it anew from the content.
        fields.take("sha256");
        if let Some(field) = fields.unknown(&[]) {
            self.unknown.get_or_insert_with(|| (place.clone(), field.to_owned()));
        }
        let (Some(path), Some(content)) = (path.filter(|path| path.len() <= MAX_PATH), content) else {
            return self.leave_out(place, "it has no path or no content");
        };
        if self.found.contains_key(path) {
            return self.leave_out(place, "an earlier file has the same path");
        }
        if self.found.len() == MAX_FOUND {
            return self.leave_out(place, "the export has too many files before it");
        }
        self.bytes += path.len() + content.len();
        if self.bytes > MAX_BYTES {
            self.bytes -= path.len() + content.len();
            return self.leave_out(place, "the files of the export are too large together");
        }
        self.found.insert(path.to_owned(), Artifact { place, content: Some(content.to_owned()) });
    }

    fn leave_out(&mut self, place: String, problem: &'static str) {
        if self.left_out.len() < MAX_NAMED {
            self.left_out.push((place, problem));
        } else {
            self.more_left_out += 1;
        }
    }

    /// Attaches the outputs that results of tools name.
    pub(crate) fn attach(&mut self, pieces: &mut [Piece<'_>]) {
        if self.found.is_empty() {
            return;
        }
        for piece in pieces.iter_mut().filter(|piece| piece.message.role == Role::Tool) {
            let mut files = Vec::new();
            for path in piece.texts.iter().flat_map(|text| paths(text)) {
                let content = self.found.get_mut(path).and_then(|artifact| artifact.content.take());
                files.extend(content.map(|content| attachment(path, content)));
            }
            piece.message.attachments.extend(files);
        }
    }

    /// Reports the outputs that no result names, and those that cannot be kept.
    pub(crate) fn report(self, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
        if let Some((place, field)) = self.unknown {
            sink.warn(&place, &format!("its field {:?} is unknown and was not read", shortened(&field)));
        }
        for (place, problem) in self.left_out {
            sink.skip(RecordKind::File, &place, problem)?;
        }
        if self.more_left_out > 0 {
            let problem = format!("{} more files are left out for the same reasons", self.more_left_out);
            sink.skip(RecordKind::File, &format!("{path}.artifacts"), &problem)?;
        }
        for artifact in self.found.into_values().filter(|artifact| artifact.content.is_some()) {
            sink.skip(RecordKind::File, &artifact.place, "no result of a tool names it")?;
        }
        Ok(())
    }
}

/// What may be a path in a text: its words, and what follows the last colon of a line, because a path may have spaces.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.lines().filter_map(|line| line.rsplit_once(": ").map(|(_, end)| end.trim()));
    text.split_whitespace().map(|word| word.trim_matches(|sign| "\"'`()[]<>,".contains(sign))).chain(ends)
}

fn attachment(path: &str, content: String) -> Attachment<'static> {
    let name = names::split(path).1.to_owned();
    Attachment {
        kind: AttachmentKind::Document,
        name: Some(Cow::Owned(name)),
        mime_type: Some("text/plain".into()),
        size_bytes: Some(content.len() as u64),
        source: Some(Source::Bytes(content.into_bytes().into())),
        ..Attachment::default()
    }
}
