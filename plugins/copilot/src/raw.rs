//! One row, understood: who said what and when, and what is left of it.

use std::borrow::Cow;

use satchel_importer::Leftover;

use crate::{
    layout::{Columns, Layout},
    rows::Row,
    time::{self, Time},
};

/// Who speaks, as the tables say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    User,
    Assistant,
    System,
}

impl Role {
    pub(crate) fn speaks_first(self) -> bool {
        self != Self::Assistant
    }

    /// A word for keys.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) title: String,
    pub(crate) time: Option<Time>,
    pub(crate) role: Role,
    /// The name of an assistant that has one.
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    /// The text of a JSON object with what has no place above.
    pub(crate) rest: Option<String>,
}

impl Record {
    /// Reads a row that has all its cells.
    pub(crate) fn read(row: &Row<'_>, columns: &Columns) -> Self {
        let mut rest = Leftover::default();
        let (author, time_text) = (columns.author.map(|at| row.cell(at)), row.cell(columns.time));
        let role = author.as_deref().map_or(Some(Role::User), known_role);
        let time = time::parse(&time_text);
        if time.is_none() && !time_text.trim().is_empty() {
            rest.add_text(name_at(columns, columns.time), &time_text);
        }
        if time.is_some_and(|time| time.naive) {
            rest.add_text("tz", "assumed");
        }
        let author = author.filter(|name| !name.trim().is_empty());
        if let (Some(name), Some(at)) = (&author, columns.author)
            && !USUAL.contains(&name.as_ref())
        {
            rest.add_text(name_at(columns, at), name);
        }
        let name = author.filter(|_| role.is_none()).map(Cow::into_owned);
        let taken = [Some(columns.title), Some(columns.time), columns.author, Some(columns.text)];
        let further: Vec<(String, Cow<'_, str>)> = (0..row.len())
            .filter(|at| !taken.contains(&Some(*at)))
            .map(|at| {
                (
                    columns
                        .names
                        .get(at)
                        .filter(|name| !name.is_empty())
                        .cloned()
                        .unwrap_or_else(|| format!("column {}", at + 1)),
                    row.cell(at),
                )
            })
            .filter(|(_, cell)| !cell.is_empty())
            .collect();
        for (name, cell) in &further {
            rest.add_text(name, cell);
        }
        Self {
            title: row.cell(columns.title).into_owned(),
            time,
            role: role.unwrap_or(Role::Assistant),
            name,
            text: row.cell(columns.text).into_owned(),
            rest: rest.into_json().map(Cow::into_owned),
        }
    }

    /// Whether the row has an author column with nothing in it.
    pub(crate) fn nameless(row: &Row<'_>, columns: &Columns) -> bool {
        columns.author.is_some_and(|at| row.cell(at).trim().is_empty())
    }

    /// Whether its title tells its conversation from others. Copilot calls chats that it has no name for alike, and a
    /// column of apps names no chats at all.
    pub(crate) fn titled(&self, layout: Layout) -> bool {
        let title = self.title.trim().to_lowercase();
        layout != Layout::Apps && !title.is_empty() && !UNTITLED.contains(&title.as_str())
    }

    /// Bytes that it holds, roughly.
    pub(crate) fn weight(&self) -> usize {
        self.title.len() + self.text.len() + self.rest.as_ref().map_or(0, String::len) + 256
    }
}

/// The words of nearly all rows for the person and for the assistant; any other word is kept.
const USUAL: [&str; 2] = ["Human", "AI"];
/// What Copilot calls chats without a name.
const UNTITLED: [&str; 5] =
    ["untitled", "(untitled)", "untitled conversation", "new conversation", "new chat"];

/// The role of an author whom the tables name by what he is; any other name is an assistant's own.
pub(crate) fn known_role(author: &str) -> Option<Role> {
    let author = author.trim();
    let is = |names: &[&str]| names.iter().any(|name| author.eq_ignore_ascii_case(name));
    if is(&["human", "user"]) {
        Some(Role::User)
    } else if is(&["ai", "assistant", "copilot", "bot"]) {
        Some(Role::Assistant)
    } else {
        is(&["system"]).then_some(Role::System)
    }
}

fn name_at(columns: &Columns, at: usize) -> &str {
    columns.names.get(at).map_or("", |name| name.trim())
}
