//! Finds the tables among files, by their heads and the rows under them.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Detection, ImportError, names};

use crate::{
    layout::{Columns, DELIMITERS},
    raw::Record,
    rows::{Row, Rows},
};

/// Rows of the head that are looked at to tell whose table it is.
const SAMPLE: usize = 24;
/// Rows that tell in which direction time runs.
const LONG_SAMPLE: usize = 4096;
/// Bytes that are looked at; the host allows 16 MiB of each file.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of one row of the head. A longer one is passed over.
const MAX_ROW: usize = 1024 * 1024;
/// Characters of a cell that are looked at: times and names are short.
const MAX_CELL: usize = 200;

/// A table and how to read it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) columns: Columns,
    pub(crate) delimiter: u8,
    confidence: u8,
}

/// Every export among the files: the tables of one folder with one layout.
pub(crate) fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
    let mut found: BTreeMap<(&str, &str), Detection> = BTreeMap::new();
    for entry in bundle.entries() {
        let Some(table) = look(bundle, &entry.path)? else { continue };
        let format = table.columns.layout.format();
        let export = found.entry((names::split(&entry.path).0, format)).or_insert_with(|| Detection {
            format: format.to_owned(),
            confidence: table.confidence,
            ..Detection::default()
        });
        export.confidence = export.confidence.max(table.confidence);
        export.files.push(entry.path.clone());
    }
    Ok(found.into_values().collect())
}

/// What table the file is; none if it is none of Copilot's.
pub(crate) fn look(bundle: &Bundle, path: &str) -> Result<Option<Table>, ImportError> {
    let text = ["csv", "tsv", "txt"].iter().any(|ending| names::ends_in(path, ending));
    if !text || names::is_junk(path) {
        return Ok(None);
    }
    for delimiter in DELIMITERS {
        let mut sample = Vec::new();
        read(bundle, path, delimiter, SAMPLE, |row| sample.push(cells(row)))?;
        if sample.first().is_some_and(|head| head.len() > 2) {
            let head = sample.remove(0);
            return Ok(judge(&head, &sample, path).map(|(columns, confidence)| Table {
                columns,
                delimiter,
                confidence,
            }));
        }
    }
    Ok(None)
}

/// Whose table it is, and how certain that is.
fn judge(head: &[String], rows: &[Vec<String>], path: &str) -> Option<(Columns, u8)> {
    match Columns::of_head(head) {
        Some(columns) if rows.is_empty() => Some((columns, 50)),
        Some(columns) => columns.confirmed_by(rows).then_some((columns, 90)),
        None => Columns::of_rows(head, rows, path).map(|columns| (columns, 60)),
    }
}

/// Whether later rows are the older ones, as in what Microsoft writes. The rows of one title tell it by their times;
/// where those are all the same, by who speaks first: nobody is answered before asking.
pub(crate) fn newest_first(bundle: &Bundle, path: &str, table: &Table) -> Result<bool, ImportError> {
    let (mut times, mut turns) = (0_i64, 0_i64);
    let mut last: Option<Record> = None;
    let mut head = true;
    read(bundle, path, table.delimiter, LONG_SAMPLE, |row| {
        if std::mem::take(&mut head) || row.len() < table.columns.width() {
            return;
        }
        let record = Record::read(row, &table.columns);
        if let Some(last) = last.take().filter(|last| last.title == record.title)
            && let (Some(before), Some(now)) = (last.time, record.time)
        {
            times += (before.micros - now.micros).signum();
            if before.micros == now.micros && last.role != record.role {
                turns += if last.role.speaks_first() { -1 } else { 1 };
            }
        }
        last = Some(record);
    })?;
    Ok(if times == 0 { turns >= 0 } else { times > 0 })
}

/// Shows the first rows of a table, the head too.
fn read(
    bundle: &Bundle,
    path: &str,
    delimiter: u8,
    count: usize,
    mut see: impl FnMut(&Row<'_>),
) -> Result<(), ImportError> {
    let mut rows = Rows::new(bundle.open(path)?, delimiter, MAX_ROW);
    for _ in 0..count {
        if rows.position() > MAX_BYTES {
            break;
        }
        let Some(row) = rows.next().map_err(|error| error.at(path))? else { break };
        if !row.too_long && !row.is_blank() {
            see(&row);
        }
    }
    Ok(())
}

fn cells(row: &Row<'_>) -> Vec<String> {
    (0..row.len()).map(|at| row.cell(at).chars().take(MAX_CELL).collect()).collect()
}
