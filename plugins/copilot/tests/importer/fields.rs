//! Checks the field table of the README against every cell of every fixture, read by another CSV parser.

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

/// The outcome of each column, by its path.
fn table() -> BTreeMap<String, String> {
    let rows = include_str!("../../README.md").lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let path = cells.next()?.strip_suffix('`')?.to_owned();
        path.contains("[].").then(|| (path, cells.next().unwrap_or_default().to_owned()))
    });
    rows.collect()
}

/// The output of a fixture.
struct Output {
    /// Its files, each with its kind.
    files: Vec<(String, &'static str)>,
    /// All emitted records.
    emitted: String,
    /// Locators of skipped rows, and of the row in which a file ends.
    skipped: BTreeSet<String>,
}

impl Output {
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

    /// Whether the row was skipped, or is the one in which the file ends.
    fn skips(&self, file: &str, row: usize, rows: usize) -> bool {
        let broken = self.skipped.iter().any(|locator| locator.starts_with(&format!("{file}@")));
        self.skipped.contains(&format!("{file}[{row}]")) || (broken && row + 1 == rows)
    }
}

/// Whether the cell has the outcome of the table.
fn has_outcome(outcome: &str, cell: &str, emitted: &str) -> bool {
    let quoted = format!("{cell:?}");
    let verbatim = emitted.contains(&quoted[1..quoted.len() - 1]);
    if outcome.starts_with("transformed by *time*") {
        let iso = time_of_text(cell).map(|(time, _)| time.to_string());
        // Other tests check the American form.
        return verbatim || iso.map_or(cell.contains('/'), |time| emitted.contains(&time));
    }
    let known = ["human", "user", "ai", "assistant", "copilot", "bot", "system"];
    verbatim
        || (outcome.starts_with("transformed by *role*") && known.contains(&cell.to_lowercase().as_str()))
}

#[test]
fn every_column_is_mapped_as_documented() {
    let table = table();
    let mut checked = 0;
    for fixture in
        fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).expect("there are fixtures")
    {
        let output = Output::of(&fixture);
        for (file, kind) in &output.files {
            let bytes = fs::read(fixture.join("input").join(file)).expect("a fixture can be read");
            let bytes = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
            let delimiter = if bytes.starts_with(b"Time;") { b';' } else { b',' };
            let mut reader =
                csv::ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(bytes.as_slice());
            let head = reader.headers().expect("there is a head").clone();
            // Other tests check headers in another language.
            if !head.iter().any(|name| table.contains_key(&format!("{kind}[].{name}"))) {
                continue;
            }
            let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("it is CSV")).collect();
            let taken = rows.iter().enumerate().filter(|(at, _)| !output.skips(file, *at, rows.len()));
            for (at, cell) in taken.flat_map(|(_, row)| row.iter().enumerate()) {
                if cell.trim().is_empty() {
                    continue;
                }
                let named = format!("{kind}[].{}", head.get(at).unwrap_or_default());
                // Headers are read in any case.
                let like = table.keys().find(|name| name.eq_ignore_ascii_case(&named));
                let outcome = like
                    .and_then(|name| table.get(name))
                    .or(table.get(&format!("{kind}[].*")))
                    .expect("a row");
                assert!(
                    has_outcome(outcome, cell, &output.emitted),
                    "{}: {named} = {cell:?}: {outcome}",
                    fixture.display()
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} cells were found");
}
