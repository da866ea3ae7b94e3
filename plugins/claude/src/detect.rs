//! Finds Claude exports among files, by their heads.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser, json::Kind,
};

use crate::layout::{self, PathInfo, PathKind};

/// One file; messages are in order.
pub(crate) const LINEAR: &str = "claude-importer/2024.01";
/// Messages name their parents.
pub(crate) const BRANCHING: &str = "claude-importer/2025.06";
/// One archive for each category, with a manifest.
pub(crate) const BATCHED: &str = "claude-importer/2026.08";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [LINEAR, BRANCHING, BATCHED];

/// Bytes of a head that are read first, and if those do not decide. The host allows 16 MiB.
const HEAD_BYTES: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Elements of a head that are looked at.
const MAX_ELEMENTS: u64 = 32;
/// The pointer to the conversations in a wrapper object.
const WRAPPER: &str = "/conversations";

/// What a file holds, in the order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileKind {
    Manifest,
    Users,
    Conversations,
    DesignChats,
    Projects,
    Memories,
    Artifact,
    Reflection,
    /// Its name belongs to an export, but its head does not show what it holds.
    Unrecognized,
    Private,
    /// Read with its artifact.
    ArtifactFile,
}

/// One file of an export.
#[derive(Clone, Debug)]
pub(crate) struct ExportFile {
    pub(crate) path: String,
    pub(crate) kind: FileKind,
    /// The pointer to its list.
    pub(crate) pointer: &'static str,
    /// Its messages name their parents.
    pub(crate) branching: bool,
    account: Option<String>,
    /// Its content shows that it is of Claude, not only its name.
    confirmed: bool,
}

/// The files of one export.
#[derive(Debug, Default)]
pub(crate) struct Export {
    pub(crate) files: Vec<ExportFile>,
    batched: bool,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    Ok(find_exports(bundle)?.into_iter().map(Export::into_detection).collect())
}

/// Every export among the files, ordered by folder.
pub(crate) fn find_exports(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut exports: BTreeMap<&str, Export> = BTreeMap::new();
    for entry in bundle.entries() {
        let Some(info) = layout::classify(&entry.path) else { continue };
        let Some(file) = inspect(bundle, &entry.path, info)? else { continue };
        let export = exports.entry(info.root).or_default();
        export.batched |= info.batched || file.kind == FileKind::Manifest;
        export.files.push(file);
    }
    Ok(exports.into_values().filter(Export::confirmed).collect())
}

impl Export {
    /// Whether the content of a file confirms the provider; names are not enough.
    fn confirmed(&self) -> bool {
        self.files.iter().any(|file| file.confirmed)
    }

    fn into_detection(self) -> Detection {
        let branching = self.files.iter().any(|file| file.branching);
        let format = match (self.batched, branching) {
            (true, _) => BATCHED,
            (false, true) => BRANCHING,
            (false, false) => LINEAR,
        };
        let has_records =
            |kind| kind < FileKind::Reflection && !matches!(kind, FileKind::Manifest | FileKind::Users);
        let confidence = if self.files.iter().any(|file| has_records(file.kind)) { 95 } else { 60 };
        let accounts = self.files.iter().filter(|file| file.account.is_some());
        Detection {
            format: format.to_owned(),
            confidence,
            account: accounts.min_by_key(|file| file.kind).and_then(|file| file.account.clone()),
            files: self.files.into_iter().map(|file| file.path).collect(),
        }
    }
}

/// Classifies a file; none if it is not ours.
fn inspect(bundle: &Bundle, path: &str, info: PathInfo<'_>) -> Result<Option<ExportFile>, ImportError> {
    let file = |kind, head: Head, confirmed: bool| {
        let pointer = if head.wrapped { WRAPPER } else { "" };
        let Head { branching, account, .. } = head;
        Some(ExportFile { path: path.to_owned(), kind, pointer, branching, account, confirmed })
    };
    let by_name = |kind| Ok(file(kind, Head::default(), false));
    match info.kind {
        PathKind::Private => return by_name(FileKind::Private),
        PathKind::ArtifactFile => return by_name(FileKind::ArtifactFile),
        PathKind::Reflection => {
            let confirmed = is_named_by_uuid(bundle, path)?;
            return Ok(file(FileKind::Reflection, Head::default(), confirmed));
        }
        PathKind::Json | PathKind::Artifact => {}
    }
    let head = read_head(bundle, path)?;
    Ok(match head.kind {
        // Only its path distinguishes a description of an artifact from other lists of versions.
        Some(FileKind::Artifact) if info.kind != PathKind::Artifact => None,
        Some(kind) => file(kind, head, true),
        None if info.known && !head.foreign => file(FileKind::Unrecognized, head, false),
        None => None,
    })
}

/// What a file's head shows.
#[derive(Clone, Debug, Default)]
struct Head {
    kind: Option<FileKind>,
    /// It holds objects that are not ours.
    foreign: bool,
    /// The conversations are below [`WRAPPER`].
    wrapped: bool,
    branching: bool,
    account: Option<String>,
}

/// Whether the file is named by the uuid of its first object.
fn is_named_by_uuid(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut named = false;
    let sampled = JsonArray::new(path).sample(bundle, HEAD_BYTES[0], |element| {
        let fields = ElementFields::read(&mut element.parser());
        named = fields.uuid.is_some_and(|uuid| layout::stem(path) == uuid) && fields.kind().is_none();
        false
    });
    ignore_malformed(sampled)?;
    Ok(named)
}

/// A malformed file is not ours, so only other errors are returned.
fn ignore_malformed(sampled: Result<(), ImportError>) -> Result<(), ImportError> {
    match sampled {
        Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads growing heads of a file until one shows what it is.
fn read_head(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in HEAD_BYTES {
        head = Head::default();
        head.sample(bundle, path, "", bytes)?;
        if head.wrapped {
            head.foreign = false;
            head.sample(bundle, path, WRAPPER, bytes)?;
        }
        if head.kind.is_some() || size <= bytes as u64 {
            break;
        }
    }
    Ok(head)
}

impl Head {
    fn sample(
        &mut self,
        bundle: &Bundle,
        path: &str,
        pointer: &str,
        bytes: usize,
    ) -> Result<(), ImportError> {
        let sampled = JsonArray::new(path).pointer(pointer).sample(bundle, bytes, |element| {
            self.add(&element, pointer.is_empty(), layout::is_of_projects(path));
            let undecided =
                self.kind.is_none() || (self.kind == Some(FileKind::Conversations) && !self.branching);
            undecided && !self.wrapped && element.index() < MAX_ELEMENTS
        });
        ignore_malformed(sampled)
    }

    /// Adds one element of a file; `projects`: its name says that it lists projects.
    fn add(&mut self, element: &Element<'_>, root: bool, projects: bool) {
        let fields = ElementFields::read(&mut element.parser());
        if root && fields.has("conversations") && fields.kind().is_none() {
            self.wrapped = true;
            return;
        }
        // A project without instructions and documents is only recognized by the file's name.
        let project = (projects && fields.has("uuid") && fields.has("name")).then_some(FileKind::Projects);
        match fields.kind().or(project) {
            Some(kind) => {
                let kind = *self.kind.get_or_insert(kind);
                self.branching |=
                    kind == FileKind::Conversations && element.text().contains("\"parent_message_uuid\"");
                if self.account.is_none() {
                    self.account = fields.account(kind).map(ToOwned::to_owned);
                }
            }
            None => self.foreign |= !fields.keys.is_empty(),
        }
    }
}

/// The fields of one element that show its kind.
#[derive(Default)]
struct ElementFields<'a> {
    keys: BTreeSet<&'a str>,
    uuid: Option<&'a str>,
    account: Option<&'a str>,
    /// The keys of the first of its `messages`.
    message: BTreeSet<&'a str>,
}

impl<'a> ElementFields<'a> {
    /// Reads one element. In a sample it may break off; the fields before count.
    fn read(json: &mut Parser<'a>) -> Self {
        let mut fields = Self::default();
        let (Ok(()) | Err(_)) = fields.read_object(json);
        fields
    }

    fn read_object(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            self.keys.insert(key);
            match key {
                "uuid" if json.kind()? == Kind::String => self.uuid = Some(json.string()?),
                "account_uuid" | "owner_account" if json.kind()? == Kind::String => {
                    self.account = Some(json.string()?);
                }
                "account" | "creator" => self.read_account(json)?,
                "messages" => self.read_first_message(json)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_account(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            if key == "uuid" && json.kind()? == Kind::String {
                self.account = Some(json.string()?);
            }
        }
        Ok(())
    }

    fn read_first_message(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if json.enter_array()? {
            let mut first = true;
            while json.item()? {
                if std::mem::take(&mut first) && json.enter_object()? {
                    while let Some(key) = json.key()? {
                        self.message.insert(key);
                    }
                }
            }
        }
        Ok(())
    }

    fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// The kind of file that holds such elements.
    fn kind(&self) -> Option<FileKind> {
        let has = |key| self.has(key);
        if has("mapping") || has("responses") || has("fragments") {
            return None;
        }
        let stub = has("uuid") && has("name") && has("account");
        // Some tools name the list `messages`, as other programs do; only the messages distinguish them.
        let has_sender = ["sender", "role"].iter().any(|key| self.message.contains(key));
        let named = has("uuid") && has("created_at") && (has("name") || has("title")) && !has("project");
        if has("chat_messages") || stub || (named && has_sender) {
            return Some(FileKind::Conversations);
        }
        if has("conversations_memory") || has("project_memories") || has("memory_files") {
            return Some(FileKind::Memories);
        }
        let described = has("description") && (has("is_private") || has("is_starter_project") || has("docs"));
        if has("uuid")
            && (has("prompt_template") || (has("docs") && has("creator")) || (has("name") && described))
        {
            return Some(FileKind::Projects);
        }
        if has("uuid") && has("messages") && has("project") {
            return Some(FileKind::DesignChats);
        }
        if has("uuid") && has("full_name") && has("email_address") {
            return Some(FileKind::Users);
        }
        if has("id") && has("versions") && (has("active_version") || has("owner_account")) {
            return Some(FileKind::Artifact);
        }
        (has("data_files") && has("total_files")).then_some(FileKind::Manifest)
    }

    fn account(&self, kind: FileKind) -> Option<&'a str> {
        if kind == FileKind::Users { self.uuid } else { self.account }
    }
}
