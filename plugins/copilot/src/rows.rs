//! The rows of a table (RFC 4180), one in memory at a time, each with its offset and its end.

use std::{borrow::Cow, io::BufRead};

use satchel_importer::ImportError;

mod plain;

/// The longest row that is read, in bytes. Real answers have a few hundred KiB at most, but an unclosed quotation mark makes
/// the rest of a file one row.
pub(crate) const MAX_ROW: usize = 16 * 1024 * 1024;
/// Cells of one row; the tables have four.
const MAX_CELLS: usize = 1024;
/// Initial bytes of the buffer, enough for a usual row.
const INITIAL_CAPACITY: usize = 16 * 1024;

/// The rows of one table, the header included.
pub(crate) struct Rows<R> {
    reader: R,
    parser: csv_core::Reader,
    delimiter: u8,
    /// Nothing was read yet: a byte order mark may follow.
    at_start: bool,
    limit: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes of the file that were read.
    pub(crate) offset: u64,
}

/// One row, valid up to the next one.
pub(crate) struct Row<'r> {
    bytes: &'r [u8],
    /// The same if all of it is UTF-8; one check is cheaper than one for each cell.
    text: Option<&'r str>,
    ends: &'r [usize],
    /// Bytes from the start of the file.
    pub(crate) offset: u64,
    /// It is longer than the limit, and its cells are not here.
    pub(crate) too_long: bool,
    /// How it ended.
    pub(crate) end: End,
}

/// The end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end of its line.
    Line,
    /// The end of the file.
    File,
    /// The end of the file, inside a quoted cell.
    OpenCell,
}

impl<R: BufRead> Rows<R> {
    pub(crate) fn new(reader: R, delimiter: u8, limit: usize) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        let (text, ends) = (vec![0; INITIAL_CAPACITY], vec![0; MAX_CELLS]);
        Self { reader, parser, delimiter, at_start: true, limit, text, ends, offset: 0 }
    }

    /// The next row that is not empty; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>, ImportError> {
        self.skip_line_ends()?;
        let start = self.offset;
        if !std::mem::take(&mut self.at_start)
            && let Some((length, cells)) = self.next_plain()?
        {
            let (bytes, ends) = (&self.text[..length], &self.ends[..cells]);
            return Ok(Some(Row::new(bytes, ends, start, End::Line)));
        }
        let (mut length, mut cells, mut quotes) = (0, 0, 0);
        let mut too_long = false;
        loop {
            let input = self.reader.fill_buf()?;
            let at_end = input.is_empty();
            if length == self.text.len() {
                too_long |= length >= self.limit;
                length = if too_long { 0 } else { length };
                self.text.resize((self.text.len() * 2).min(self.limit), 0);
            }
            let (result, read, written, ended) =
                self.parser.read_record(input, &mut self.text[length..], &mut self.ends[cells..]);
            quotes += memchr::memchr_iter(b'"', &input[..read]).count();
            self.reader.consume(read);
            self.offset += read as u64;
            length += written;
            cells += ended;
            match result {
                csv_core::ReadRecordResult::InputEmpty | csv_core::ReadRecordResult::OutputFull => {}
                csv_core::ReadRecordResult::OutputEndsFull => {
                    too_long = true;
                    cells = 0;
                }
                csv_core::ReadRecordResult::End => return Ok(None),
                csv_core::ReadRecordResult::Record => {
                    // A quotation mark inside a cell is doubled, so an odd number of them leaves a cell open.
                    let end = match (at_end, quotes % 2) {
                        (false, _) => End::Line,
                        (true, 0) => End::File,
                        (true, _) => End::OpenCell,
                    };
                    let (length, cells) = if too_long { (0, 0) } else { (length, cells) };
                    let (bytes, ends) = (&self.text[..length], &self.ends[..cells]);
                    return Ok(Some(Row { too_long, ..Row::new(bytes, ends, start, end) }));
                }
            }
        }
    }

    /// The next row, if the fast path can read it: the bytes of its text and the number of its cells.
    fn next_plain(&mut self) -> Result<Option<(usize, usize)>, ImportError> {
        let input = self.reader.fill_buf()?;
        let Some((read, length, cells)) = plain::read(input, self.delimiter, &mut self.text, &mut self.ends)
        else {
            return Ok(None);
        };
        self.reader.consume(read);
        self.offset += read as u64;
        Ok(Some((length, cells)))
    }

    /// Skips empty lines and the second half of a line end.
    fn skip_line_ends(&mut self) -> Result<(), ImportError> {
        loop {
            let input = self.reader.fill_buf()?;
            let skipped = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let all = skipped == input.len();
            self.reader.consume(skipped);
            self.offset += skipped as u64;
            if !all || skipped == 0 {
                return Ok(());
            }
        }
    }
}

impl<'r> Row<'r> {
    fn new(bytes: &'r [u8], ends: &'r [usize], offset: u64, end: End) -> Self {
        Self { bytes, text: simdutf8::basic::from_utf8(bytes).ok(), ends, offset, too_long: false, end }
    }

    /// The number of its cells.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a cell, empty if there is none; invalid UTF-8 is replaced by U+FFFD.
    pub(crate) fn cell(&self, at: usize) -> Cow<'_, str> {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(at).copied().unwrap_or(start);
        // Two invalid cells can be valid UTF-8 together; then the boundary is inside a character.
        match self.text.and_then(|text| text.get(start..end)) {
            Some(text) => Cow::Borrowed(text),
            None => String::from_utf8_lossy(self.bytes.get(start..end).unwrap_or_default()),
        }
    }

    /// Whether every cell is UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        (0..self.len()).all(|at| matches!(self.cell(at), Cow::Borrowed(_)))
    }

    /// Whether all cells are empty.
    pub(crate) fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    type Read = Vec<(Vec<String>, u64, End)>;

    fn read(text: &[u8], chunk: usize, limit: usize) -> Read {
        let mut rows = Rows::new(BufReader::with_capacity(chunk, text), b',', limit);
        let mut all = Vec::new();
        while let Some(row) = rows.next().expect("memory can be read") {
            let cells = (0..row.len()).map(|at| row.cell(at).into_owned()).collect();
            all.push((cells, row.offset, row.end));
        }
        all
    }

    fn row(cells: &[&str], offset: u64, end: End) -> (Vec<String>, u64, End) {
        (cells.iter().map(ToString::to_string).collect(), offset, end)
    }

    #[test]
    fn cells_can_contain_lines_and_quotation_marks() {
        let text = "a,b\r\n\"x\n\r\n \"\"y\"\"\",z\r\n\r\nq,\"\"\r\n".as_bytes();
        let expected = vec![
            row(&["a", "b"], 0, End::Line),
            row(&["x\n\r\n \"y\"", "z"], 5, End::Line),
            row(&["q", ""], 23, End::Line),
        ];
        for chunk in [3, 4, 7, 64] {
            assert_eq!(read(text, chunk, MAX_ROW), expected, "{chunk}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_cell() {
        assert_eq!(read("\u{feff}a,b\n".as_bytes(), 64, MAX_ROW), [row(&["a", "b"], 0, End::Line)]);
    }

    #[test]
    fn the_end_of_the_file_differs_from_that_of_a_line() {
        assert_eq!(read(b"a,b", 64, MAX_ROW), [row(&["a", "b"], 0, End::File)]);
        assert_eq!(read(b"a,\"b\"\"", 64, MAX_ROW), [row(&["a", "b\""], 0, End::OpenCell)]);
        assert_eq!(read(b"a,\"b\"", 64, MAX_ROW), [row(&["a", "b"], 0, End::File)]);
        assert_eq!(read(b"\r\n\r\n", 64, MAX_ROW), []);
    }

    #[test]
    fn a_row_beyond_the_limit_is_skipped() {
        let text = format!("a,b\n{},c\nd,e\n", "x".repeat(5 * INITIAL_CAPACITY));
        let mut rows = Rows::new(text.as_bytes(), b',', 2 * INITIAL_CAPACITY);
        let mut seen = Vec::new();
        while let Some(row) = rows.next().expect("memory can be read") {
            seen.push((row.too_long, row.len()));
        }
        assert_eq!(seen, [(false, 2), (true, 0), (false, 2)]);
        let wide = format!("a,b\n{}\nd,e\n", ",".repeat(3 * MAX_CELLS));
        let cells: Vec<usize> = read(wide.as_bytes(), 64, MAX_ROW).iter().map(|row| row.0.len()).collect();
        assert_eq!(cells, [2, 0, 2]);
    }

    #[test]
    fn two_invalid_cells_are_replaced_each() {
        let mut rows = Rows::new(&b"a,b\n\xc3,\xa9\n"[..], b',', MAX_ROW);
        rows.next().expect("memory can be read");
        let row = rows.next().expect("memory can be read").expect("it has a second row");
        assert_eq!((row.cell(0), row.cell(1)), ("\u{fffd}".into(), "\u{fffd}".into()));
        assert!(!row.is_utf8());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn plain_rows_are_read_as_the_parser_reads_them(pieces in prop::collection::vec(prop::sample::select(vec![
            ",", "\n", "\r\n", "\r", "\"", "\"\"", "\",\"", "\",", ",\"", "\"\n", "\n\"", "a", "two words", ";", " ", "é", "\u{feff}", "0123456789",
        ]), 0..24)) {
            // After a header: the first row never takes the fast path.
            let table = format!("x\n{}", pieces.concat());
            // No row fits into one byte, so none takes the fast path.
            prop_assert_eq!(read(table.as_bytes(), 4096, 20), read(table.as_bytes(), 1, 20), "{:?}", table);
        }
    }
}
