//! One card of an activity page as a row.
//!
//! A card has a header cell (the product), a body cell (what was done, files, the time, then the answer), a cell at the
//! right (pictures) and a caption cell (product, conversations, why it is there). In the body lines are parted by `<br>`,
//! or they are a heading and paragraphs; whichever, the first line that is a time parts the prompt from the answer.

use std::borrow::Cow;

use satchel_importer::{Leftover, address::unsigned, json::quote};

use super::row::{Answer, Depth, Row, Upload, conversation_of};
use crate::{
    html::{Attributes, Event, Text, is_block, walk},
    markdown,
    when::{self, When},
};

/// What a card comes to.
#[derive(Debug)]
pub(crate) struct Card<'a> {
    pub(crate) row: Row<'a>,
    /// All that was opened was closed.
    pub(crate) whole: bool,
    /// It has a line that is a time, in a form that is understood.
    pub(crate) dated: bool,
}

/// Reads the HTML of one card.
pub(crate) fn read(html: &str, depth: Depth) -> Card<'static> {
    let mut reader = Reader { depth, length: html.len(), ..Reader::default() };
    walk(html, |event| reader.take(event));
    reader.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Header,
    Body,
    Right,
    Caption,
    Other,
}

/// A line of the body before the answer.
#[derive(Debug, Default)]
struct Line {
    text: String,
    heading: bool,
    links: Vec<Link>,
}

impl Line {
    /// Its text, and where it leads if that is not its text.
    fn with_address(&self) -> String {
        let text = plain(&self.text);
        let other = self.links.iter().map(|link| unsigned(&link.address)).find(|address| **address != *text);
        match other {
            Some(address) => format!("{text} <{address}>"),
            None => text,
        }
    }
}

#[derive(Debug, Default)]
struct Link {
    address: String,
    text: String,
}

/// A line in bold of the caption, and those under it.
#[derive(Debug, Default)]
struct Section {
    label: String,
    lines: Vec<Line>,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says where in the card the reader stands")]
struct Reader {
    cells: Vec<Cell>,
    opened: bool,
    header: String,
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
    pictures: Vec<String>,
    caption: Vec<Section>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Open("div", attributes) => self.open_cell(attributes),
            Event::Close("div") => self.close_cell(),
            _ => {}
        }
        match self.cell() {
            Some(Cell::Header) => {
                if let Event::Text(text) = event {
                    text.push_to(&mut self.header);
                }
            }
            Some(Cell::Body) if self.time.is_none() => self.take_line(event),
            Some(Cell::Body) => self.take_answer(event),
            Some(Cell::Right) => self.take_picture(event),
            Some(Cell::Caption) => self.take_caption(event),
            _ => {}
        }
    }

    /// The cell in which the reader stands; plain blocks inside count as the cell around.
    fn cell(&self) -> Option<Cell> {
        self.cells.iter().rev().copied().find(|cell| *cell != Cell::Other)
    }

    fn open_cell(&mut self, attributes: &Attributes<'_>) {
        self.opened = true;
        let inside = self.cell().is_some();
        let cell = match attributes.get("class").filter(|_| !inside).map_or(Cell::Other, cell_of) {
            Cell::Body if self.had_body => Cell::Right,
            cell => cell,
        };
        self.had_body |= cell == Cell::Body;
        self.cells.push(cell);
    }

    fn close_cell(&mut self) {
        match self.cells.pop() {
            Some(Cell::Body) => self.end_line(),
            Some(Cell::Caption) => self.end_caption_line(),
            _ => {}
        }
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
        if line.text.trim().is_empty() || self.time.is_some() {
            return;
        }
        match when::read(line.text.trim()) {
            Some(when) => self.time = Some((line.text.trim().to_owned(), when)),
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

    fn finish(mut self) -> Card<'static> {
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
        self.put_caption(&mut row);
        if let Some((line, when)) = &self.time {
            row.rest.add_text("time", line);
            if when.micros.is_some() && !when.zoned {
                row.rest.add_text("tz", "assumed");
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
            row.rest.add_text("header", &header);
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
            let text = line.text.trim().to_owned();
            if headed && !title.is_empty() { beside.push(text) } else { title.push(text) }
        }
        row.title = Cow::Owned(title.join("\n"));
        add_list(&mut row.rest, "subtitles", &beside);
    }

    fn put_caption(&mut self, row: &mut Row<'_>) {
        let mut kept = Leftover::default();
        let sections = std::mem::take(&mut self.caption);
        for section in &sections {
            for link in section.lines.iter().flat_map(|line| &line.links) {
                row.belongs_to(conversation_of(&link.address).map(|id| Cow::Owned(id.to_owned())));
            }
            if self.depth == Depth::Noted {
                continue;
            }
            let lines: Vec<String> = section.lines.iter().map(Line::with_address).collect();
            add_list(&mut kept, section.label.trim(), &lines);
        }
        // A card that says nothing above may say below of which product it is.
        if row.labels.is_empty() {
            let lines = sections.iter().take(1).flat_map(|section| &section.lines);
            row.labels.extend(lines.map(|line| Cow::Owned(plain(&line.text))));
        }
        if let Some(kept) = kept.into_json() {
            row.rest.add_json("caption", &kept);
        }
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

fn add_list<'k>(rest: &mut Leftover<'k>, key: &'k str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    let mut list = String::new();
    for text in texts {
        list.push(if list.is_empty() { '[' } else { ',' });
        quote(text, &mut list);
    }
    list.push(']');
    rest.add_json(key, &list);
}

/// Whether a line holds links to files of the export and nothing else.
fn is_list_of_files(line: &Line) -> bool {
    if line.links.is_empty() || !line.links.iter().all(|link| is_file(&link.address)) {
        return false;
    }
    let linked: usize = line.links.iter().map(|link| letters(&link.text)).sum();
    letters(&line.text) == linked
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

fn is_file(address: &str) -> bool {
    !address.contains("://") && !address.starts_with(['#', '/']) && !address.starts_with("mailto:")
}

/// `Attached 2 files.` in any language.
fn counts_files(text: &str) -> bool {
    text.chars().count() < 60 && text.chars().any(|c| c.is_ascii_digit())
}

/// Without white space around, and with plain spaces.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}

#[cfg(test)]
mod tests;
