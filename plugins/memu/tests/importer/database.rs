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

#[test]
fn a_row_that_does_not_fit_into_memory_several_times_costs_only_itself() {
    let folder = tempfile::tempdir().expect("a folder is made");
    let path = folder.path().join("memu.db");
    let connection = rusqlite::Connection::open(&path).expect("it is made");
    let made = connection.execute_batch(
        "CREATE TABLE memu_memory_items (id TEXT PRIMARY KEY, resource_id TEXT, memory_type TEXT, summary TEXT, embedding_json TEXT);
         INSERT INTO memu_memory_items VALUES
           ('a', NULL, 'profile', 'Likes rye bread.', NULL),
           ('b', NULL, 'profile', 'Has a cat.', '[1' || replace(hex(zeroblob(2250000)), '00', ',1,1') || ']'),
           ('c', NULL, 'profile', 'Lives by the sea.', NULL);",
    );
    made.expect("the table is made");
    let (lines, recognised) = read_file(&std::fs::read(path).expect("it is read"));
    assert!(recognised);
    assert_eq!(contents(&lines), ["Likes rye bread.", "Lives by the sea."].map(str::to_owned).into());
    assert!(
        reports(&lines).iter().any(|report| report.contains("more than 8388608 bytes")),
        "{:?}",
        reports(&lines)
    );
}
