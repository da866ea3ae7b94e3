//! HTML answers as Markdown: headings, lists, tables, code, links, emphasis.

use std::borrow::Cow;

use crate::html::{Attributes, Event, TextPart, is_block, walk};

mod writer;

use writer::Writer;

/// An answer in Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Markdown {
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
}

/// An image in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) file: String,
    pub(crate) name: Option<String>,
}

/// Converts `html` to Markdown.
pub(crate) fn convert(html: &str) -> Markdown {
    let mut converter = Converter::with_capacity(html.len());
    walk(html, |event| converter.take(event));
    converter.finish()
}

/// Converts HTML event by event.
#[derive(Debug, Default)]
pub(crate) struct Converter {
    out: Writer,
    images: Vec<Image>,
    /// For each open link, the offset of its text in `out`, and its address.
    links: Vec<(usize, String)>,
    lists: Vec<List>,
    /// The text of an open code block, and its language.
    code: Option<(String, String)>,
    table: Option<Table>,
}

#[derive(Debug)]
struct List {
    /// The number of the next item of an ordered list.
    next: Option<u64>,
    /// Columns by which the open item is indented.
    indent: usize,
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<String>>,
    /// The text around the table, while a cell is open.
    outside: Option<Writer>,
    /// Open tables inside a cell.
    nested: usize,
}

impl Converter {
    /// A converter with room for `capacity` bytes of Markdown.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { out: Writer::with_capacity(capacity), ..Self::default() }
    }

    pub(crate) fn take(&mut self, event: Event<'_>) {
        match (event, &mut self.code) {
            (Event::Text(text), Some((code, _))) => text.push_to(code),
            (Event::Open("br", _), Some((code, _))) => code.push('\n'),
            (Event::Open("code", attributes), Some((_, language))) => *language = code_language(attributes),
            (Event::Close("pre"), Some(_)) => self.end_code(),
            (Event::Open(..) | Event::Close(_), Some(_)) => {}
            (Event::Text(text), None) => text.parts(|part| match part {
                TextPart::Plain(text) => self.out.text(text),
                TextPart::Character(character) => self.out.character(character),
            }),
            (Event::Open(name, attributes), None) => self.open(name, attributes),
            (Event::Close(name), None) => self.close(name),
        }
    }

    fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "br" => self.out.line_break(),
            "b" | "strong" => self.out.markup("**"),
            "i" | "em" => self.out.markup("*"),
            "s" | "del" | "strike" => self.out.markup("~~"),
            "code" => self.out.markup("`"),
            "pre" => self.code = Some((String::new(), code_language(attributes))),
            "a" => {
                // Links do not nest.
                self.links.clear();
                self.links.push((self.out.len(), attributes.get("href").unwrap_or_default().to_owned()));
            }
            "img" => self.image(attributes),
            "hr" => {
                self.out.end_paragraph();
                self.out.markup("---");
                self.out.end_paragraph();
            }
            "ul" | "ol" => self.open_list(name == "ol", attributes),
            "li" => self.open_item(),
            "blockquote" => self.out.begin_quote(),
            "table" => self.open_table(),
            "tr" => self.open_row(),
            "td" | "th" => self.open_cell(),
            _ => match heading_level(name) {
                Some(level) => {
                    self.out.end_paragraph();
                    self.out.markup(&format!("{} ", "#".repeat(level)));
                }
                None if name == "p" => self.out.end_paragraph(),
                None if is_block(name) => self.out.end_line(),
                None => {}
            },
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "b" | "strong" => self.out.closing_markup("**"),
            "i" | "em" => self.out.closing_markup("*"),
            "s" | "del" | "strike" => self.out.closing_markup("~~"),
            "code" => self.out.closing_markup("`"),
            "a" => self.end_link(),
            "ul" | "ol" => self.end_list(),
            "blockquote" => self.out.end_quote(),
            "table" => self.end_table(),
            "td" | "th" => self.end_cell(),
            "p" => self.out.end_paragraph(),
            _ if heading_level(name).is_some() => self.out.end_paragraph(),
            _ if is_block(name) => self.out.end_line(),
            _ => {}
        }
    }

    fn image(&mut self, attributes: &Attributes<'_>) {
        let source = attributes.get("src").unwrap_or_default().trim();
        let name = attributes.get("alt").map(str::trim).filter(|name| !name.is_empty());
        // An image inside the page is left out: its bytes would fill the text.
        let source = if source.starts_with("data:") { "" } else { source };
        self.out.markup(&format!("![{}]({source})", name.unwrap_or_default()));
        if !source.is_empty() {
            self.images.push(Image { file: source.to_owned(), name: name.map(ToOwned::to_owned) });
        }
    }

    fn end_link(&mut self) {
        let Some((start, address)) = self.links.pop() else { return };
        if !address.is_empty() {
            self.out.link(start, &address);
        }
    }

    fn end_code(&mut self) {
        let Some((code, language)) = self.code.take() else { return };
        self.out.end_paragraph();
        self.out.code(&code, &language);
        self.out.end_paragraph();
    }

    fn open_list(&mut self, numbered: bool, attributes: &Attributes<'_>) {
        if self.lists.is_empty() {
            self.out.end_paragraph();
        } else {
            self.out.end_line();
        }
        let first = attributes.get("start").and_then(|start| start.parse().ok()).unwrap_or(1);
        self.lists.push(List { next: numbered.then_some(first), indent: 0 });
    }

    fn open_item(&mut self) {
        self.end_item();
        self.out.end_line();
        let Some(list) = self.lists.last_mut() else { return self.out.markup("- ") };
        let marker = match &mut list.next {
            Some(number) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                Cow::Owned(marker)
            }
            None => Cow::Borrowed("- "),
        };
        list.indent = self.out.begin_item(&marker);
    }

    fn end_item(&mut self) {
        if let Some(list) = self.lists.last_mut() {
            self.out.dedent(std::mem::take(&mut list.indent));
        }
    }

    fn end_list(&mut self) {
        self.end_item();
        if self.lists.pop().is_some() {
            if self.lists.is_empty() { self.out.end_paragraph() } else { self.out.end_line() }
        }
    }

    fn open_table(&mut self) {
        match &mut self.table {
            Some(table) => table.nested += 1,
            None => self.table = Some(Table::default()),
        }
    }

    fn open_row(&mut self) {
        self.end_cell();
        match &mut self.table {
            Some(table) if table.nested == 0 => table.rows.push(Vec::new()),
            _ => self.out.end_line(),
        }
    }

    fn open_cell(&mut self) {
        self.end_cell();
        match &mut self.table {
            Some(table) if table.nested == 0 => {
                self.links.clear();
                table.outside = Some(std::mem::take(&mut self.out));
            }
            _ => self.out.text(" "),
        }
    }

    fn end_cell(&mut self) {
        let Some(table) = self.table.as_mut().filter(|table| table.nested == 0) else { return };
        let Some(outside) = table.outside.take() else { return };
        self.links.clear();
        self.lists.clear();
        let cell =
            std::mem::replace(&mut self.out, outside).finish().replace('|', "\\|").replace('\n', "<br>");
        if table.rows.is_empty() {
            table.rows.push(Vec::new());
        }
        if let Some(row) = table.rows.last_mut() {
            row.push(cell);
        }
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.as_mut().filter(|table| table.nested > 0) {
            table.nested -= 1;
            return;
        }
        self.end_cell();
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        if columns == 0 {
            return;
        }
        self.out.end_paragraph();
        for (index, row) in table.rows.iter().filter(|row| !row.is_empty()).enumerate() {
            self.out.markup(&row_to_markdown(row, columns.min(row.len() + MISSING_CELLS)));
            self.out.end_line();
            if index == 0 {
                self.out.markup(&format!("|{}", " --- |".repeat(columns)));
                self.out.end_line();
            }
        }
        self.out.end_paragraph();
    }

    pub(crate) fn finish(mut self) -> Markdown {
        self.end_code();
        if self.table.is_some() {
            if let Some(table) = &mut self.table {
                table.nested = 0;
            }
            self.end_table();
        }
        Markdown { text: self.out.finish(), images: self.images }
    }
}

/// The most empty cells that are added to a short row. Without it, a table with one wide row and many short ones would
/// grow to the product of both.
const MISSING_CELLS: usize = 64;

fn row_to_markdown(row: &[String], columns: usize) -> String {
    let cells = row.iter().map(String::as_str).chain(std::iter::repeat("")).take(columns);
    cells.fold(String::from("|"), |text, cell| text + " " + cell + " |")
}

fn heading_level(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

fn code_language(attributes: &Attributes<'_>) -> String {
    let mut classes = attributes.get("class").unwrap_or_default().split_ascii_whitespace();
    let language = classes.find_map(|class| class.strip_prefix("language-"));
    language.or_else(|| attributes.get("data-language")).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
