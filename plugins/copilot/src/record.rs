//! The record of one row: title, time, author, text and the other cells.

use std::borrow::Cow;

use satchel_importer::{Leftover, Role};

use crate::{
    layout::{Columns, Layout, known_role},
    rows::Row,
    time::{self, Time},
};

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) title: String,
    pub(crate) time: Option<Time>,
    pub(crate) role: Role,
    /// The name of an assistant that has one.
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    /// The other cells as the text of a JSON object.
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
            && !USUAL_AUTHORS.contains(&name.as_ref())
        {
            rest.add_text(name_at(columns, at), name);
        }
        let name = author.filter(|_| role.is_none()).map(Cow::into_owned);
        let taken = [Some(columns.title), Some(columns.time), columns.author, Some(columns.text)];
        let further: Vec<(String, Cow<'_, str>)> = (0..row.len())
            .filter(|at| !taken.contains(&Some(*at)))
            .map(|at| {
                let name = columns.names.get(at).filter(|name| !name.is_empty()).cloned();
                (name.unwrap_or_else(|| format!("column {}", at + 1)), row.cell(at))
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

    /// Whether the author cell is blank.
    pub(crate) fn nameless(row: &Row<'_>, columns: &Columns) -> bool {
        columns.author.is_some_and(|at| row.cell(at).trim().is_empty())
    }

    /// Whether its title identifies its conversation: Copilot gives the same title to all unnamed chats, and the app is not a
    /// title.
    pub(crate) fn titled(&self, layout: Layout) -> bool {
        let title = self.title.trim().to_lowercase();
        layout != Layout::Apps && !title.is_empty() && !UNTITLED.contains(&title.as_str())
    }

    /// Its approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.title.len() + self.text.len() + self.rest.as_ref().map_or(0, String::len) + 256
    }
}

/// The usual authors; any other is kept in the metadata.
const USUAL_AUTHORS: [&str; 2] = ["Human", "AI"];
/// Titles that Copilot gives to unnamed chats.
const UNTITLED: [&str; 5] =
    ["untitled", "(untitled)", "untitled conversation", "new conversation", "new chat"];

fn name_at(columns: &Columns, at: usize) -> &str {
    columns.names.get(at).map_or("", |name| name.trim())
}
