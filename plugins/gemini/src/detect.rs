//! Finds Gemini exports among files by the content of their heads.

use std::{collections::BTreeMap, io::Read as _};

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, JsonError, Parser,
    json::Kind,
    names::{is_junk, split},
};

use crate::{
    activity::{
        ActivityFormat, cards, is_gemini_card,
        row::{ReadMode, Row},
    },
    gems::{self, SettingsKind},
    layout::{self, FileType},
};

/// Activity as a page.
pub(crate) const PAGE: &str = "gemini-importer/2024.02";
/// Prompts of AI Studio.
pub(crate) const STUDIO: &str = "gemini-importer/2024.05";
/// Activity as a list.
pub(crate) const LIST: &str = "gemini-importer/2025.06";
/// Gems and other settings.
pub(crate) const SETTINGS: &str = "gemini-importer/2025.11";
/// Conversations of Gemini in Workspace.
pub(crate) const WORKSPACE: &str = "gemini-importer/2026.02";
/// The formats, oldest first.
pub(crate) const FORMATS: [&str; 5] = [PAGE, STUDIO, LIST, SETTINGS, WORKSPACE];

/// Bytes of a head that are read at first, and when these do not decide. The host allows 16 MiB.
const HEAD_SIZES: [usize; 2] = [256 * 1024, 7 * 1024 * 1024];
/// Elements that are read of a list without any row of activity.
const MAX_OTHER_ELEMENTS: u64 = 32;
/// Bytes that decide whether a file is JSON.
const FIRST_BYTES: u64 = 64;

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Activity(ActivityFormat),
    Workspace,
    Studio,
    Settings(SettingsKind),
    UnknownSettings,
    Attachment,
}

/// One file of an export.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) kind: FileKind,
}

/// Finds every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let exports = find_exports(bundle)?.into_values().map(|files| {
        let format =
            FORMATS.iter().rev().find(|format| files.iter().any(|file| file.kind.format() == Some(format)));
        let certain = files.iter().any(|file| file.kind.is_certain());
        Detection {
            format: format.copied().unwrap_or(SETTINGS).to_owned(),
            confidence: if certain { 95 } else { 70 },
            files: files.into_iter().map(|file| file.path).collect(),
            account: None,
        }
    });
    Ok(exports.collect())
}

/// The files of every export, by the root of the export.
pub(crate) fn find_exports(bundle: &Bundle) -> Result<BTreeMap<String, Vec<File>>, ImportError> {
    let mut found: BTreeMap<&str, FileKind> = BTreeMap::new();
    for entry in bundle.entries() {
        let kind = match layout::guess_type(&entry.path) {
            Some(FileType::Html) => classify_html(bundle, &entry.path)?,
            Some(FileType::Json) => classify_json(bundle, &entry.path)?,
            Some(FileType::Other) | None => None,
        };
        if let Some(kind) = kind {
            found.insert(&entry.path, kind);
        }
    }
    claim_attachments(bundle, &mut found);
    let mut exports: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for (path, kind) in found {
        exports.entry(layout::export_root(path)).or_default().push(File { path: path.to_owned(), kind });
    }
    Ok(exports)
}

impl FileKind {
    fn format(self) -> Option<&'static str> {
        match self {
            Self::Activity(ActivityFormat::List) => Some(LIST),
            Self::Activity(ActivityFormat::Page) => Some(PAGE),
            Self::Workspace => Some(WORKSPACE),
            Self::Studio => Some(STUDIO),
            Self::Settings(_) | Self::UnknownSettings => Some(SETTINGS),
            Self::Attachment => None,
        }
    }

    /// Whether the content alone proves the file to be Gemini's.
    fn is_certain(self) -> bool {
        matches!(
            self,
            Self::Activity(_) | Self::Workspace | Self::Studio | Self::Settings(SettingsKind::Gems)
        )
    }
}

/// Claims every file in the folders that Takeout creates for Gemini's activity and for conversations of Workspace. Other
/// folders may hold files of other programs.
fn claim_attachments<'b>(bundle: &'b Bundle, found: &mut BTreeMap<&'b str, FileKind>) {
    let folders: Vec<&str> = found
        .iter()
        .filter(|(path, kind)| match kind {
            FileKind::Activity(_) => layout::is_activity_folder(split(path).0),
            FileKind::Workspace => path.contains("Takeout/"),
            FileKind::Studio | FileKind::Settings(_) | FileKind::UnknownSettings | FileKind::Attachment => {
                false
            }
        })
        .map(|(path, _)| split(path).0)
        .collect();
    for entry in bundle.entries().iter().filter(|entry| !is_junk(&entry.path)) {
        if folders.contains(&split(&entry.path).0) {
            let kind = found.entry(&entry.path).or_insert(FileKind::Attachment);
            // An export that a person uploaded to Gemini is an attachment.
            if matches!(kind, FileKind::Studio | FileKind::Settings(_) | FileKind::UnknownSettings) {
                *kind = FileKind::Attachment;
            }
        }
    }
    claim_attachments_of_other_parts(bundle, found);
}

/// Claims the files in the same folder of other parts of the Takeout.
fn claim_attachments_of_other_parts<'b>(bundle: &'b Bundle, found: &mut BTreeMap<&'b str, FileKind>) {
    let folder_in_export = |path: &str| {
        let (_, rest) = path.split_once("Takeout/")?;
        Some((layout::export_root(path), split(rest).0.to_owned()))
    };
    let folders: Vec<(String, String)> = found
        .iter()
        .filter(|(path, kind)| {
            matches!(kind, FileKind::Activity(_)) && layout::is_activity_folder(split(path).0)
        })
        .filter_map(|(path, _)| folder_in_export(path))
        .collect();
    if folders.is_empty() {
        return;
    }
    for entry in bundle.entries().iter().filter(|entry| !is_junk(&entry.path)) {
        if folder_in_export(&entry.path).is_some_and(|folder| folders.contains(&folder)) {
            found.entry(&entry.path).or_insert(FileKind::Attachment);
        }
    }
}

fn classify_html(bundle: &Bundle, path: &str) -> Result<Option<FileKind>, ImportError> {
    if layout::is_settings_page(path) {
        return Ok(Some(match split(path).1 {
            "gemini_gems_data.html" => FileKind::Settings(SettingsKind::Gems),
            "gemini_scheduled_actions_data.html" => FileKind::Settings(SettingsKind::ScheduledActions),
            _ => FileKind::UnknownSettings,
        }));
    }
    let mut has_cards = false;
    for size in HEAD_SIZES {
        let mut gemini = false;
        cards::sample(bundle, path, size as u64, |card| {
            has_cards = true;
            gemini = is_gemini_card(card.html);
            !gemini
        })?;
        if gemini {
            return Ok(Some(FileKind::Activity(ActivityFormat::Page)));
        }
        if !has_cards || bundle.entry(path).is_none_or(|entry| entry.size <= size as u64) {
            break;
        }
    }
    if has_cards {
        return Ok(None);
    }
    let head = read_head(bundle, path, HEAD_SIZES[0] as u64)?;
    let gems = gems::is_gems_page(&String::from_utf8_lossy(&head));
    Ok(gems.then_some(FileKind::Settings(SettingsKind::Gems)))
}

fn classify_json(bundle: &Bundle, path: &str) -> Result<Option<FileKind>, ImportError> {
    let bytes = read_head(bundle, path, FIRST_BYTES)?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if !matches!(text.trim_ascii_start().first(), Some(b'[' | b'{')) {
        return Ok(None);
    }
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in HEAD_SIZES {
        let mut head = Head::default();
        let sampled = JsonArray::new(path).sample(bundle, bytes, |element| {
            head.add(&element);
            head.kind.is_none() && !head.foreign && (head.has_rows || element.index() < MAX_OTHER_ELEMENTS)
        });
        if let Err(error) = sampled
            && matches!(error.kind, ErrorKind::Io | ErrorKind::Cancelled)
        {
            return Err(error);
        }
        if head.kind.is_some() || head.foreign || size <= bytes as u64 {
            return Ok(head.kind);
        }
    }
    Ok(None)
}

/// What the elements in the head of a file are.
#[derive(Default)]
struct Head {
    kind: Option<FileKind>,
    /// There are rows of activity, of any product.
    has_rows: bool,
    /// There are records of another provider.
    foreign: bool,
}

impl Head {
    fn add(&mut self, element: &Element<'_>) {
        let mut keys = ElementKeys::default();
        // An element that is cut off has the keys before the cut.
        let (Ok(()) | Err(_)) = keys.read(&mut element.parser());
        self.kind = keys.kind();
        self.foreign |= self.kind.is_none() && keys.foreign;
        if keys.is_activity() {
            self.has_rows = true;
            let row = Row::read(&mut element.parser(), ReadMode::Summary);
            let gemini = row.is_ok_and(|row| row.is_some_and(|row| row.is_gemini()));
            if gemini || (!element.whole() && keys.gemini) {
                self.kind = Some(FileKind::Activity(ActivityFormat::List));
            }
        }
    }
}

/// The keys by which one element is recognised.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "a flag for each key")]
struct ElementKeys {
    title: bool,
    time: bool,
    product: bool,
    answer: bool,
    gemini: bool,
    turns: bool,
    chunks: bool,
    foreign: bool,
}

impl ElementKeys {
    fn read(&mut self, json: &mut Parser<'_>) -> Result<(), JsonError> {
        if !json.enter_object()? {
            return Ok(());
        }
        while let Some(key) = json.key()? {
            match key {
                "title" => self.title = true,
                "time" => self.time = true,
                "products" | "activityControls" => self.product = true,
                "header" => {
                    self.product = true;
                    self.gemini = json.kind()? == Kind::String && layout::is_gemini(json.string()?);
                }
                "safeHtmlItem" | "userInteractions" | "details" | "titleUrl" => self.answer = true,
                "conversation_turns" => self.turns = json.kind()? == Kind::Array,
                "chunkedPrompt" => self.chunks = json.kind()? == Kind::Object,
                "mapping" | "chat_messages" | "fragments" | "responses" | "conversations"
                | "contentChunks" => self.foreign = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn is_activity(&self) -> bool {
        self.title && self.time && (self.product || self.answer) && !self.foreign
    }

    fn kind(&self) -> Option<FileKind> {
        match self {
            Self { foreign: true, .. } => None,
            Self { turns: true, .. } => Some(FileKind::Workspace),
            Self { chunks: true, .. } => Some(FileKind::Studio),
            Self { .. } => None,
        }
    }
}

fn read_head(bundle: &Bundle, path: &str, bytes: u64) -> Result<Vec<u8>, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(bytes).read_to_end(&mut head)?;
    Ok(head)
}
