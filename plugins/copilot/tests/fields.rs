//! The field table of the README, held against every cell of every fixture, which another reader of CSV reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use satchel_importer::{
    Bundle,
    json::time_of_text,
    testkit::{fixtures, produce},
};
use satchel_plugin_copilot::Copilot;

/// What becomes of each column, by its path.
fn table() -> BTreeMap<String, String> {
    let rows = include_str!("../README.md").lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let path = cells.next()?.strip_suffix('`')?.to_owned();
        path.contains("[].").then(|| (path, cells.next().unwrap_or_default().to_owned()))
    });
    rows.collect()
}

/// What came out of a fixture.
struct Read {
    /// Its files, each with its kind.
    files: Vec<(String, &'static str)>,
    /// All that was emitted.
    emitted: String,
    /// Places of rows that were skipped, and of where a file breaks off.
    skipped: BTreeSet<String>,
}

impl Read {
    fn of(fixture: &Path) -> Self {
        let bundle = Bundle::from_folder(&fixture.join("input")).expect("the fixture can be listed");
        let produced = produce::<Copilot>(&bundle).expect("detection answers");
        let lines = produced.exports.iter().flat_map(|export| &export.lines);
        let emitted: Vec<String> = lines.map(|line| format!("{line:?}")).collect();
        let kind = |format: &str| ["history", "chat", "apps"].into_iter().find(|kind| format.ends_with(kind));
        let exports =
            produced.exports.iter().filter_map(|export| Some((kind(&export.detection.format)?, export)));
        let files = exports
            .flat_map(|(kind, export)| export.detection.files.iter().map(move |file| (file.clone(), kind)));
        Self { files: files.collect(), emitted: emitted.join("\n"), skipped: produced.skipped() }
    }

    /// Whether the row was skipped, or is the one inside which the file breaks off.
    fn skips(&self, file: &str, row: usize, rows: usize) -> bool {
        let broken = self.skipped.iter().any(|place| place.starts_with(&format!("{file}@")));
        self.skipped.contains(&format!("{file}[{row}]")) || (broken && row + 1 == rows)
    }
}

/// Whether what the table says of a cell is so.
fn held(fate: &str, cell: &str, emitted: &str) -> bool {
    let quoted = format!("{cell:?}");
    let verbatim = emitted.contains(&quoted[1..quoted.len() - 1]);
    if fate.starts_with("transformed by *time*") {
        let iso = time_of_text(cell).map(|(time, _)| time.to_string());
        // The American form is held by tests of its own: here, that some time came of it.
        return verbatim || iso.map_or(cell.contains('/'), |time| emitted.contains(&time));
    }
    let known = ["human", "user", "ai", "assistant", "copilot", "bot", "system"];
    verbatim || (fate.starts_with("transformed by *role*") && known.contains(&cell.to_lowercase().as_str()))
}

#[test]
fn what_the_table_says_of_each_column_is_so() {
    let table = table();
    let mut seen = 0;
    for fixture in
        fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).expect("there are fixtures")
    {
        let read = Read::of(&fixture);
        for (file, kind) in &read.files {
            let bytes = fs::read(fixture.join("input").join(file)).expect("a fixture can be read");
            let bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
            let delimiter = if bytes.starts_with(b"Time;") { b';' } else { b',' };
            let mut reader =
                csv::ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(bytes.as_slice());
            let head = reader.headers().expect("there is a head").clone();
            // A head in another language has other names; what its columns are is another test's.
            if !head.iter().any(|name| table.contains_key(&format!("{kind}[].{name}"))) {
                continue;
            }
            let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("it is CSV")).collect();
            let taken = rows.iter().enumerate().filter(|(at, _)| !read.skips(file, *at, rows.len()));
            for (at, cell) in taken.flat_map(|(_, row)| row.iter().enumerate()) {
                if cell.trim().is_empty() {
                    continue;
                }
                let named = format!("{kind}[].{}", head.get(at).unwrap_or_default());
                // Heads are read in any case.
                let like = table.keys().find(|name| name.eq_ignore_ascii_case(&named));
                let fate = like
                    .and_then(|name| table.get(name))
                    .or(table.get(&format!("{kind}[].*")))
                    .expect("a row");
                assert!(held(fate, cell, &read.emitted), "{}: {named} = {cell:?}: {fate}", fixture.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "only {seen} cells were found");
}
