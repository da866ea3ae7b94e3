//! What the screen shows, and what the program has to do next.

use std::{collections::BTreeMap, path::PathBuf};

use crossterm::event::KeyEvent;
use ratatui::layout::Size;

use super::{
    find::Terms,
    hits::{Hit, RecordKey, Target},
    line_editor::LineEditor,
    page::{Page, PageOptions},
    record::Record,
};
use crate::cli::{args::SearchKindArg, time::Calendar};

/// Everything that is shown.
pub(super) struct State {
    pub(super) calendar: Calendar,
    pub(super) color: bool,
    pub(super) size: Size,
    pub(super) query: LineEditor,
    pub(super) filters: Filters,
    pub(super) focus: Focus,
    /// Where the keys go after the record is closed.
    pub(super) focus_below: Focus,
    pub(super) overlay: Option<Overlay>,
    pub(super) list: HitList,
    /// The records that are exported together.
    pub(super) marked: BTreeMap<RecordKey, Target>,
    pub(super) reader: Option<Reader>,
    /// What is said at the bottom until the next key.
    pub(super) notice: Option<Notice>,
    /// Numbers the requests, so that a response to an older one is not shown.
    pub(super) serial: u64,
}

/// What is found, apart from the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) kind: SearchKindArg,
    /// Also what the platform hides.
    pub(super) hidden: bool,
    pub(super) platform: Option<String>,
}

/// Where keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    Query,
    List,
    Reader,
}

/// Something in front of the rest that takes the keys.
#[derive(Debug)]
pub(super) enum Overlay {
    Help {
        scroll: usize,
    },
    Platforms(PlatformList),
    /// Asks for the file of an export.
    Export {
        file: LineEditor,
        targets: Vec<Target>,
        problem: Option<String>,
    },
}

/// The platforms to choose from; the first choice is all of them.
#[derive(Debug, Default)]
pub(super) struct PlatformList {
    /// `None` until they are known.
    pub(super) counts: Option<Vec<(String, u64)>>,
    pub(super) selected: usize,
}

/// The rows of the list.
#[derive(Debug, Default)]
pub(super) struct HitList {
    pub(super) hits: Vec<Hit>,
    pub(super) selected: usize,
    /// The first row on the screen.
    pub(super) top: usize,
    /// Continues the list; empty at its end.
    pub(super) next: String,
    /// The number of hits; `None` for the newest records, which are not counted.
    pub(super) total: Option<u64>,
    pub(super) revision: i64,
    /// The query with words that find something.
    pub(super) suggestion: Option<String>,
    /// Why the query cannot be understood.
    pub(super) wrong: Option<WrongQuery>,
    /// The request whose response is awaited.
    pub(super) awaited: Option<SearchJob>,
    /// False until the first response.
    pub(super) answered: bool,
}

/// A part of the query that cannot be understood, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongQuery {
    pub(super) message: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A record that is read, or is about to be.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) target: Target,
    pub(super) serial: u64,
    pub(super) content: ReaderContent,
    pub(super) terms: Terms,
    pub(super) scroll: usize,
    /// The match at which the reader is.
    pub(super) at_match: Option<usize>,
    /// The text that is typed after `/`.
    pub(super) find: Option<LineEditor>,
}

#[derive(Debug)]
pub(super) enum ReaderContent {
    Loading,
    Failed(String),
    Open(Record, Page),
}

/// A line at the bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) error: bool,
}

/// What happened.
#[derive(Debug)]
pub(super) enum Event {
    Key(KeyEvent),
    Paste(String),
    Resize(Size),
    Found(SearchJob, Result<Found, SearchError>),
    Loaded(u64, Result<Record, String>),
    Platforms(Result<Vec<(String, u64)>, String>),
    Exported(Result<String, String>),
}

/// What has to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Replaces a search that has not been answered.
    Search(SearchJob),
    /// Replaces a load that has not been answered.
    Load {
        serial: u64,
        target: Target,
        delayed: bool,
    },
    CountPlatforms {
        query: String,
        filters: Filters,
    },
    Export {
        file: PathBuf,
        targets: Vec<Target>,
        hidden: bool,
    },
    Quit,
}

/// A request for rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchJob {
    pub(super) serial: u64,
    pub(super) query: String,
    pub(super) filters: Filters,
    /// Empty for the first page.
    pub(super) page_token: String,
    pub(super) stage: SearchStage,
}

/// When a search is made, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStage {
    /// At once.
    Immediate,
    /// Unless another key is typed first.
    Typed,
    /// After the rows are shown: of the index when it has everything that is stored.
    Current,
}

/// Rows that were found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) hits: Vec<Hit>,
    pub(super) next: String,
    pub(super) total: Option<u64>,
    pub(super) revision: i64,
    pub(super) suggestion: Option<String>,
}

/// Why there are no rows.
#[derive(Clone, Debug)]
pub(super) enum SearchError {
    /// The query cannot be understood.
    Query(WrongQuery),
    /// The index does not have everything yet.
    Behind,
    Other(String),
}

impl State {
    /// Returns the screen before anything is known, and the first request.
    pub(super) fn new(query: &str, calendar: Calendar, color: bool, size: Size) -> (Self, Vec<Effect>) {
        let mut state = Self {
            calendar,
            color,
            size,
            query: LineEditor::new(query),
            filters: Filters { kind: SearchKindArg::All, hidden: false, platform: None },
            focus: Focus::Query,
            focus_below: Focus::Query,
            overlay: None,
            list: HitList::default(),
            marked: BTreeMap::new(),
            reader: None,
            notice: None,
            serial: 0,
        };
        let first = state.search(SearchStage::Immediate);
        (state, vec![first])
    }

    /// Returns the row that is selected.
    pub(super) fn selected(&self) -> Option<&Hit> {
        self.list.hits.get(self.list.selected)
    }

    /// Returns the number of the next request.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Asks for the first rows.
    pub(super) fn search(&mut self, stage: SearchStage) -> Effect {
        let job = SearchJob {
            serial: self.next_serial(),
            query: self.query.text().trim_end().to_owned(),
            filters: self.filters.clone(),
            page_token: String::new(),
            stage,
        };
        self.list.awaited = Some(job.clone());
        Effect::Search(job)
    }

    /// Says something at the bottom.
    pub(super) fn say(&mut self, text: impl Into<String>, error: bool) {
        self.notice = Some(Notice { text: text.into(), error });
    }
}

impl Reader {
    /// Lays out the record again if the width or an option changed.
    pub(super) fn lay_out(&mut self, options: &PageOptions<'_>) {
        if let ReaderContent::Open(record, page) = &mut self.content {
            let options = PageOptions { message: self.target.message.as_deref(), ..*options };
            *page = Page::new(record, &options, &self.terms);
            self.at_match = self.at_match.filter(|at| *at < page.matches.len());
        }
    }

    pub(super) fn page(&self) -> Option<&Page> {
        match &self.content {
            ReaderContent::Open(_, page) => Some(page),
            ReaderContent::Loading | ReaderContent::Failed(_) => None,
        }
    }
}
