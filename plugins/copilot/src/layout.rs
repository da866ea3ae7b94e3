//! The three tables that Microsoft exports, and where in their rows things stand.

use satchel_importer::names;

use crate::{raw, time};

/// `Conversation,Time,Author,Message`: what was said to Copilot, and its answers.
pub(crate) const HISTORY: &str = "copilot-importer/2026.02-history";
/// `CreatedAt,MessageContent,Author,ChatName`: the same of chats, and of the Microsoft 365 apps.
pub(crate) const CHAT: &str = "copilot-importer/2026.02-chat";
/// `Timestamp,ClientApp,Prompt`: what was asked in Windows apps, without the answers.
pub(crate) const APPS: &str = "copilot-importer/2026.02-apps";
/// The formats.
pub(crate) const FORMATS: [&str; 3] = [HISTORY, CHAT, APPS];

/// What separates cells; Microsoft writes commas, spreadsheets write what their language asks for.
pub(crate) const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// Which table it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    History,
    Chat,
    Apps,
}

const LAYOUTS: [Layout; 3] = [Layout::History, Layout::Chat, Layout::Apps];

impl Layout {
    pub(crate) fn format(self) -> &'static str {
        match self {
            Self::History => HISTORY,
            Self::Chat => CHAT,
            Self::Apps => APPS,
        }
    }

    /// The names of its columns: title, time, author, text.
    fn names(self) -> [Option<&'static str>; 4] {
        match self {
            Self::History => [Some("Conversation"), Some("Time"), Some("Author"), Some("Message")],
            Self::Chat => [Some("ChatName"), Some("CreatedAt"), Some("Author"), Some("MessageContent")],
            Self::Apps => [Some("ClientApp"), Some("Timestamp"), None, Some("Prompt")],
        }
    }

    /// Where its columns stand as Microsoft writes them: title, time, author, text.
    fn places(self) -> [Option<usize>; 4] {
        match self {
            Self::History => [Some(0), Some(1), Some(2), Some(3)],
            Self::Chat => [Some(3), Some(0), Some(2), Some(1)],
            Self::Apps => [Some(1), Some(0), None, Some(2)],
        }
    }
}

/// A table's head, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) layout: Layout,
    /// The names as they stand in the head.
    pub(crate) names: Vec<String>,
    pub(crate) title: usize,
    pub(crate) time: usize,
    pub(crate) author: Option<usize>,
    pub(crate) text: usize,
    /// The head has the names that Microsoft gives in English.
    pub(crate) named: bool,
}

impl Columns {
    /// Reads a head by its names, in any order and case, with other columns beside.
    pub(crate) fn of_head(names: &[String]) -> Option<Self> {
        let place = |wanted: &str| names.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted));
        let (layout, places) = LAYOUTS.into_iter().find_map(|layout| {
            let wanted = layout.names();
            let places = wanted.map(|wanted| wanted.and_then(place));
            let all = wanted.iter().zip(&places).all(|(wanted, place)| wanted.is_some() == place.is_some());
            all.then_some((layout, places))
        })?;
        Self::new(layout, names.to_vec(), places, true)
    }

    /// Guesses what a head in another language means by the rows under it; `path` may say that it is Copilot's.
    pub(crate) fn of_rows(names: &[String], rows: &[Vec<String>], path: &str) -> Option<Self> {
        let told = names::split(path).1.to_ascii_lowercase().contains("copilot");
        LAYOUTS.into_iter().find_map(|layout| {
            let columns = Self::new(layout, names.to_vec(), layout.places(), false)?;
            let fits = columns.fits(rows) && (told || columns.talks(rows));
            (columns.names.len() == columns.width() && fits).then_some(columns)
        })
    }

    fn new(layout: Layout, names: Vec<String>, places: [Option<usize>; 4], named: bool) -> Option<Self> {
        let [title, time, author, text] = places;
        Some(Self { layout, names, title: title?, time: time?, author, text: text?, named })
    }

    /// How many cells a row needs.
    pub(crate) fn width(&self) -> usize {
        [self.title, self.time, self.text, self.author.unwrap_or(0)].into_iter().max().unwrap_or(0) + 1
    }

    /// Whether every row has a time where it belongs.
    fn fits(&self, rows: &[Vec<String>]) -> bool {
        let timed = |row: &Vec<String>| row.get(self.time).is_some_and(|text| time::parse(text).is_some());
        !rows.is_empty() && rows.iter().all(|row| row.len() == self.width() && timed(row))
    }

    /// Whether the rows are words of people and of an AI, and of nobody else.
    fn talks(&self, rows: &[Vec<String>]) -> bool {
        let author = |row: &Vec<String>| self.author.and_then(|at| row.get(at)).cloned().unwrap_or_default();
        self.layout == Layout::History && rows.iter().all(|row| raw::known_role(&author(row)).is_some())
    }

    /// Whether rows under a head with the right names are Copilot's: some row has a time, and where the names are
    /// common words, some row is by one of the two who talk.
    pub(crate) fn confirmed_by(&self, rows: &[Vec<String>]) -> bool {
        let timed = |row: &Vec<String>| row.get(self.time).is_some_and(|text| time::parse(text).is_some());
        let author = |row: &Vec<String>| self.author.and_then(|at| row.get(at)).cloned().unwrap_or_default();
        let common = self.layout == Layout::History;
        rows.iter().any(|row| timed(row) && (!common || raw::known_role(&author(row)).is_some()))
    }
}
