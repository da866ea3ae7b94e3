//! The field table of the README, held against every cell of every fixture, which another reader of CSV reads.

use std::{collections::BTreeMap, fs, path::Path};

use satchel_importer::{
    Bundle, Line,
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

/// The files of a fixture that are read without a skip, each with its kind and all that comes out of the fixture.
fn sources(fixture: &Path) -> Vec<(String, &'static str, String)> {
    let bundle = Bundle::from_folder(&fixture.join("input")).expect("the fixture can be listed");
    let produced = produce::<Copilot>(&bundle).expect("detection answers");
    let lines: Vec<&Line> = produced.exports.iter().flat_map(|export| &export.lines).collect();
    if lines.iter().any(|line| matches!(line, Line::Skip(_))) {
        return Vec::new();
    }
    let emitted: Vec<String> = lines.iter().map(|line| format!("{line:?}")).collect();
    let kind = |format: &str| ["history", "chat", "apps"].into_iter().find(|kind| format.ends_with(kind));
    let exports =
        produced.exports.iter().filter_map(|export| Some((kind(&export.detection.format)?, export)));
    exports
        .flat_map(|(kind, export)| export.detection.files.iter().map(move |file| (file.clone(), kind)))
        .map(|(file, kind)| (file, kind, emitted.join("\n")))
        .collect()
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
        for (file, kind, emitted) in sources(&fixture) {
            let bytes = fs::read(fixture.join("input").join(&file)).expect("a fixture can be read");
            let delimiter = if bytes.starts_with(b"Time;") { b';' } else { b',' };
            let mut reader =
                csv::ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(bytes.as_slice());
            let head = reader.headers().expect("there is a head").clone();
            // A head in another language has other names; what its columns are is another test's.
            if !head.iter().any(|name| table.contains_key(&format!("{kind}[].{name}"))) {
                continue;
            }
            for row in reader.records() {
                let row = row.expect("it is CSV");
                for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.trim().is_empty()) {
                    let named = format!("{kind}[].{}", head.get(at).unwrap_or_default());
                    let fate = table.get(&named).or(table.get(&format!("{kind}[].*"))).expect("a row");
                    assert!(held(fate, cell, &emitted), "{}: {named} = {cell:?}: {fate}", fixture.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} cells were found");
}
