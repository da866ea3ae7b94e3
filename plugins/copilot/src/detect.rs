//! Finds Copilot's tables among files, by their headers and first rows.

use std::collections::BTreeMap;

use satchel_importer::{Bundle, Detection, ImportError, Role, names};

use crate::{
    layout::{Columns, DELIMITERS},
    record::Record,
    rows::{Row, Rows},
};

/// Rows that are sampled to recognise a table.
const SAMPLE: usize = 24;
/// Rows that are sampled to find the order of a table.
const ORDER_SAMPLE: usize = 4096;
/// Bytes that are sampled; the host allows 16 MiB of each file.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of one sampled row. A longer one is ignored.
const MAX_ROW: usize = 1024 * 1024;
/// Characters of a sampled cell: times and names are short.
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
        let Some(table) = find_table(bundle, &entry.path)? else { continue };
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

/// The table of a file; none if it is not one of Copilot's.
pub(crate) fn find_table(bundle: &Bundle, path: &str) -> Result<Option<Table>, ImportError> {
    let text = ["csv", "tsv", "txt"].iter().any(|ending| names::has_extension(path, ending));
    if !text || names::is_junk(path) {
        return Ok(None);
    }
    for delimiter in DELIMITERS {
        let mut rows = Vec::new();
        sample(bundle, path, delimiter, SAMPLE, |row| rows.push(cells(row)))?;
        if rows.first().is_some_and(|header| header.len() > 2) {
            let header = rows.remove(0);
            let table = |(columns, confidence)| Table { columns, delimiter, confidence };
            return Ok(recognise(&header, &rows, path).map(table));
        }
    }
    Ok(None)
}

/// The columns, and the confidence in percent.
fn recognise(header: &[String], rows: &[Vec<String>], path: &str) -> Option<(Columns, u8)> {
    match Columns::of_header(header) {
        Some(columns) if rows.is_empty() => Some((columns, 50)),
        Some(columns) => columns.confirmed_by(rows).then_some((columns, 95)),
        None => Columns::of_rows(header, rows, path).map(|columns| (columns, 60)),
    }
}

/// Whether the newest rows come first, as Microsoft writes them: by the times of adjacent rows of one title, or if those are
/// all equal by the roles, as a question comes before its answer.
pub(crate) fn newest_first(bundle: &Bundle, path: &str, table: &Table) -> Result<bool, ImportError> {
    let (mut times, mut turns) = (0_i64, 0_i64);
    let mut last: Option<Record> = None;
    let mut header = true;
    sample(bundle, path, table.delimiter, ORDER_SAMPLE, |row| {
        if std::mem::take(&mut header) || row.len() < table.columns.width() {
            return;
        }
        let record = Record::read(row, &table.columns);
        if let Some(last) = last.take().filter(|last| last.title == record.title)
            && let (Some(before), Some(now)) = (last.time, record.time)
        {
            times += (before.micros - now.micros).signum();
            if before.micros == now.micros && last.role != record.role {
                turns += if last.role == Role::Assistant { 1 } else { -1 };
            }
        }
        last = Some(record);
    })?;
    Ok(if times == 0 { turns >= 0 } else { times > 0 })
}

/// Calls `f` with the first `count` rows of a table, the header included.
fn sample(
    bundle: &Bundle,
    path: &str,
    delimiter: u8,
    count: usize,
    mut f: impl FnMut(&Row<'_>),
) -> Result<(), ImportError> {
    let mut rows = Rows::new(bundle.open(path)?, delimiter, MAX_ROW);
    for _ in 0..count {
        if rows.offset > MAX_BYTES {
            break;
        }
        let Some(row) = rows.next().map_err(|error| error.at(path))? else { break };
        if !row.too_long && !row.is_blank() {
            f(&row);
        }
    }
    Ok(())
}

fn cells(row: &Row<'_>) -> Vec<String> {
    (0..row.len()).map(|at| row.cell(at).chars().take(MAX_CELL).collect()).collect()
}
