//! Finds Gemini exports among files, by what their heads hold.

use std::{collections::BTreeMap, io::Read as _};

use satchel_importer::{
    Bundle, Detection, Element, ErrorKind, ImportError, JsonArray, Parser,
    json::Kind as Json,
    names::{is_junk, split},
};

use crate::{
    activity::{
        Shape, cards,
        row::{Depth, Row},
    },
    gems::{self, Setting},
    layout::{self, Promise},
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

/// Bytes of a head that are looked at first, and where those do not decide. The host allows 16 MiB.
const HEADS: [usize; 2] = [256 * 1024, 7 * 1024 * 1024];
/// Elements after which a list that shows no activity shows none.
const MAX_STRANGERS: u64 = 32;
/// Bytes by which a file is known to be JSON or not.
const FIRST_BYTES: u64 = 64;

/// What a file holds. Lists come before pages, which say less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Activity(Shape),
    Workspace,
    Studio,
    Settings(Setting),
    /// Settings of which no more is known.
    Unknown,
    /// Belongs to a record of another file.
    Attachment,
}

/// One file of an export.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) kind: Kind,
}

/// Every export among the files, for the host.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let exports = survey(bundle)?.into_values().map(|files| {
        let format =
            FORMATS.iter().rev().find(|format| files.iter().any(|file| file.kind.format() == Some(format)));
        let telling = files.iter().any(|file| file.kind.tells());
        Detection {
            format: format.copied().unwrap_or(SETTINGS).to_owned(),
            confidence: if telling { 95 } else { 70 },
            files: files.into_iter().map(|file| file.path).collect(),
            account: None,
        }
    });
    Ok(exports.collect())
}

/// The files of every export, by its root.
pub(crate) fn survey(bundle: &Bundle) -> Result<BTreeMap<String, Vec<File>>, ImportError> {
    let mut found: BTreeMap<&str, Kind> = BTreeMap::new();
    for entry in bundle.entries() {
        let kind = match layout::promise(&entry.path) {
            Some(Promise::Html) => look_at_page(bundle, &entry.path)?,
            Some(Promise::Json) => look_at_json(bundle, &entry.path)?,
            Some(Promise::Other) | None => None,
        };
        if let Some(kind) = kind {
            found.insert(&entry.path, kind);
        }
    }
    adopt(bundle, &mut found);
    let mut exports: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for (path, kind) in found {
        exports.entry(layout::root(path)).or_default().push(File { path: path.to_owned(), kind });
    }
    Ok(exports)
}

impl Kind {
    fn format(self) -> Option<&'static str> {
        match self {
            Self::Activity(Shape::List) => Some(LIST),
            Self::Activity(Shape::Page) => Some(PAGE),
            Self::Workspace => Some(WORKSPACE),
            Self::Studio => Some(STUDIO),
            Self::Settings(_) | Self::Unknown => Some(SETTINGS),
            Self::Attachment => None,
        }
    }

    fn tells(self) -> bool {
        matches!(self, Self::Activity(_) | Self::Workspace | Self::Studio | Self::Settings(Setting::Gems))
    }
}

/// Claims the attachments: all that stands in the folder that Takeout makes for Gemini's activity or for conversations
/// of Workspace. Elsewhere a folder may be anybody's.
fn adopt<'b>(bundle: &'b Bundle, found: &mut BTreeMap<&'b str, Kind>) {
    let own: Vec<&str> = found
        .iter()
        .filter(|(path, kind)| match kind {
            Kind::Activity(_) => layout::is_own_folder(split(path).0),
            Kind::Workspace => path.contains("Takeout/"),
            Kind::Studio | Kind::Settings(_) | Kind::Unknown | Kind::Attachment => false,
        })
        .map(|(path, _)| split(path).0)
        .collect();
    for entry in bundle.entries().iter().filter(|entry| !is_junk(&entry.path)) {
        let folder = split(&entry.path).0;
        if own.contains(&folder) {
            let kind = found.entry(&entry.path).or_insert(Kind::Attachment);
            // What a person gave to Gemini is no export, whatever it holds.
            if matches!(kind, Kind::Studio | Kind::Settings(_) | Kind::Unknown) {
                *kind = Kind::Attachment;
            }
        }
    }
    adopt_parts(bundle, found);
}

/// Attachments of a Takeout in several parts stand in the same folder of other parts.
fn adopt_parts<'b>(bundle: &'b Bundle, found: &mut BTreeMap<&'b str, Kind>) {
    let inside = |path: &str| {
        let (_, rest) = path.split_once("Takeout/")?;
        Some((layout::root(path), split(rest).0.to_owned()))
    };
    let own: Vec<(String, String)> = found
        .iter()
        .filter(|(path, kind)| matches!(kind, Kind::Activity(_)) && layout::is_own_folder(split(path).0))
        .filter_map(|(path, _)| inside(path))
        .collect();
    if own.is_empty() {
        return;
    }
    for entry in bundle.entries().iter().filter(|entry| !is_junk(&entry.path)) {
        if inside(&entry.path).is_some_and(|place| own.contains(&place)) {
            found.entry(&entry.path).or_insert(Kind::Attachment);
        }
    }
}

fn look_at_page(bundle: &Bundle, path: &str) -> Result<Option<Kind>, ImportError> {
    if layout::is_settings(path) {
        let (_, name) = split(path);
        return Ok(Some(match name {
            "gemini_gems_data.html" => Kind::Settings(Setting::Gems),
            "gemini_scheduled_actions_data.html" => Kind::Settings(Setting::Actions),
            _ => Kind::Unknown,
        }));
    }
    let mut any = false;
    for head in HEADS {
        let mut ours = false;
        cards::sample(bundle, path, head as u64, |piece| {
            any = true;
            ours = crate::activity::is_our_card(piece.html);
            !ours
        })?;
        if ours {
            return Ok(Some(Kind::Activity(Shape::Page)));
        }
        if !any || bundle.entry(path).is_none_or(|entry| entry.size <= head as u64) {
            break;
        }
    }
    if any {
        return Ok(None);
    }
    let head = first(bundle, path, HEADS[0] as u64)?;
    Ok(gems::are_gems(&String::from_utf8_lossy(&head)).then_some(Kind::Settings(Setting::Gems)))
}

fn look_at_json(bundle: &Bundle, path: &str) -> Result<Option<Kind>, ImportError> {
    let bytes = first(bundle, path, FIRST_BYTES)?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if !matches!(text.trim_ascii_start().first(), Some(b'[' | b'{')) {
        return Ok(None);
    }
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    for bytes in HEADS {
        let mut head = Head::default();
        let sampled = JsonArray::new(path).sample(bundle, bytes, |element| {
            head.see(&element);
            head.kind.is_none() && !head.foreign && (head.rows > 0 || element.index() < MAX_STRANGERS)
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

/// What the head of a file shows.
#[derive(Default)]
struct Head {
    kind: Option<Kind>,
    /// Rows of activity, of whatever product.
    rows: usize,
    /// Records of another provider.
    foreign: bool,
}

impl Head {
    fn see(&mut self, element: &Element<'_>) {
        let mut json = element.parser();
        let seen = Seen::read(&mut json);
        self.kind = seen.kind();
        self.foreign |= self.kind.is_none() && seen.foreign;
        if seen.activity() {
            self.rows += 1;
            // An element that breaks off says as much as it says.
            let row = Row::read(&mut element.parser(), Depth::Noted);
            let ours = row.is_ok_and(|row| row.is_some_and(|row| row.is_ours()));
            if ours || (!element.whole() && seen.ours) {
                self.kind = Some(Kind::Activity(Shape::List));
            }
        }
    }
}

/// The keys of one element that tell.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "a flag for each key")]
struct Seen {
    title: bool,
    time: bool,
    product: bool,
    answer: bool,
    ours: bool,
    turns: bool,
    chunks: bool,
    foreign: bool,
}

impl Seen {
    /// Reads as far as the element goes.
    fn read(json: &mut Parser<'_>) -> Self {
        let mut seen = Self::default();
        let (Ok(()) | Err(_)) = seen.walk(json);
        seen
    }

    fn walk(&mut self, json: &mut Parser<'_>) -> Result<(), satchel_importer::JsonError> {
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
                    self.ours = json.kind()? == Json::String && layout::is_ours(json.string()?);
                }
                "safeHtmlItem" | "userInteractions" | "details" | "titleUrl" => self.answer = true,
                "conversation_turns" => self.turns = json.kind()? == Json::Array,
                "chunkedPrompt" => self.chunks = json.kind()? == Json::Object,
                "mapping" | "chat_messages" | "fragments" | "responses" | "conversations"
                | "contentChunks" => self.foreign = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn activity(&self) -> bool {
        self.title && self.time && (self.product || self.answer) && !self.foreign
    }

    fn kind(&self) -> Option<Kind> {
        if self.foreign {
            None
        } else if self.turns {
            Some(Kind::Workspace)
        } else {
            self.chunks.then_some(Kind::Studio)
        }
    }
}

fn first(bundle: &Bundle, path: &str, bytes: u64) -> Result<Vec<u8>, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(bytes).read_to_end(&mut head)?;
    Ok(head)
}
