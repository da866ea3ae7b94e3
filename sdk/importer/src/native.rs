//! The native backend: a folder or a map of files, and a sink that collects.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs::File,
    io::{Cursor, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    rc::Rc,
};

use satchel_pam::{
    raw::RawObject,
    record::{ConversationRecord, Line, MessageRecord, Skip, Warning},
    unread,
};

use crate::{
    AccountRecord, Bundle, Conversation, EmbeddingRecord, Entry, ErrorKind, Evidence, ImportError, Message,
    RecordKind, RelationRecord, Sink, ToolInput, emit,
};

/// Folders deeper than this are not walked: a folder can hold itself by a link.
const MAX_FOLDER_DEPTH: usize = 32;

impl Bundle {
    /// The files below a folder. Links are not followed.
    pub fn from_folder(folder: &Path) -> Result<Self, ImportError> {
        let mut found = BTreeMap::new();
        walk(folder, "", 0, &mut found)?;
        Ok(Self::new(Files { found }))
    }

    /// Files in memory: name and bytes.
    pub fn from_files<N: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (N, B)>) -> Self {
        let found =
            files.into_iter().map(|(name, bytes)| (name.into(), Place::Memory(Rc::new(bytes.into()))));
        Self::new(Files { found: found.collect() })
    }

    /// The same export with only the files that a detection claimed, as the host shows it to `run`.
    #[must_use]
    pub fn only(&self, files: &[String]) -> Self {
        let named =
            |(path, place): (&String, &Place)| files.contains(path).then(|| (path.clone(), place.clone()));
        Self::new(Files { found: self.files().found.iter().filter_map(named).collect() })
    }
}

/// The files of a native bundle.
pub(crate) struct Files {
    found: BTreeMap<String, Place>,
}

#[derive(Clone)]
enum Place {
    Disk(PathBuf, u64),
    Memory(Rc<Vec<u8>>),
}

impl Files {
    pub(crate) fn list(&self) -> Vec<Entry> {
        self.found.iter().map(|(path, place)| Entry { path: path.clone(), size: place.size() }).collect()
    }

    pub(crate) fn open(&self, path: &str) -> Result<OpenFile, ImportError> {
        match self.found.get(path) {
            Some(Place::Disk(real, size)) => {
                let file = File::open(real).map_err(|error| ImportError::from(error).at(path))?;
                Ok(OpenFile { bytes: Bytes::Disk(file), size: *size })
            }
            Some(Place::Memory(bytes)) => Ok(OpenFile {
                bytes: Bytes::Memory(Cursor::new(SharedBytes(Rc::clone(bytes)))),
                size: bytes.len() as u64,
            }),
            None => Err(ImportError::new(ErrorKind::Io, "the export has no such file").at(path)),
        }
    }
}

impl Place {
    fn size(&self) -> u64 {
        match self {
            Self::Disk(_, size) => *size,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    found: &mut BTreeMap<String, Place>,
) -> Result<(), ImportError> {
    if depth > MAX_FOLDER_DEPTH {
        let message = format!("folders are nested more than {MAX_FOLDER_DEPTH} deep");
        return Err(ImportError::new(ErrorKind::Limit, message).at(prefix));
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{name}/"), depth + 1, found)?;
        } else if kind.is_file() {
            found.insert(name, Place::Disk(entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(())
}

/// One open file of a native bundle.
pub(crate) struct OpenFile {
    bytes: Bytes,
    size: u64,
}

enum Bytes {
    Disk(File),
    Memory(Cursor<SharedBytes>),
}

struct SharedBytes(Rc<Vec<u8>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl OpenFile {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn read(&mut self, length: u32) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        match &mut self.bytes {
            Bytes::Disk(file) => file.take(u64::from(length)).read_to_end(&mut bytes)?,
            Bytes::Memory(cursor) => cursor.take(u64::from(length)).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), ImportError> {
        match &mut self.bytes {
            Bytes::Disk(file) => file.seek(SeekFrom::Start(offset))?,
            Bytes::Memory(cursor) => cursor.seek(SeekFrom::Start(offset))?,
        };
        Ok(())
    }
}

impl Sink {
    /// A sink that keeps everything in memory.
    pub fn collecting() -> Self {
        Self::new(Target::new(u64::MAX, None))
    }

    /// A sink that keeps everything in memory, and takes the pieces in `memo` for read. It remembers what it can.
    pub fn recalling(memo: Memo) -> Self {
        Self::new(Target::new(u64::MAX, Some(memo)))
    }

    /// What was emitted, in order, and what was remembered, for another run of the same format.
    pub fn into_lines_and_memo(self) -> (Vec<Line>, Memo) {
        let mut target = self.into_target();
        target.complete();
        (target.lines, target.memo.unwrap_or_default())
    }

    /// A sink that says `stop` from the call after `calls` calls on.
    pub fn stopping_after(calls: u64) -> Self {
        Self::new(Target::new(calls, None))
    }

    /// What was emitted, in order.
    pub fn into_lines(self) -> Vec<Line> {
        self.into_lines_and_memo().0
    }
}

type Answer = Result<(), ImportError>;

/// What earlier runs made of pieces of a source, as a host keeps it.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    known: BTreeMap<Vec<u8>, (Vec<u8>, Vec<Line>)>,
    /// The piece at hand, and where its lines begin.
    piece: Option<(Vec<u8>, usize)>,
}

/// Collects records as lines.
pub(crate) struct Target {
    lines: Vec<Line>,
    calls_left: u64,
    memo: Option<Memo>,
    /// A conversation to which messages may still come, by its place in `lines`.
    open: Option<usize>,
}

impl Target {
    fn new(calls_left: u64, memo: Option<Memo>) -> Self {
        Self { lines: Vec::new(), calls_left, memo, open: None }
    }

    pub(crate) fn conversation(&mut self, conversation: &Conversation, messages: &[Message]) -> Answer {
        self.complete();
        let record = emit::conversation_to_record(conversation, messages)?;
        self.tell_of_repeats(&conversation.locator, &[("raw_metadata", conversation.raw_metadata.as_ref())]);
        self.tell_of_messages(&conversation.locator, messages);
        self.lines.extend(unread_in(&conversation.locator, &record.messages));
        self.open = Some(self.lines.len());
        self.take([Line::Conversation(Box::new(record))])
    }

    pub(crate) fn more_messages(&mut self, messages: &[Message]) -> Answer {
        let more = emit::messages_to_records(messages)?;
        let open = self.open.and_then(|place| self.lines.get_mut(place)).and_then(open_conversation);
        let open = open.ok_or_else(|| ImportError::internal("more messages, but no conversation"))?;
        let locator = open.locator.clone();
        let unread = unread_in(&locator, &more);
        open.messages.extend(more);
        self.tell_of_messages(&locator, messages);
        self.lines.extend(unread);
        self.take([])
    }

    /// Ends the conversation to which messages could still come.
    fn complete(&mut self) {
        let open = self.open.take().and_then(|place| self.lines.get_mut(place)).and_then(open_conversation);
        if let Some(record) = open
            && let Some(message) = unread::in_conversation(record)
        {
            let locator = record.locator.clone();
            self.warn(&locator, &message);
        }
    }

    fn tell_of_messages(&mut self, locator: &str, messages: &[Message]) {
        for message in messages {
            let inputs = message.tool_calls.iter().filter_map(|call| match &call.input {
                Some(ToolInput::Object(object)) => Some(("the input of a tool call", Some(object))),
                Some(ToolInput::Text(_)) | None => None,
            });
            let texts: Vec<_> = inputs.chain([("raw_metadata", message.raw_metadata.as_ref())]).collect();
            self.tell_of_repeats(&format!("{locator}#{}", message.id), &texts);
        }
    }

    /// Warns as the host does where an object in JSON text gives a key twice.
    fn tell_of_repeats(&mut self, locator: &str, texts: &[(&str, Option<&Cow<'_, str>>)]) {
        for (field, text) in texts {
            let repairs = text.map(|text| RawObject::parse_noting(text.to_string()));
            if repairs.is_some_and(|read| read.is_ok_and(|(_, repairs)| repairs.duplicate_keys)) {
                let message = format!("an object in {field} gives a key twice; the last value is read");
                self.warn(locator, &message);
            }
        }
    }

    pub(crate) fn evidence(&mut self, evidence: &[Evidence]) -> Answer {
        self.take(evidence.iter().cloned().map(Line::Evidence))
    }

    pub(crate) fn relations(&mut self, relations: &[RelationRecord]) -> Answer {
        self.take(relations.iter().cloned().map(Line::Relation))
    }

    pub(crate) fn embeddings(&mut self, embeddings: &[EmbeddingRecord]) -> Answer {
        self.take(embeddings.iter().cloned().map(Line::Embedding))
    }

    pub(crate) fn account(&mut self, account: &AccountRecord) -> Answer {
        self.take([Line::Account(account.clone())])
    }

    pub(crate) fn skip(&mut self, kind: RecordKind, locator: &str, reason: &str) -> Answer {
        self.take([Line::Skip(Skip { kind, locator: locator.to_owned(), reason: reason.to_owned() })])
    }

    pub(crate) fn warn(&mut self, locator: &str, message: &str) {
        self.lines.push(Line::Warning(Warning { locator: locator.to_owned(), message: message.to_owned() }));
    }

    pub(crate) fn progress(&mut self, _done: u64, _total: Option<u64>) -> Answer {
        self.take([])
    }

    pub(crate) fn recall(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        self.complete();
        let memo = self.memo.as_mut()?;
        memo.piece = Some((piece.to_vec(), self.lines.len()));
        memo.known.get(piece).map(|(note, _)| note.clone())
    }

    /// A run that knows a piece collects what it gave before, so that runs can be compared.
    pub(crate) fn again(&mut self) -> Answer {
        self.complete();
        let memo = self.memo.as_mut();
        let piece = memo.and_then(|memo| memo.known.get(&memo.piece.take()?.0).cloned());
        let lines = piece.map(|(_, lines)| lines).unwrap_or_default();
        self.take(lines)
    }

    pub(crate) fn note(&mut self, note: &[u8]) -> Answer {
        self.complete();
        let Some(memo) = &mut self.memo else { return Ok(()) };
        if let Some((piece, from)) = memo.piece.take() {
            let lines = self.lines.get(from..).unwrap_or_default().to_vec();
            if lines.iter().all(rememberable) {
                memo.known.insert(piece, (note.to_vec(), lines));
            }
        }
        self.take([])
    }

    fn take(&mut self, lines: impl IntoIterator<Item = Line>) -> Answer {
        self.lines.extend(lines);
        if self.calls_left == 0 {
            return Err(ImportError::cancelled());
        }
        self.calls_left -= 1;
        Ok(())
    }
}

/// Warnings as the host gives them of messages whose words were not recognised.
fn unread_in(locator: &str, messages: &[MessageRecord]) -> Vec<Line> {
    let told = messages.iter().filter_map(|message| Some((message, unread::in_message(message)?)));
    told.map(|(message, told)| {
        Line::Warning(Warning { locator: format!("{locator}#{}", message.id), message: told })
    })
    .collect()
}

/// Whether a host remembers a piece that gave this line.
fn rememberable(line: &Line) -> bool {
    match line {
        Line::Conversation(_) => true,
        Line::Evidence(evidence) => evidence.at.is_some(),
        _ => false,
    }
}

fn open_conversation(line: &mut Line) -> Option<&mut ConversationRecord> {
    match line {
        Line::Conversation(record) => Some(record),
        _ => None,
    }
}
