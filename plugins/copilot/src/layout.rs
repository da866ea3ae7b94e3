//! The three tables that Microsoft exports, their columns and their authors.

use satchel_importer::{Role, names};

use crate::time;

/// `Conversation,Time,Author,Message`: prompts and answers of Copilot.
pub(crate) const HISTORY: &str = "copilot-importer/2026.02-history";
/// `CreatedAt,MessageContent,Author,ChatName`: the same for chats and the Microsoft 365 apps.
pub(crate) const CHAT: &str = "copilot-importer/2026.02-chat";
/// `Timestamp,ClientApp,Prompt`: prompts in Windows apps, without the answers.
pub(crate) const APPS: &str = "copilot-importer/2026.02-apps";
/// The formats.
pub(crate) const FORMATS: [&str; 3] = [HISTORY, CHAT, APPS];

/// Cell separators: Microsoft writes commas, spreadsheets use the one of their locale.
pub(crate) const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// The layout of a table.
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

    /// The indices of its columns as Microsoft writes them: title, time, author, text.
    fn indices(self) -> [Option<usize>; 4] {
        match self {
            Self::History => [Some(0), Some(1), Some(2), Some(3)],
            Self::Chat => [Some(3), Some(0), Some(2), Some(1)],
            Self::Apps => [Some(1), Some(0), None, Some(2)],
        }
    }
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) layout: Layout,
    /// The names in the header.
    pub(crate) names: Vec<String>,
    pub(crate) title: usize,
    pub(crate) time: usize,
    pub(crate) author: Option<usize>,
    pub(crate) text: usize,
}

impl Columns {
    /// Finds the columns by their English names, in any order and case; other columns are allowed.
    pub(crate) fn of_header(names: &[String]) -> Option<Self> {
        let index = |wanted: &str| names.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted));
        let (layout, indices) = LAYOUTS.into_iter().find_map(|layout| {
            let wanted = layout.names();
            let indices = wanted.map(|wanted| wanted.and_then(index));
            let all = wanted.iter().zip(&indices).all(|(wanted, index)| wanted.is_some() == index.is_some());
            all.then_some((layout, indices))
        })?;
        Self::new(layout, names.to_vec(), indices)
    }

    /// Guesses the columns of a header in another language from its rows; `path` may name Copilot.
    pub(crate) fn of_rows(names: &[String], rows: &[Vec<String>], path: &str) -> Option<Self> {
        let path_names_copilot = names::split(path).1.to_ascii_lowercase().contains("copilot");
        LAYOUTS.into_iter().find_map(|layout| {
            let columns = Self::new(layout, names.to_vec(), layout.indices())?;
            let fits = columns.fits(rows) && (path_names_copilot || columns.has_only_known_authors(rows));
            (columns.names.len() == columns.width() && fits).then_some(columns)
        })
    }

    fn new(layout: Layout, names: Vec<String>, indices: [Option<usize>; 4]) -> Option<Self> {
        let [title, time, author, text] = indices;
        Some(Self { layout, names, title: title?, time: time?, author, text: text? })
    }

    /// The number of cells that a row needs.
    pub(crate) fn width(&self) -> usize {
        [self.title, self.time, self.text, self.author.unwrap_or(0)].into_iter().max().unwrap_or(0) + 1
    }

    /// Whether every row has the right number of cells and a time.
    fn fits(&self, rows: &[Vec<String>]) -> bool {
        !rows.is_empty() && rows.iter().all(|row| row.len() == self.width() && self.has_time(row))
    }

    /// Whether it is a history whose authors are all known.
    fn has_only_known_authors(&self, rows: &[Vec<String>]) -> bool {
        self.layout == Layout::History && rows.iter().all(|row| self.has_known_author(row))
    }

    /// Whether rows below a header with the right names are Copilot's: some row has a time, and also a known author if the
    /// column names are common words.
    pub(crate) fn confirmed_by(&self, rows: &[Vec<String>]) -> bool {
        let common_names = self.layout == Layout::History;
        rows.iter().any(|row| self.has_time(row) && (!common_names || self.has_known_author(row)))
    }

    fn has_time(&self, row: &[String]) -> bool {
        row.get(self.time).is_some_and(|text| time::parse(text).is_some())
    }

    fn has_known_author(&self, row: &[String]) -> bool {
        self.author.and_then(|at| row.get(at)).is_some_and(|author| known_role(author).is_some())
    }
}

/// The role of an author that the tables use for everyone; any other name is that of an assistant.
pub(crate) fn known_role(author: &str) -> Option<Role> {
    match author.trim().to_ascii_lowercase().as_str() {
        "human" | "user" => Some(Role::User),
        "ai" | "assistant" | "copilot" | "bot" => Some(Role::Assistant),
        "system" => Some(Role::System),
        _ => None,
    }
}
