//! The page of My AI, in exports without JSON files: the same lists, as tables.

use std::io::Read as _;

use satchel_importer::{Bundle, ImportError, json::quote, warnings::shortened};

use crate::{
    detect::{CONTENT, MEMORY},
    order::MAX_ENTRIES,
};

/// The longest page that is read, in bytes; it is in memory.
const MAX_PAGE: u64 = 24 * 1024 * 1024;
/// Bytes of a page that are searched for a heading. The menu above it has some ten thousand.
const HEAD: u64 = 256 * 1024;

/// Headings that are named. Real pages have three.
const MAX_HEADINGS: usize = 16;
/// Bytes of all names of the columns of a table. Each row becomes an object with them, so long ones would be in memory many times.
const MAX_NAMES: usize = 256;

/// Bytes of the longest entity that is decoded, with the semicolon.
const MAX_ENTITY: usize = 9;

/// The lists of a page. Each row is a JSON object with the names of the columns, or a text if its cells do not fit them.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) entries: Vec<String>,
    pub(crate) memories: Vec<String>,
    /// Headings that are not known, shortened.
    pub(crate) others: Vec<String>,
    /// Number of further sections that are not known.
    pub(crate) more_others: usize,
    /// Rows that are more than fit.
    pub(crate) beyond_limit: usize,
    /// The page ends inside a table.
    pub(crate) cut: bool,
}

/// Whether the page has one of the lists.
pub(crate) fn is_page(bundle: &Bundle, path: &str) -> Result<bool, ImportError> {
    let mut head = Vec::new();
    bundle.open(path)?.take(HEAD).read_to_end(&mut head).map_err(ImportError::from)?;
    let head = String::from_utf8_lossy(&head);
    Ok(head.contains("<h1>My AI</h1>")
        && [CONTENT, MEMORY].iter().any(|name| head.contains(&format!("<h3>{name}</h3>"))))
}

/// Reads a page.
///
/// # Errors
/// If it cannot be read or is longer than the limit.
pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Page, ImportError> {
    let bytes = bundle.read(path, MAX_PAGE)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut page = Page::default();
    for section in text.split("<h3>").skip(1) {
        let Some((heading, rest)) = section.split_once("</h3>") else {
            page.cut = true;
            continue;
        };
        let Some((_, table)) = rest.split_once("<table") else {
            page.add_other(heading);
            continue;
        };
        let (table, whole) = table.split_once("</table>").map_or((table, false), |(table, _)| (table, true));
        page.cut |= !whole;
        match heading {
            CONTENT => page.beyond_limit += add_rows(&mut page.entries, table),
            MEMORY => page.beyond_limit += add_rows(&mut page.memories, table),
            _ => page.add_other(heading),
        }
    }
    Ok(page)
}

impl Page {
    /// Notes a section that is not known.
    fn add_other(&mut self, heading: &str) {
        let heading = shortened(heading);
        if self.others.contains(&heading) {
            return;
        }
        if self.others.len() < MAX_HEADINGS {
            self.others.push(heading);
        } else {
            self.more_others += 1;
        }
    }
}

/// Adds the rows of a table; returns the number of those that do not fit.
fn add_rows(found: &mut Vec<String>, table: &str) -> usize {
    let mut rows = rows(table);
    found.extend(rows.by_ref().take(MAX_ENTRIES.saturating_sub(found.len())));
    rows.count()
}

/// The rows of a table below the names of its columns.
fn rows(table: &str) -> impl Iterator<Item = String> {
    let mut rows = table.split("<tr").skip(1);
    let mut names: Vec<String> = cells(rows.next().unwrap_or_default(), "th").map(plain).collect();
    if names.iter().map(String::len).sum::<usize>() > MAX_NAMES {
        // No row fits them, so the receipt names each.
        names.clear();
    }
    rows.map(move |row| object(&names, &cells(row, "td").map(decode).collect::<Vec<_>>()))
}

/// The contents of the whole cells of a row.
fn cells<'r>(row: &'r str, tag: &'static str) -> impl Iterator<Item = &'r str> {
    let (begin, end) = (format!("<{tag}"), format!("</{tag}>"));
    let mut rest = row;
    std::iter::from_fn(move || {
        let (_, cell) = rest.split_once(begin.as_str())?;
        let (_, cell) = cell.split_once('>')?;
        let (cell, after) = cell.split_once(end.as_str())?;
        rest = after;
        Some(cell)
    })
}

fn object(names: &[String], cells: &[String]) -> String {
    let mut json = String::new();
    if names.len() != cells.len() {
        quote(&cells.join(" "), &mut json);
        return json;
    }
    json.push('{');
    for (at, (name, cell)) in names.iter().zip(cells).enumerate() {
        json.push_str(if at > 0 { "," } else { "" });
        quote(name, &mut json);
        json.push(':');
        quote(cell, &mut json);
    }
    json.push('}');
    json
}

/// The text without tags.
fn plain(html: &str) -> String {
    let pieces = html.split('<').enumerate();
    let texts = pieces
        .map(|(at, piece)| if at == 0 { piece } else { piece.split_once('>').map_or("", |(_, text)| text) });
    decode(&texts.collect::<String>())
}

/// Decodes the entities that pages use; others stay as they are.
fn decode(html: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(html.len()), html);
    while let Some((before, after)) = rest.split_once('&') {
        text.push_str(before);
        // Names are short, so a text full of ampersands takes no longer than another one.
        let end = after.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((after.get(..end)?, after.get(end + 1..)?)));
        let decoded = entity.and_then(|(name, after)| Some((character(name)?, after)));
        let (character, after) = decoded.unwrap_or(('&', after));
        text.push(character);
        rest = after;
    }
    text.push_str(rest);
    text
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_objects() {
        let table = r#" style="x"><tr><th style="y"><b>Timestamp</b></th><th><b>Content</b></th></tr><tr><td>1</td><td>a &lt;b&gt;
c</td></tr><tr><td>2</td></tr><tr><td>3</td><td>cut"#;
        assert_eq!(
            rows(table).collect::<Vec<_>>(),
            [r#"{"Timestamp":"1","Content":"a <b>\nc"}"#, r#""2""#, r#""3""#]
        );
        assert_eq!(rows("").count(), 0);
    }

    #[test]
    fn unknown_headings_are_named_once_and_shortened() {
        let section = |heading: &str| format!("<h3>{heading}</h3><table></table>");
        let many: String = (0..MAX_HEADINGS + 2).map(|at| section(&at.to_string())).collect();
        let long = section(&"x".repeat(10_000));
        let bundle = Bundle::from_files([("a.html", format!("{long}{long}{many}"))]);
        let page = read(&bundle, "a.html").expect("it is a page");
        assert_eq!((page.others.len(), page.more_others), (MAX_HEADINGS, 3));
        assert!(page.others.iter().all(|heading| heading.len() <= 64));
    }

    #[test]
    fn rows_beyond_the_limit_are_counted() {
        let table = format!("<tr><th>a</th></tr>{}", "<tr><td>1</td></tr>".repeat(MAX_ENTRIES + 2));
        let page = format!("<h3>{CONTENT}</h3><table>{table}</table>");
        let page = read(&Bundle::from_files([("a.html", page)]), "a.html").expect("it is a page");
        assert_eq!((page.entries.len(), page.beyond_limit), (MAX_ENTRIES, 2));
    }

    #[test]
    fn long_names_of_columns_are_not_repeated_in_each_row() {
        let table = format!("<tr><th>{}</th></tr>{}", "x".repeat(10_000), "<tr><td>1</td></tr>".repeat(3));
        assert_eq!(rows(&table).collect::<Vec<_>>(), [r#""1""#; 3]);
    }

    #[test]
    fn entities_are_decoded_once() {
        assert_eq!(
            decode("a &amp;lt; &#x27;b&#39; &euro; & &#x110000; &"),
            "a &lt; 'b' &euro; & &#x110000; &"
        );
    }
}
