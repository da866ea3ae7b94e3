//! The SQLite database of version 1: every text of it, damaged pages, and the log beside it.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle, Claim, Line,
    testkit::{ProducedExport, check_lines, evidence, produce, skips, warnings},
};
use satchel_plugin_memu::MemU;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
const PAGE: usize = 1024;

fn read(fixture: &str) -> ProducedExport {
    let folder = format!("{FOLDER}/{fixture}/input");
    let bundle = Bundle::from_folder(folder.as_ref()).expect("the folder can be listed");
    let mut exports = produce::<MemU>(&bundle).expect("detection answers").exports;
    assert_eq!(exports.len(), 1, "{fixture}");
    exports.remove(0)
}

fn database() -> Vec<u8> {
    std::fs::read(format!("{FOLDER}/database-of-version-1/input/memu.db")).expect("the fixture can be read")
}

/// The lines of one file, and whether it is recognised and read to its end.
fn read_file(bytes: &[u8]) -> (Vec<Line>, bool) {
    let bundle = Bundle::from_files([("memu.db", bytes)]);
    let exports = produce::<MemU>(&bundle).expect("detection answers").exports;
    let whole = exports.len() == 1 && exports.iter().all(|export| export.error.is_none());
    let lines: Vec<Line> = exports.into_iter().flat_map(|export| export.lines).collect();
    check_lines(&lines).expect("every record makes sense");
    (lines, whole)
}

fn contents(lines: &[Line]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for evidence in evidence(lines) {
        if let Claim::Snapshot { items, .. } = &evidence.claim {
            found.extend(items.iter().map(|item| item.content.clone()));
        }
    }
    found
}

fn reports(lines: &[Line]) -> BTreeSet<String> {
    let skips = skips(lines).into_iter().map(|skip| format!("{}: {}", skip.locator, skip.reason));
    let warnings = warnings(lines).into_iter();
    skips.chain(warnings.map(|warning| format!("{}: {}", warning.locator, warning.message))).collect()
}

#[test]
fn every_text_of_the_script_is_a_memory_or_beside_one() {
    for fixture in ["database-of-version-1", "the-first-database-of-version-1", "a-database-of-june-2026"] {
        let script = format!("{}/tests/databases/{fixture}.sql", env!("CARGO_MANIFEST_DIR"));
        let script = std::fs::read_to_string(script).expect("the script can be read");
        let lines: Vec<String> = read(fixture).lines.iter().map(|line| format!("{line:?}")).collect();
        let emitted = lines.join("\n");
        let sentences = script
            .split('\'')
            .skip(1)
            .step_by(2)
            .filter(|text| text.ends_with('.') && !text.contains('\n') && text.split(' ').count() > 1);
        let mut checked = 0;
        for sentence in sentences {
            assert!(emitted.contains(sentence), "{fixture}: {sentence}");
            checked += 1;
        }
        assert!(checked >= 2, "{fixture}: {checked}");
    }
}

#[test]
fn the_log_beside_the_database_has_the_newest_rows() {
    let export = read("database-of-version-1");
    assert_eq!(export.detection.files, ["memu.db", "memu.db-wal"]);
    let newest = "The tide table answers within a second.";
    assert!(contents(&export.lines).contains(newest));
    assert!(!contents(&read_file(&database()).0).contains(newest));
}

#[test]
fn a_damaged_page_costs_only_its_own_rows() {
    let whole = database();
    let before = read_file(&whole).0;
    let (known, known_reports) = (contents(&before), reports(&before));
    let mut partial = 0;
    for page in 1..whole.len() / PAGE {
        let mut damaged = whole.clone();
        damaged[page * PAGE..][..PAGE].fill(0xff);
        let (lines, recognised) = read_file(&damaged);
        let left = contents(&lines);
        let lost = !known.is_subset(&left);
        let reported = !reports(&lines).is_subset(&known_reports);
        assert!(!lost || !recognised || reported, "page {page}: {lines:?}");
        partial += usize::from(lost && !left.is_empty());
    }
    assert!(partial > 1, "{partial} pages cost some memories, but not all");
}

#[test]
fn a_database_that_is_cut_off_never_panics() {
    let whole = database();
    for length in (0..whole.len()).step_by(500) {
        read_file(&whole[..length]);
    }
}
