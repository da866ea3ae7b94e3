//! The native backend: files of a folder or in memory, and a sink that collects records.

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

/// The deepest nesting of folders that is read; a mount can make a folder contain itself.
const MAX_FOLDER_DEPTH: usize = 32;

impl Bundle {
    /// The files in a folder and its subfolders. Symbolic links are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a folder cannot be read, [`ErrorKind::Limit`] if folders are nested more than 32 deep.
    pub fn from_folder(folder: &Path) -> Result<Self, ImportError> {
        let mut found = BTreeMap::new();
        walk(folder, "", 0, &mut found)?;
        Ok(Self::new(Files { found }))
    }

    /// Files in memory: path and bytes.
    pub fn from_files<N: Into<String>, B: Into<Vec<u8>>>(files: impl IntoIterator<Item = (N, B)>) -> Self {
        let found =
            files.into_iter().map(|(name, bytes)| (name.into(), FileSource::Memory(bytes.into().into())));
        Self::new(Files { found: found.collect() })
    }

    /// The bundle with only these files, as the host passes it to `run`.
    #[must_use]
    pub fn only(&self, files: &[String]) -> Self {
        let claimed = |(path, source): (&String, &FileSource)| {
            files.contains(path).then(|| (path.clone(), source.clone()))
        };
        Self::new(Files { found: self.files().found.iter().filter_map(claimed).collect() })
    }
}

/// The files of a native bundle.
pub(crate) struct Files {
    found: BTreeMap<String, FileSource>,
}

#[derive(Clone)]
enum FileSource {
    Disk(PathBuf, u64),
    Memory(Rc<[u8]>),
}

impl Files {
    pub(crate) fn none() -> Self {
        Self { found: BTreeMap::new() }
    }

    pub(crate) fn list(&self) -> Vec<Entry> {
        self.found.iter().map(|(path, source)| Entry { path: path.clone(), size: source.size() }).collect()
    }

    pub(crate) fn open(&self, path: &str) -> Result<OpenFile, ImportError> {
        let source = self.found.get(path);
        let source =
            source.ok_or_else(|| ImportError::new(ErrorKind::Io, "the export has no such file").at(path))?;
        let bytes: Box<dyn ReadSeek> = match source {
            FileSource::Disk(real, _) => {
                Box::new(File::open(real).map_err(|error| ImportError::from(error).at(path))?)
            }
            FileSource::Memory(bytes) => Box::new(Cursor::new(Rc::clone(bytes))),
        };
        Ok(OpenFile { bytes, size: source.size() })
    }
}

impl FileSource {
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
    found: &mut BTreeMap<String, FileSource>,
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
            found.insert(name, FileSource::Disk(entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(())
}

/// An open file of a native bundle.
pub(crate) struct OpenFile {
    bytes: Box<dyn ReadSeek>,
    size: u64,
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

impl OpenFile {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn read(&mut self, length: u32) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        (&mut self.bytes).take(u64::from(length)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), ImportError> {
        self.bytes.seek(SeekFrom::Start(offset))?;
        Ok(())
    }
}

impl Sink {
    /// A sink that collects all records in memory.
    pub fn collecting() -> Self {
        Self::new(Target::new(u64::MAX, None))
    }

    /// A sink that collects all records in memory and has the `memo` of earlier runs. For a piece whose note still holds, it
    /// collects the records of the earlier run.
    pub fn with_memo(memo: Memo) -> Self {
        Self::new(Target::new(u64::MAX, Some(memo)))
    }

    /// The collected lines in order, and the memo for another run in the same format.
    pub fn into_lines_and_memo(self) -> (Vec<Line>, Memo) {
        let mut target = self.into_target();
        target.complete();
        (target.lines, target.memo.unwrap_or_default())
    }

    /// A sink that returns [`ErrorKind::Cancelled`] after `calls` calls.
    pub fn stopping_after(calls: u64) -> Self {
        Self::new(Target::new(calls, None))
    }

    /// The collected lines, in order.
    pub fn into_lines(self) -> Vec<Line> {
        self.into_lines_and_memo().0
    }
}

type SinkResult = Result<(), ImportError>;

/// What earlier runs emitted for pieces of exports. The host stores the same.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    /// The note and the lines of each piece.
    known: BTreeMap<Vec<u8>, (Vec<u8>, Vec<Line>)>,
    /// The current piece, and the index of its first line.
    piece: Option<(Vec<u8>, usize)>,
}

/// Collects records as lines.
pub(crate) struct Target {
    lines: Vec<Line>,
    calls_left: u64,
    memo: Option<Memo>,
    /// The index in `lines` of the conversation to which messages can be added.
    open: Option<usize>,
}

impl Target {
    fn new(calls_left: u64, memo: Option<Memo>) -> Self {
        Self { lines: Vec::new(), calls_left, memo, open: None }
    }

    pub(crate) fn conversation(&mut self, conversation: &Conversation, messages: &[Message]) -> SinkResult {
        self.complete();
        let record = emit::conversation_to_record(conversation, messages)?;
        self.warn_of_repeated_keys(
            &conversation.locator,
            &[("raw_metadata", conversation.raw_metadata.as_ref())],
        );
        self.warn_of_messages(&conversation.locator, messages);
        self.lines.extend(unread_in(&conversation.locator, &record.messages));
        self.open = Some(self.lines.len());
        self.take([Line::Conversation(Box::new(record))])
    }

    pub(crate) fn more_messages(&mut self, messages: &[Message]) -> SinkResult {
        let more = emit::messages_to_records(messages)?;
        let open = self.open.and_then(|index| self.lines.get_mut(index)).and_then(open_conversation);
        let open = open.ok_or_else(|| ImportError::internal("more messages, but no conversation"))?;
        let locator = open.locator.clone();
        let unread = unread_in(&locator, &more);
        open.messages.extend(more);
        self.warn_of_messages(&locator, messages);
        self.lines.extend(unread);
        self.take([])
    }

    /// Ends the conversation to which messages can be added.
    fn complete(&mut self) {
        let open = self.open.take().and_then(|index| self.lines.get_mut(index)).and_then(open_conversation);
        if let Some(record) = open
            && let Some(message) = unread::in_conversation(record)
        {
            let locator = record.locator.clone();
            self.warn(&locator, &message);
        }
    }

    fn warn_of_messages(&mut self, locator: &str, messages: &[Message]) {
        for message in messages {
            let inputs = message.tool_calls.iter().filter_map(|call| match &call.input {
                Some(ToolInput::Object(object)) => Some(("the input of a tool call", Some(object))),
                Some(ToolInput::Text(_)) | None => None,
            });
            let texts: Vec<_> = inputs.chain([("raw_metadata", message.raw_metadata.as_ref())]).collect();
            self.warn_of_repeated_keys(&format!("{locator}#{}", message.id), &texts);
        }
    }

    /// Warns, as the host does, of JSON text in which an object repeats a key.
    fn warn_of_repeated_keys(&mut self, locator: &str, texts: &[(&str, Option<&Cow<'_, str>>)]) {
        for (field, text) in texts {
            let repairs = text.map(|text| RawObject::parse_noting(text.to_string()));
            if repairs.is_some_and(|read| read.is_ok_and(|(_, repairs)| repairs.duplicate_keys)) {
                let message = format!("an object in {field} gives a key twice; the last value is read");
                self.warn(locator, &message);
            }
        }
    }

    pub(crate) fn evidence(&mut self, evidence: &[Evidence]) -> SinkResult {
        self.take(evidence.iter().cloned().map(Line::Evidence))
    }

    pub(crate) fn relations(&mut self, relations: &[RelationRecord]) -> SinkResult {
        self.take(relations.iter().cloned().map(Line::Relation))
    }

    pub(crate) fn embeddings(&mut self, embeddings: &[EmbeddingRecord]) -> SinkResult {
        self.take(embeddings.iter().cloned().map(Line::Embedding))
    }

    pub(crate) fn account(&mut self, account: &AccountRecord) -> SinkResult {
        self.take([Line::Account(account.clone())])
    }

    pub(crate) fn skip(&mut self, kind: RecordKind, locator: &str, reason: &str) -> SinkResult {
        self.take([Line::Skip(Skip { kind, locator: locator.to_owned(), reason: reason.to_owned() })])
    }

    pub(crate) fn warn(&mut self, locator: &str, message: &str) {
        self.lines.push(Line::Warning(Warning { locator: locator.to_owned(), message: message.to_owned() }));
    }

    pub(crate) fn progress(&mut self, _done: u64, _total: Option<u64>) -> SinkResult {
        self.take([])
    }

    pub(crate) fn recall(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        self.complete();
        let memo = self.memo.as_mut()?;
        memo.piece = Some((piece.to_vec(), self.lines.len()));
        memo.known.get(piece).map(|(note, _)| note.clone())
    }

    /// Collects the lines of the earlier run, so that tests can compare runs.
    pub(crate) fn again(&mut self) -> SinkResult {
        self.complete();
        let memo = self.memo.as_mut();
        let piece = memo.and_then(|memo| memo.known.get(&memo.piece.take()?.0).cloned());
        let lines = piece.map(|(_, lines)| lines).unwrap_or_default();
        self.take(lines)
    }

    pub(crate) fn note(&mut self, note: &[u8]) -> SinkResult {
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

    fn take(&mut self, lines: impl IntoIterator<Item = Line>) -> SinkResult {
        self.lines.extend(lines);
        if self.calls_left == 0 {
            return Err(ImportError::cancelled());
        }
        self.calls_left -= 1;
        Ok(())
    }
}

/// The warnings that the host gives for messages in which the importer found no text.
fn unread_in(locator: &str, messages: &[MessageRecord]) -> Vec<Line> {
    let warning = |record: &MessageRecord| {
        let message = unread::in_message(record)?;
        Some(Line::Warning(Warning { locator: format!("{locator}#{}", record.id), message }))
    };
    messages.iter().filter_map(warning).collect()
}

/// Whether the host remembers a piece for which this line was emitted.
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
