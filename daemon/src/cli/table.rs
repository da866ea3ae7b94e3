//! Tables that fit the terminal: long cells are cut, and on a narrow terminal the least important columns are
//! dropped.

use std::borrow::Cow;

use super::{
    style::{Paint, TerminalStyle},
    text,
};

/// Blank columns between two columns.
const GAP: usize = 2;

/// The layout rules of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    /// Width to which it can be cut if space is short; `None` if it is never cut.
    shrinks_to: Option<usize>,
    /// Rank: the column with the highest rank is dropped first; 0 is never dropped.
    drop_rank: u8,
}

impl Column {
    /// Returns a column that is never cut.
    pub(crate) const fn new(title: &'static str) -> Self {
        Self { title, right: false, shrinks_to: None, drop_rank: 0 }
    }

    /// Returns a right-aligned column, for numbers.
    pub(crate) const fn right(title: &'static str) -> Self {
        Self { title, right: true, shrinks_to: None, drop_rank: 0 }
    }

    /// Allows the column to be cut to `columns`.
    pub(crate) const fn shrinks_to(mut self, columns: usize) -> Self {
        self.shrinks_to = Some(columns);
        self
    }

    /// Allows the column to be dropped if space is short; the highest `rank` first.
    pub(crate) const fn optional(mut self, rank: u8) -> Self {
        self.drop_rank = rank;
        self
    }
}

/// One cell: clean text on one line.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// Creates a cell; `text` may come from anywhere.
    pub(crate) fn new(text: &str) -> Self {
        Self::painted(text, Paint::Plain)
    }

    /// Creates a painted cell; `text` may come from anywhere.
    pub(crate) fn painted(text: &str, paint: Paint) -> Self {
        Self { text: text::one_line(text), paint }
    }
}

/// A table with column titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns an empty table.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// Returns the lines, each with its line end. Columns that are empty in every row are left out.
    pub(crate) fn render(&self, style: TerminalStyle) -> String {
        let widths = self.widths(style.columns);
        let titles: Vec<Cell> = self
            .columns
            .iter()
            .map(|column| Cell::painted(&column.title.to_uppercase(), Paint::Dim))
            .collect();
        std::iter::once(&titles).chain(&self.rows).map(|row| self.line(row, &widths, style)).collect()
    }

    /// Returns the width of each column; `None` if the column is left out.
    fn widths(&self, columns: Option<usize>) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> =
            (0..self.columns.len()).map(|at| self.natural_width(at)).collect();
        let Some(available) = columns else { return widths };
        while min_total_width(&self.columns, &widths) > available {
            let shown = |at: &usize| widths[*at].is_some() && self.columns[*at].drop_rank > 0;
            let Some(at) = (0..self.columns.len()).filter(shown).max_by_key(|at| self.columns[*at].drop_rank)
            else {
                break;
            };
            widths[at] = None;
        }
        self.shrink(&mut widths, available);
        widths
    }

    /// Narrows the widest column that can be cut, repeatedly, until the row fits or no column can be cut further.
    fn shrink(&self, widths: &mut [Option<usize>], available: usize) {
        while total_width(widths) > available {
            let room = |at: &usize| self.columns[*at].shrinks_to.is_some_and(|to| widths[*at] > Some(to));
            let Some(at) = (0..self.columns.len()).filter(room).max_by_key(|at| widths[*at]) else { return };
            widths[at] = widths[at].map(|width| width - 1);
        }
    }

    fn natural_width(&self, at: usize) -> Option<usize> {
        let widest =
            self.rows.iter().filter_map(|row| row.get(at)).map(|cell| text::width(&cell.text)).max()?;
        (widest > 0).then(|| widest.max(text::width(self.columns[at].title)))
    }

    fn line(&self, row: &[Cell], widths: &[Option<usize>], style: TerminalStyle) -> String {
        let mut line = String::new();
        // Blanks are written only before the next text, so that no line has trailing blanks.
        let mut blanks = 0;
        for ((column, cell), width) in self.columns.iter().zip(row).zip(widths) {
            let Some(width) = *width else { continue };
            let shown = match column.shrinks_to {
                Some(_) => text::fit(&cell.text, width),
                None => Cow::Borrowed(cell.text.as_str()),
            };
            let rest = width.saturating_sub(text::width(&shown));
            let (before, after) = if column.right { (rest, 0) } else { (0, rest) };
            if shown.is_empty() {
                blanks += before;
            } else {
                line.extend(std::iter::repeat_n(' ', blanks + before));
                line.push_str(&style.paint(cell.paint, &shown));
                blanks = 0;
            }
            blanks += after + GAP;
        }
        line.push('\n');
        line
    }
}

fn total_width(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten().count();
    widths.iter().flatten().sum::<usize>() + GAP * shown.saturating_sub(1)
}

/// Returns the total width if every column is as narrow as it can be.
fn min_total_width(columns: &[Column], widths: &[Option<usize>]) -> usize {
    let narrow = columns.iter().zip(widths).map(|(column, width)| match column.shrinks_to {
        Some(to) => width.map(|width| width.min(to)),
        None => *width,
    });
    total_width(&narrow.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [
            Column::new("id"),
            Column::new("title").shrinks_to(10),
            Column::right("messages").optional(1),
            Column::new("changed").optional(2),
            Column::new("tags"),
        ];
        let mut table = Table::new(columns);
        let row = |id: &str, title: &str, n: &str| [id, title, n, "yesterday", ""].map(Cell::new);
        table.row(row("51d0aa10", "Which tomatoes grow on a windy balcony?", "12"));
        table.row(row("77e0bb21", "日本語の文法\n\u{1b}[2Jについて", "1,204"));
        table
    }

    #[test]
    fn a_table_is_only_as_wide_as_needed() {
        let expected = "\
ID        TITLE                                    MESSAGES  CHANGED
51d0aa10  Which tomatoes grow on a windy balcony?        12  yesterday
77e0bb21  日本語の文法 \\u{1b}[2Jについて              1,204  yesterday
";
        assert_eq!(table().render(TerminalStyle::plain(120)), expected);
        assert_eq!(table().render(TerminalStyle { columns: None, rows: None, color: false }), expected);
    }

    #[test]
    fn long_cells_are_cut_first() {
        let expected = "\
ID        TITLE                      MESSAGES  CHANGED
51d0aa10  Which tomatoes grow on a…        12  yesterday
77e0bb21  日本語の文法 \\u{1b}[2Jに…     1,204  yesterday
";
        assert_eq!(table().render(TerminalStyle::plain(56)), expected);
    }

    #[test]
    fn optional_columns_are_dropped_next() {
        let expected = "\
ID        TITLE       MESSAGES
51d0aa10  Which tom…        12
77e0bb21  日本語の…      1,204
";
        assert_eq!(table().render(TerminalStyle::plain(30)), expected);
        for columns in 20..80 {
            let rendered = table().render(TerminalStyle::plain(columns));
            assert!(rendered.lines().all(|line| text::width(line) <= columns), "{columns}\n{rendered}");
        }
    }

    #[test]
    fn a_table_without_rows_has_no_columns() {
        assert_eq!(Table::new([Column::new("id")]).render(TerminalStyle::plain(80)), "\n");
    }
}
