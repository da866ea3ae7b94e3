//! Reads a card tag by tag.

use std::borrow::Cow;

use satchel_importer::address::unsigned;

use super::{
    Card,
    caption::{Caption, Section, add_list},
    line::{Line, Link, counts_files, is_file, is_list_of_files, plain},
};
use crate::{
    activity::row::{Answer, Depth, Row, Upload, conversation_of},
    html::{Attributes, Event, Next, Text, is_block},
    markdown,
    when::{self, When},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Header,
    Body,
    Right,
    Caption,
    Other,
}

/// Where a tag leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    BodyBegins,
    BodyEnds,
    Inside,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says where in the card the reader stands")]
pub(super) struct Reader {
    /// What is open.
    pub(super) cells: Vec<Cell>,
    /// The cell in which the reader stands; plain blocks inside count as the cell around.
    cell: Option<Cell>,
    opened: bool,
    pub(super) header: String,
    lines: Vec<Line>,
    line: Line,
    in_link: bool,
    bold: bool,
    time: Option<(String, When)>,
    had_body: bool,
    depth: Depth,
    /// Bytes of the card; no answer is longer.
    length: usize,
    /// All that stands in the body behind the time.
    answer: Option<markdown::Reader>,
    pub(super) pictures: Vec<String>,
    caption: Vec<Section>,
}

impl Reader {
    /// A reader of a card of `length` bytes.
    pub(super) fn new(depth: Depth, length: usize) -> Self {
        Self { depth, length, ..Self::default() }
    }

    /// Goes on inside the body, with what was read before it.
    pub(super) fn resume(&mut self, cells: &[Cell], header: &str) {
        self.cells.extend_from_slice(cells);
        header.clone_into(&mut self.header);
        (self.cell, self.opened, self.had_body) = (Some(Cell::Body), true, true);
    }

    /// Whether nothing but the header was read.
    pub(super) fn is_fresh(&self) -> bool {
        self.has_no_caption() && self.lines.is_empty() && self.pictures.is_empty()
    }

    /// Whether no caption begun.
    pub(super) fn has_no_caption(&self) -> bool {
        let none = self.line.text.is_empty() && self.line.links.is_empty();
        none && self.caption.is_empty() && !self.bold && !self.in_link
    }

    /// What matters next: of a noted answer nothing but where its cell ends.
    pub(super) fn next(&self) -> Next {
        let noted = self.depth == Depth::Noted && self.answer.is_some() && self.cell == Some(Cell::Body);
        if noted { Next::Only("div") } else { Next::All }
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
        self.opened = true;
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
            // Cells do not stand in one another.
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
                // A time is over at its line's end; what begins here is the answer.
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
        let length = if self.depth == Depth::Read { self.length } else { 0 };
        let answer = self.answer.get_or_insert_with(|| markdown::Reader::of(length));
        if self.depth == Depth::Read {
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
        match when::read(text) {
            Some(when) => self.time = Some((text.to_owned(), when)),
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

    /// What the caption comes to, and none left.
    pub(super) fn caption(&mut self) -> Caption {
        Caption::of(&std::mem::take(&mut self.caption), self.depth)
    }

    pub(super) fn finish(mut self, caption: &Caption) -> Card<'static> {
        let whole = self.opened && self.cells.is_empty();
        if self.cells.contains(&Cell::Body) {
            // The page breaks off inside the body.
            self.end_line();
        }
        let mut row = Row::default();
        let when = self.time.as_ref().map(|(_, when)| *when);
        row.time = when.and_then(|when| when.micros);
        self.put_labels(&mut row);
        self.put_lines(&mut row);
        caption.put(&mut row);
        if let Some((line, when)) = &self.time {
            if self.depth == Depth::Read {
                row.rest.add_text("time", line);
                if when.micros.is_some() && !when.zoned {
                    row.rest.add_text("tz", "assumed");
                }
            }
            row.answers.extend(self.answer.take().map(|answer| Answer::Markdown(answer.finish())));
        }
        for file in self.pictures {
            row.uploads(Upload { file: Cow::Owned(file), name: None });
        }
        Card { row, whole, dated: when.is_some_and(|when| when.micros.is_some()) }
    }

    fn put_labels(&mut self, row: &mut Row<'_>) {
        let header = plain(&self.header);
        if !header.is_empty() {
            if self.depth == Depth::Read {
                row.rest.add_text("header", &header);
            }
            row.labels.push(Cow::Owned(header));
        }
    }

    /// The title, the files below it, and the addresses in both.
    fn put_lines(&mut self, row: &mut Row<'_>) {
        let lines = std::mem::take(&mut self.lines);
        let (mut title, mut beside) = (Vec::new(), Vec::new());
        let headed = lines.first().is_some_and(|line| line.heading);
        for line in lines {
            if is_list_of_files(&line) {
                // How many files there are stands in the line before.
                if title.len() > 1 && title.last().is_some_and(|text: &String| counts_files(text)) {
                    beside.extend(title.pop());
                }
                for Link { address, text } in line.links {
                    let name = Some(text.trim().to_owned()).filter(|name| !name.is_empty()).map(Cow::Owned);
                    row.uploads(Upload { file: Cow::Owned(address), name });
                }
                continue;
            }
            for link in &line.links {
                row.belongs_to(conversation_of(&link.address).map(|id| Cow::Owned(id.to_owned())));
            }
            if let [link] = line.links.as_slice()
                && title.is_empty()
                && link.address.contains("://")
            {
                row.rest.add_text("titleUrl", &unsigned(&link.address));
            }
            let text = trimmed(line.text);
            if headed && !title.is_empty() { beside.push(text) } else { title.push(text) }
        }
        row.title = Cow::Owned(match title.len() {
            1 => title.pop().unwrap_or_default(),
            _ => title.join("\n"),
        });
        add_list(&mut row.rest, "subtitles", &beside);
    }
}

/// What a cell is by its classes; a plain one is a body.
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

/// The text without white space around; it is copied only if it has some.
fn trimmed(text: String) -> String {
    let trimmed = text.trim();
    if trimmed.len() == text.len() { text } else { trimmed.to_owned() }
}
