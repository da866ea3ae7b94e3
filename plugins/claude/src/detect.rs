//! Finds Claude exports among files, by what their heads hold.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser, json::Kind as Json,
};

use crate::layout::{self, Place, Promise};

/// One file, each conversation a list.
pub(crate) const LINEAR: &str = "claude-importer/2024.01";
/// Messages name their parents.
pub(crate) const BRANCHING: &str = "claude-importer/2025.06";
/// One archive for each category, with a manifest.
pub(crate) const BATCHED: &str = "claude-importer/2026.08";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 3] = [LINEAR, BRANCHING, BATCHED];

/// Bytes of a head that are looked at first, and where those do not decide. The host allows 16 MiB.
const HEADS: [usize; 2] = [256 * 1024, 8 * 1024 * 1024];
/// Elements after which a head has said what it can.
const MAX_ELEMENTS: u64 = 32;
/// Where a wrapper object holds its conversations.
const WRAPPER: &str = "/conversations";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Manifest,
    Users,
    Conversations,
    DesignChats,
    Projects,
    Memories,
    Artifact,
    Reflection,
    /// Nothing that its head shows; its name says that it belongs to the export.
    Silent,
    Private,
    /// Read with the artifact that it belongs to.
    ArtifactFile,
}

/// One file of an export.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Where in the file the list is.
    pub(crate) pointer: &'static str,
    /// Its messages name their parents.
    pub(crate) branching: bool,
    /// Not only its name tells that it is of an export.
    certain: bool,
}

/// The files of one export.
#[derive(Debug, Default)]
pub(crate) struct Export {
    pub(crate) files: Vec<File>,
    branching: bool,
    batched: bool,
    account: Option<(Kind, String)>,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let exports = survey(bundle)?;
    Ok(exports.into_iter().map(Export::into_detection).collect())
}

/// Every export among the files, ordered by folder.
pub(crate) fn survey(bundle: &Bundle) -> Result<Vec<Export>, ImportError> {
    let mut exports: BTreeMap<&str, Export> = BTreeMap::new();
    for entry in bundle.entries() {
        let Some(place) = layout::place(&entry.path) else { continue };
        let Some((file, head)) = look_at(bundle, &entry.path, place)? else { continue };
        exports.entry(place.root).or_default().add(file, head, place.batched);
    }
    Ok(exports.into_values().filter(Export::certain).collect())
}

impl Export {
    fn add(&mut self, file: File, head: Head, batched: bool) {
        self.branching |= head.branching;
        self.batched |= batched || file.kind == Kind::Manifest;
        if let Some(account) = head.account
            && self.account.as_ref().is_none_or(|(kind, _)| file.kind < *kind)
        {
            self.account = Some((file.kind, account));
        }
        self.files.push(file);
    }

    /// Whether some file shows whose export it is; names alone say nothing.
    fn certain(&self) -> bool {
        self.files.iter().any(|file| file.certain)
    }

    fn into_detection(self) -> Detection {
        let format = match (self.batched, self.branching) {
            (true, _) => BATCHED,
            (false, true) => BRANCHING,
            (false, false) => LINEAR,
        };
        let telling = |kind| kind < Kind::Reflection && !matches!(kind, Kind::Manifest | Kind::Users);
        let confidence = if self.files.iter().any(|file| telling(file.kind)) { 95 } else { 60 };
        Detection {
            format: format.to_owned(),
            confidence,
            files: self.files.into_iter().map(|file| file.path).collect(),
            account: self.account.map(|(_, account)| account),
        }
    }
}

/// What the file is; none if it is not ours.
fn look_at(bundle: &Bundle, path: &str, place: Place<'_>) -> Result<Option<(File, Head)>, ImportError> {
    let file = |kind, head: Head, certain: bool| {
        let pointer = if head.wrapped { WRAPPER } else { "" };
        Some((File { path: path.to_owned(), kind, pointer, branching: head.branching, certain }, head))
    };
    let by_name = |kind| Ok(file(kind, Head::default(), false));
    match place.promise {
        Promise::Private => return by_name(Kind::Private),
        Promise::ArtifactFile => return by_name(Kind::ArtifactFile),
        Promise::Reflection => {
            let certain = bears_its_name(bundle, path)?;
            return Ok(file(Kind::Reflection, Head::default(), certain));
        }
        Promise::Json | Promise::Artifact => {}
    }
    let head = look(bundle, path)?;
    Ok(match head.kind {
        // Only its place tells a description of an artifact from other lists of versions.
        Some(Kind::Artifact) if place.promise != Promise::Artifact => None,
        Some(kind) => file(kind, head, true),
        None if place.known && !head.foreign => file(Kind::Silent, head, false),
        None => None,
    })
}

/// What a file's head shows.
#[derive(Clone, Debug, Default)]
struct Head {
    kind: Option<Kind>,
    /// Objects that are not ours.
    foreign: bool,
    /// The conversations stand below [`WRAPPER`].
    wrapped: bool,
    branching: bool,
    account: Option<String>,
}

/// Whether the first object of a file bears the uuid by which the file is called.
fn bears_its_name(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut named = false;
    let sampled = JsonArray::new(path).sample(bundle, HEADS[0], |element| {
        let mut seen = Seen::default();
        let (Ok(()) | Err(_)) = seen.read(&mut element.parser());
        named = seen.uuid.is_some_and(|uuid| layout::stem(path) == uuid) && seen.kind().is_none();
        false
    });
    overlook(sampled)?;
    Ok(named)
}

/// A file that cannot be understood holds nothing that we know, whatever it holds.
fn overlook(sampled: Result<(), ImportError>) -> Result<(), ImportError> {
    match sampled {
        Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Looks at growing heads of a file until they say something.
fn look(bundle: &Bundle, path: &str) -> Result<Head, ImportError> {
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut head = Head::default();
    for bytes in HEADS {
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
            self.see(&element, pointer.is_empty(), layout::is_of_projects(path));
            let undecided =
                self.kind.is_none() || (self.kind == Some(Kind::Conversations) && !self.branching);
            undecided && !self.wrapped && element.index() < MAX_ELEMENTS
        });
        overlook(sampled)
    }

    /// Looks at one element of a file; `projects`: its name says that it lists projects.
    fn see(&mut self, element: &Element<'_>, root: bool, projects: bool) {
        let mut seen = Seen::default();
        // A sample may break off inside the element; what was seen before counts.
        let (Ok(()) | Err(_)) = seen.read(&mut element.parser());
        if root && seen.has("conversations") && seen.kind().is_none() {
            self.wrapped = true;
            return;
        }
        // Of a project without instructions and documents, only the file's name may tell what it is.
        let project = (projects && seen.has("uuid") && seen.has("name")).then_some(Kind::Projects);
        match seen.kind().or(project) {
            Some(kind) => {
                let kind = *self.kind.get_or_insert(kind);
                self.branching |=
                    kind == Kind::Conversations && element.text().contains("\"parent_message_uuid\"");
                if self.account.is_none() {
                    self.account = seen.account(kind).map(ToOwned::to_owned);
                }
            }
            None => self.foreign |= !seen.keys.is_empty(),
        }
    }
}

/// The keys of one element.
#[derive(Default)]
struct Seen<'a> {
    keys: BTreeSet<&'a str>,
    uuid: Option<&'a str>,
    account: Option<&'a str>,
    /// What the first of its `messages` holds.
    message: BTreeSet<&'a str>,
}

impl<'a> Seen<'a> {
    fn read(&mut self, json: &mut Parser<'a>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            self.keys.insert(key);
            match key {
                "uuid" if json.kind()? == Json::String => self.uuid = Some(json.string()?),
                "account_uuid" | "owner_account" if json.kind()? == Json::String => {
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
            if key == "uuid" && json.kind()? == Json::String {
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

    /// What an element with these keys is.
    fn kind(&self) -> Option<Kind> {
        let has = |key| self.has(key);
        if has("mapping") || has("responses") || has("fragments") {
            return None;
        }
        let stub = has("uuid") && has("name") && has("account");
        // Saved by tools that call the list otherwise; only its messages tell it from lists of other programs.
        let spoken = ["sender", "role"].iter().any(|key| self.message.contains(key));
        let named = has("uuid") && has("created_at") && (has("name") || has("title")) && !has("project");
        if has("chat_messages") || stub || (named && spoken) {
            return Some(Kind::Conversations);
        }
        if has("conversations_memory") || has("project_memories") || has("memory_files") {
            return Some(Kind::Memories);
        }
        let told = has("description") && (has("is_private") || has("is_starter_project") || has("docs"));
        if has("uuid") && (has("prompt_template") || (has("docs") && has("creator")) || (has("name") && told))
        {
            return Some(Kind::Projects);
        }
        if has("uuid") && has("messages") && has("project") {
            return Some(Kind::DesignChats);
        }
        if has("uuid") && has("full_name") && has("email_address") {
            return Some(Kind::Users);
        }
        if has("id") && has("versions") && (has("active_version") || has("owner_account")) {
            return Some(Kind::Artifact);
        }
        (has("data_files") && has("total_files")).then_some(Kind::Manifest)
    }

    fn account(&self, kind: Kind) -> Option<&'a str> {
        if kind == Kind::Users { self.uuid } else { self.account }
    }
}
