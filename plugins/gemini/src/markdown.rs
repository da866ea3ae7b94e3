//! HTML answers as Markdown: headings, lists, tables, code, links, emphasis.

use std::borrow::Cow;

use crate::html::{Attributes, Event, Piece, is_block, walk};

mod writer;

use writer::Writer;

/// An answer in Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Markdown {
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
}

/// An image that an answer shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) file: String,
    pub(crate) name: Option<String>,
}

/// Reads `html`.
pub(crate) fn read(html: &str) -> Markdown {
    let mut reader = Reader::of(html.len());
    walk(html, |event| reader.take(event));
    reader.finish()
}

/// Reads HTML event by event.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    out: Writer,
    images: Vec<Image>,
    /// Where the texts of open links begin, and where they lead.
    links: Vec<(usize, String)>,
    lists: Vec<List>,
    /// The text of an open code block, and its language.
    code: Option<(String, String)>,
    table: Option<Table>,
}

/// The number of the next item, if the list has numbers.
#[derive(Debug, Default)]
struct List {
    next: Option<u64>,
    indent: usize,
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<String>>,
    /// What was written around the cell that is open.
    outside: Option<Writer>,
    /// Tables inside a cell.
    nested: usize,
}

impl Reader {
    /// A reader of about `length` bytes of HTML.
    pub(crate) fn of(length: usize) -> Self {
        Self { out: Writer::of(length), ..Self::default() }
    }

    pub(crate) fn take(&mut self, event: Event<'_>) {
        match (event, &mut self.code) {
            (Event::Text(text), Some((code, _))) => text.push_to(code),
            (Event::Open("br", _), Some((code, _))) => code.push('\n'),
            (Event::Open("code", attributes), Some((_, language))) => *language = language_of(attributes),
            (Event::Close("pre"), Some(_)) => self.end_code(),
            (Event::Open(..) | Event::Close(_), Some(_)) => {}
            (Event::Text(text), None) => text.pieces(|piece| match piece {
                Piece::Plain(text) => self.out.words(text),
                Piece::Character(character) => self.out.character(character),
            }),
            (Event::Open(name, attributes), None) => self.open(name, attributes),
            (Event::Close(name), None) => self.close(name),
        }
    }

    fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        match name {
            "br" => self.out.line(),
            "b" | "strong" => self.out.mark("**"),
            "i" | "em" => self.out.mark("*"),
            "s" | "del" | "strike" => self.out.mark("~~"),
            "code" => self.out.mark("`"),
            "pre" => self.code = Some((String::new(), language_of(attributes))),
            "a" => {
                // Links do not nest.
                self.links.clear();
                self.links.push((self.out.len(), attributes.get("href").unwrap_or_default().to_owned()));
            }
            "img" => self.image(attributes),
            "hr" => {
                self.out.paragraph();
                self.out.mark("---");
                self.out.paragraph();
            }
            "ul" | "ol" => self.open_list(name == "ol", attributes),
            "li" => self.open_item(),
            "blockquote" => self.out.quote(true),
            "table" => self.open_table(),
            "tr" => self.open_row(),
            "td" | "th" => self.open_cell(),
            _ => match heading(name) {
                Some(level) => {
                    self.out.paragraph();
                    self.out.mark(&format!("{} ", "#".repeat(level)));
                }
                None if name == "p" => self.out.paragraph(),
                None if is_block(name) => self.out.line_start(),
                None => {}
            },
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "b" | "strong" => self.out.end_mark("**"),
            "i" | "em" => self.out.end_mark("*"),
            "s" | "del" | "strike" => self.out.end_mark("~~"),
            "code" => self.out.end_mark("`"),
            "a" => self.end_link(),
            "ul" | "ol" => self.end_list(),
            "blockquote" => self.out.quote(false),
            "table" => self.end_table(),
            "td" | "th" => self.end_cell(),
            "p" => self.out.paragraph(),
            _ if heading(name).is_some() => self.out.paragraph(),
            _ if is_block(name) => self.out.line_start(),
            _ => {}
        }
    }

    fn image(&mut self, attributes: &Attributes<'_>) {
        let source = attributes.get("src").unwrap_or_default().trim();
        let name = attributes.get("alt").map(str::trim).filter(|name| !name.is_empty());
        // Bytes inside the page would fill the text.
        let source = if source.starts_with("data:") { "" } else { source };
        self.out.mark(&format!("![{}]({source})", name.unwrap_or_default()));
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
        self.out.paragraph();
        self.out.code(&code, &language);
        self.out.paragraph();
    }

    fn open_list(&mut self, numbered: bool, attributes: &Attributes<'_>) {
        if self.lists.is_empty() {
            self.out.paragraph();
        } else {
            self.out.line_start();
        }
        let first = attributes.get("start").and_then(|start| start.parse().ok()).unwrap_or(1);
        self.lists.push(List { next: numbered.then_some(first), indent: 0 });
    }

    fn open_item(&mut self) {
        self.end_item();
        self.out.line_start();
        let Some(list) = self.lists.last_mut() else { return self.out.mark("- ") };
        let mark = match &mut list.next {
            Some(number) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                Cow::Owned(mark)
            }
            None => Cow::Borrowed("- "),
        };
        list.indent = self.out.item(&mark);
    }

    fn end_item(&mut self) {
        if let Some(list) = self.lists.last_mut() {
            self.out.dedent(std::mem::take(&mut list.indent));
        }
    }

    fn end_list(&mut self) {
        self.end_item();
        if self.lists.pop().is_some() {
            if self.lists.is_empty() { self.out.paragraph() } else { self.out.line_start() }
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
            _ => self.out.line_start(),
        }
    }

    fn open_cell(&mut self) {
        self.end_cell();
        match &mut self.table {
            Some(table) if table.nested == 0 => {
                self.links.clear();
                table.outside = Some(std::mem::take(&mut self.out));
            }
            _ => self.out.words(" "),
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
        self.out.paragraph();
        for (index, row) in table.rows.iter().filter(|row| !row.is_empty()).enumerate() {
            self.out.mark(&row_text(row, columns.min(row.len() + MISSING_CELLS)));
            self.out.line_start();
            if index == 0 {
                self.out.mark(&format!("|{}", " --- |".repeat(columns)));
                self.out.line_start();
            }
        }
        self.out.paragraph();
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

/// Cells that are added to a short row; a table that is long once and wide once must not multiply.
const MISSING_CELLS: usize = 64;

fn row_text(row: &[String], columns: usize) -> String {
    let cells = row.iter().map(String::as_str).chain(std::iter::repeat("")).take(columns);
    cells.fold(String::from("|"), |text, cell| text + " " + cell + " |")
}

fn heading(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

fn language_of(attributes: &Attributes<'_>) -> String {
    let mut classes = attributes.get("class").unwrap_or_default().split_ascii_whitespace();
    let language = classes.find_map(|class| class.strip_prefix("language-"));
    language.or_else(|| attributes.get("data-language")).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
