//! Reads one export table by table, with one conversation in memory at a time.

use satchel_importer::{
    Bundle, ImportError, Importer as _, Reader, RecordKind, Sink, Summary, order::SORTED,
};

use crate::{
    Copilot,
    detect::{self, Table},
    group::{Fit, Group},
    map,
    record::Record,
    rows::{End, MAX_ROW, Row, Rows},
};

/// Bytes between two progress reports.
const PROGRESS_STEP: u64 = 1024 * 1024;
const NO_LINE_END: &str = "the file ends without the end of a line; its last row may be cut";
const CUT_ROW: &str = "the file ends inside this row";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Copilot::describe().version_of(format)?;
    let mut read = false;
    for entry in bundle.entries() {
        let path = entry.path.as_str();
        if let Some(table) = detect::find_table(bundle, path)? {
            let newest_first = detect::newest_first(bundle, path, &table)?;
            let group = Group::default();
            TableReader { path, table, newest_first, version, group }.read(bundle, sink)?;
            read = true;
        } else {
            sink.skip(RecordKind::File, path, "it is no table of Copilot's activity")?;
        }
    }
    if read {
        Ok(bundle.summary())
    } else {
        Err(ImportError::not_this_format("no file is a table of Copilot's activity"))
    }
}

/// Reads one table.
struct TableReader<'r> {
    path: &'r str,
    table: Table,
    newest_first: bool,
    version: &'static str,
    group: Group,
}

impl TableReader<'_> {
    fn read(mut self, bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
        let path = self.path;
        let reader = bundle.open(path)?;
        let total = reader.size();
        let mut rows: Rows<Reader> = Rows::new(reader, self.table.delimiter, MAX_ROW);
        // The header.
        rows.next().map_err(|error| error.at(path))?;
        let (mut index, mut reported) = (0, 0);
        while let Some(row) = rows.next().map_err(|error| error.at(path))? {
            self.add(index, &row, sink)?;
            index += 1;
            if rows.offset >= reported + PROGRESS_STEP {
                reported = rows.offset;
                sink.progress(reported, Some(total))?;
            }
        }
        if index == 0 {
            sink.warn(path, "the table has no rows");
        }
        self.emit(sink)?;
        sink.progress(total, Some(total))
    }

    fn add(&mut self, index: u64, row: &Row<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let locator = || format!("{}[{index}]", self.path);
        let columns = &self.table.columns;
        let short = row.len() < columns.width();
        if row.end == End::OpenCell || (row.end == End::File && short) {
            return sink.skip(RecordKind::Message, &format!("{}@{}", self.path, row.offset), CUT_ROW);
        }
        if row.too_long {
            let reason = format!("it is longer than {MAX_ROW} bytes");
            return sink.skip(RecordKind::Message, &locator(), &reason);
        }
        if short {
            let reason = format!("it has {} cells, and needs {}", row.len(), columns.width());
            return sink.skip(RecordKind::Message, &locator(), &reason);
        }
        if row.is_blank() {
            return sink.skip(RecordKind::Message, &locator(), "its cells are empty");
        }
        if row.end == End::File {
            sink.warn(&locator(), NO_LINE_END);
        }
        if !row.is_utf8() {
            sink.warn(&locator(), "invalid UTF-8 was replaced by U+FFFD");
        }
        if Record::nameless(row, columns) {
            sink.warn(&locator(), "it does not say who speaks; it is read as the assistant's");
        }
        let record = Record::read(row, columns);
        match self.group.fit(&record, columns.layout) {
            Fit::Same => {}
            Fit::Another => self.emit(sink)?,
            Fit::Full => {
                sink.warn(&locator(), "the conversation is too long for one; it goes on in another");
                self.emit(sink)?;
            }
        }
        self.group.push(index, record);
        Ok(())
    }

    /// Emits the conversation of the current group, if there is one.
    fn emit(&mut self, sink: &mut Sink) -> Result<(), ImportError> {
        let (rows, sorted) = self.group.take(self.newest_first);
        let Some((_, first)) = rows.first() else { return Ok(()) };
        let titled = first.titled(self.table.columns.layout);
        let grouped_by = if titled { "title" } else { "time" };
        let (conversation, messages) = map::conversation(rows, grouped_by, self.version, self.path);
        if sorted {
            sink.warn(&conversation.locator, SORTED);
        }
        sink.conversation(&conversation, &messages)
    }
}
