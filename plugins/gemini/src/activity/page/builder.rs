//! Builds a row from the tags and texts of a card.

use std::borrow::Cow;

use satchel_importer::address::unsigned;

use super::{
    caption::{Caption, Section, add_list},
    line::{Line, Link, collapse_spaces, counts_files, is_file, is_list_of_files},
};
use crate::{
    activity::row::{Answer, ReadMode, Row, Upload, conversation_id},
    html::{Attributes, Event, EventFilter, Text, is_block},
    markdown::Converter,
    page_time::{self, PageTime},
};

/// The content of a card.
#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) row: Row<'static>,
    /// All elements are closed.
    pub(crate) complete: bool,
    /// One of its lines is a time that could be parsed.
    pub(crate) has_time: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Header,
    Body,
    Right,
    Caption,
    Other,
}

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    BodyBegins,
    BodyEnds,
    Inside,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent state of the walk")]
pub(super) struct CardBuilder {
    /// The open `div` elements.
    pub(super) cells: Vec<Cell>,
    /// The current cell. Other `div` elements belong to the cell around them.
    cell: Option<Cell>,
    any_opened: bool,
    pub(super) header: String,
    lines: Vec<Line>,
    line: Line,
    in_link: bool,
    bold: bool,
    time: Option<(String, PageTime)>,
    had_body: bool,
    mode: ReadMode,
    /// Bytes of the card; no answer is longer.
    length: usize,
    /// The content of the body behind the time.
    answer: Option<Converter>,
    pub(super) pictures: Vec<String>,
    caption: Vec<Section>,
}

impl CardBuilder {
    pub(super) fn new(mode: ReadMode, length: usize) -> Self {
        Self { mode, length, ..Self::default() }
    }

    /// Continues inside the body, with the content before it.
    pub(super) fn resume(&mut self, cells: &[Cell], header: &str) {
        self.cells.extend_from_slice(cells);
        header.clone_into(&mut self.header);
        (self.cell, self.any_opened, self.had_body) = (Some(Cell::Body), true, true);
    }

    pub(super) fn has_header_only(&self) -> bool {
        self.has_no_caption() && self.lines.is_empty() && self.pictures.is_empty()
    }

    pub(super) fn has_no_caption(&self) -> bool {
        let no_line = self.line.text.is_empty() && self.line.links.is_empty();
        no_line && self.caption.is_empty() && !self.bold && !self.in_link
    }

    /// The events that are needed next. In a summary, only the end of an answer matters.
    pub(super) fn filter(&self) -> EventFilter {
        let in_answer = self.answer.is_some() && self.cell == Some(Cell::Body);
        if in_answer && self.mode == ReadMode::Summary { EventFilter::Tag("div") } else { EventFilter::All }
    }

    pub(super) fn take(&mut self, event: Event<'_>) -> Step {
        let step = match event {
            Event::Open("div", attributes) => self.open_cell(attributes),
            Event::Close("div") => self.close_cell(),
            _ => Step::Inside,
        };
        match self.cell {
            Some(Cell::Header) => {
                if let Event::Text(text) = event {
                    text.push_to(&mut self.header);
                }
            }
            Some(Cell::Body) if self.time.is_none() => self.take_line(event),
            Some(Cell::Body) => self.take_answer(event),
            Some(Cell::Right) => self.take_picture(event),
            Some(Cell::Caption) => self.take_caption(event),
            Some(Cell::Other) | None => {}
        }
        step
    }

    fn open_cell(&mut self, attributes: &Attributes<'_>) -> Step {
        self.any_opened = true;
        if self.cell.is_some() {
            self.cells.push(Cell::Other);
            return Step::Inside;
        }
        let cell = match attributes.get("class").map_or(Cell::Other, cell_of) {
            Cell::Body if self.had_body => Cell::Right,
            cell => cell,
        };
        self.cells.push(cell);
        self.cell = Some(cell).filter(|cell| *cell != Cell::Other);
        if cell != Cell::Body {
            return Step::Inside;
        }
        self.had_body = true;
        Step::BodyBegins
    }

    fn close_cell(&mut self) -> Step {
        let closed = self.cells.pop();
        if closed.is_some_and(|cell| cell != Cell::Other) {
            // Cells do not nest.
            self.cell = None;
        }
        match closed {
            Some(Cell::Body) => {
                self.end_line();
                return Step::BodyEnds;
            }
            Some(Cell::Caption) => self.end_caption_line(),
            _ => {}
        }
        Step::Inside
    }

    fn take_line(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.push_text(text),
            Event::Open("br", _) => self.end_line(),
            Event::Open("a", attributes) => self.open_link(attributes),
            Event::Close("a") => self.in_link = false,
            Event::Open("img", attributes) => self.push_picture(attributes.get("src")),
            Event::Open(name, _) if is_block(name) => {
                // If this line was the time, the answer begins here.
                self.end_line();
                if self.time.is_some() {
                    return self.take_answer(event);
                }
                self.line.heading = matches!(name, "h1" | "h2" | "h3" | "h4" | "h5" | "h6");
            }
            Event::Close(name) if is_block(name) => self.end_line(),
            Event::Open(..) | Event::Close(_) => {}
        }
    }

    fn take_answer(&mut self, event: Event<'_>) {
        let full = self.mode == ReadMode::Full;
        let capacity = if full { self.length } else { 0 };
        let answer = self.answer.get_or_insert_with(|| Converter::with_capacity(capacity));
        if full {
            answer.take(event);
        }
    }

    fn push_text(&mut self, text: Text<'_>) {
        text.push_to(&mut self.line.text);
        if let Some(link) = self.line.links.last_mut().filter(|_| self.in_link) {
            text.push_to(&mut link.text);
        }
    }

    fn open_link(&mut self, attributes: &Attributes<'_>) {
        let address = attributes.get("href").unwrap_or_default().trim().to_owned();
        self.in_link = !address.is_empty();
        if self.in_link {
            self.line.links.push(Link { address, text: String::new() });
        }
    }

    fn end_line(&mut self) {
        self.in_link = false;
        let line = std::mem::take(&mut self.line);
        let text = line.text.trim();
        if text.is_empty() || self.time.is_some() {
            return;
        }
        match page_time::parse(text) {
            Some(time) => self.time = Some((text.to_owned(), time)),
            None => self.lines.push(line),
        }
    }

    fn take_picture(&mut self, event: Event<'_>) {
        match event {
            Event::Open("img", attributes) => self.push_picture(attributes.get("src")),
            Event::Open("a", attributes) => {
                self.push_picture(attributes.get("href").filter(|address| is_file(address)));
            }
            _ => {}
        }
    }

    fn push_picture(&mut self, source: Option<&str>) {
        let source =
            source.map(str::trim).filter(|source| !source.is_empty() && !source.starts_with("data:"));
        self.pictures.extend(source.map(ToOwned::to_owned));
    }

    fn take_caption(&mut self, event: Event<'_>) {
        match event {
            Event::Open("b", _) => {
                self.end_caption_line();
                self.bold = true;
                self.caption.push(Section::default());
            }
            Event::Close("b") => self.bold = false,
            Event::Open("br", _) => self.end_caption_line(),
            Event::Open("a", attributes) => self.open_link(attributes),
            Event::Close("a") => self.in_link = false,
            Event::Text(text) if self.bold => {
                if let Some(section) = self.caption.last_mut() {
                    text.push_to(&mut section.label);
                }
            }
            Event::Text(text) => self.push_text(text),
            Event::Open(..) | Event::Close(_) => {}
        }
    }

    fn end_caption_line(&mut self) {
        self.in_link = false;
        let line = std::mem::take(&mut self.line);
        if line.text.trim().is_empty() {
            return;
        }
        if self.caption.is_empty() {
            self.caption.push(Section::default());
        }
        if let Some(section) = self.caption.last_mut() {
            section.lines.push(line);
        }
    }

    pub(super) fn finish_caption(&mut self) -> Caption {
        Caption::new(&std::mem::take(&mut self.caption), self.mode)
    }

    pub(super) fn finish(mut self, caption: &Caption) -> Card {
        let complete = self.any_opened && self.cells.is_empty();
        if self.cells.contains(&Cell::Body) {
            // The page is cut off inside the body.
            self.end_line();
        }
        let mut row = Row::default();
        row.time = self.time.as_ref().and_then(|(_, time)| time.micros);
        self.add_header(&mut row);
        self.add_lines(&mut row);
        caption.add_to(&mut row);
        if let Some((line, time)) = &self.time {
            if self.mode == ReadMode::Full {
                row.rest.add_text("time", line);
                if time.micros.is_some() && !time.zone_known {
                    row.rest.add_text("tz", "assumed");
                }
            }
            row.answers.extend(self.answer.take().map(|answer| Answer::Markdown(answer.finish())));
        }
        for file in self.pictures {
            row.add_upload(Upload { file: Cow::Owned(file), name: None });
        }
        Card { complete, has_time: row.time.is_some(), row }
    }

    fn add_header(&self, row: &mut Row<'_>) {
        let header = collapse_spaces(&self.header);
        if !header.is_empty() {
            if self.mode == ReadMode::Full {
                row.rest.add_text("header", &header);
            }
            row.labels.push(Cow::Owned(header));
        }
    }

    /// Adds the title, the files below it, and the addresses in both.
    fn add_lines(&mut self, row: &mut Row<'_>) {
        let lines = std::mem::take(&mut self.lines);
        let (mut title, mut subtitles) = (Vec::new(), Vec::new());
        let headed = lines.first().is_some_and(|line| line.heading);
        for line in lines {
            if is_list_of_files(&line) {
                // The line before says how many files there are.
                if title.len() > 1 && title.last().is_some_and(|text: &String| counts_files(text)) {
                    subtitles.extend(title.pop());
                }
                for Link { address, text } in line.links {
                    let name = Some(text.trim().to_owned()).filter(|name| !name.is_empty()).map(Cow::Owned);
                    row.add_upload(Upload { file: Cow::Owned(address), name });
                }
                continue;
            }
            for link in &line.links {
                row.add_conversation(conversation_id(&link.address).map(|id| Cow::Owned(id.to_owned())));
            }
            if let [link] = line.links.as_slice()
                && title.is_empty()
                && link.address.contains("://")
            {
                row.rest.add_text("titleUrl", &unsigned(&link.address));
            }
            let text = trimmed(line.text);
            if headed && !title.is_empty() { subtitles.push(text) } else { title.push(text) }
        }
        row.title = Cow::Owned(if title.len() == 1 { title.swap_remove(0) } else { title.join("\n") });
        add_list(&mut row.rest, "subtitles", &subtitles);
    }
}

/// The kind of a cell by its classes. A content cell without another class is a body.
fn cell_of(classes: &str) -> Cell {
    let (mut content, mut cell) = (false, Cell::Body);
    for class in classes.split_ascii_whitespace() {
        match class {
            "header-cell" => return Cell::Header,
            "content-cell" => content = true,
            "mdl-typography--text-right" => cell = Cell::Right,
            "mdl-typography--caption" if cell == Cell::Body => cell = Cell::Caption,
            _ => {}
        }
    }
    if content { cell } else { Cell::Other }
}

/// Trims the text, and copies it only if that changes it.
fn trimmed(text: String) -> String {
    let trimmed = text.trim();
    if trimmed.len() == text.len() { text } else { trimmed.to_owned() }
}
