//! Checks of databases: damaged ones, the rows in a log, and what is beside them.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Importer as _, Line, Memo, Sink,
    pam::record::MessageRecord,
    testkit::{FixtureFile, check_lines, conversations, fixture_files, messages, produce, skips},
};
use satchel_plugin_opencode::OpenCode;

const FORMAT: &str = "opencode-importer/2026.02";
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
const NAME: &str = "opencode.db";

/// Files by path.
type Files = Vec<(String, Vec<u8>)>;

fn files_of(fixture: &str) -> Files {
    let all = fixture_files(FIXTURES).expect("the fixtures are there");
    let own = all.into_iter().filter(|file| file.fixture == fixture);
    own.map(|FixtureFile { name, bytes, .. }| (name, bytes)).collect()
}

fn database_of(fixture: &str) -> Vec<u8> {
    let files = files_of(fixture);
    let found = files.into_iter().find(|(name, _)| name.contains(".db"));
    found.map(|(_, bytes)| bytes).expect("the fixture has a database")
}

/// The lines of all exports that are found.
fn read(files: Files) -> Vec<Line> {
    let mut lines = Vec::new();
    for export in produce::<OpenCode>(&Bundle::from_files(files)).expect("detection answers").exports {
        assert_eq!(export.error, None);
        check_lines(&export.lines).expect("every record makes sense");
        lines.extend(export.lines);
    }
    lines
}

/// What `run` says of a database, whether detection takes it or not.
fn run(bytes: Vec<u8>) -> Vec<Line> {
    let mut sink = Sink::collecting();
    let bundle = Bundle::from_files([(NAME.to_owned(), bytes)]);
    if OpenCode::run(FORMAT, &bundle, &mut sink).is_err() {
        return Vec::new();
    }
    let lines = sink.into_lines();
    check_lines(&lines).expect("every record makes sense");
    lines
}

fn by_id(lines: &[Line]) -> BTreeMap<String, MessageRecord> {
    messages(lines).into_iter().map(|message| (message.id.clone(), message.clone())).collect()
}

#[test]
fn a_session_in_the_storage_and_in_the_database_has_the_same_messages() {
    let files = files_of("the-whole-folder-of-the-program");
    let is_of_database = |name: &str| name.starts_with(NAME);
    let (database, storage): (Files, Files) = files.into_iter().partition(|(name, _)| is_of_database(name));
    let (stored, old) = (by_id(&read(database)), by_id(&read(storage)));
    let both: Vec<&String> = old.keys().filter(|id| stored.contains_key(*id)).collect();
    assert_eq!((old.len(), stored.len(), both.len()), (4, 8, 2));
    for id in both {
        assert_eq!(old[id], stored[id]);
    }
}

#[test]
fn the_newest_rows_are_in_the_log() {
    let mut files = files_of("the-whole-folder-of-the-program");
    files.retain(|(name, _)| name == NAME);
    let alone = read(files);
    assert_eq!((conversations(&alone).len(), messages(&alone).len()), (2, 4));
}

#[test]
fn only_files_of_sessions_are_claimed() {
    let bundle = Bundle::from_files(files_of("the-whole-folder-of-the-program"));
    let found = OpenCode::detect(&bundle).expect("detection answers");
    let claimed: Vec<&String> = found.iter().flat_map(|detection| &detection.files).collect();
    assert_eq!(claimed.len(), 15);
    let own = |path: &&&String| path.starts_with("storage/") || path.starts_with(NAME);
    assert_eq!(claimed.iter().filter(own).count(), claimed.len());
    assert!(bundle.bytes_read() < 256 * 1024, "{}", bundle.bytes_read());
}

#[test]
fn a_message_that_both_versions_have_keeps_the_ids_of_its_parts() {
    let lines = run(database_of("sessions-of-version-2"));
    let ids = by_id(&lines);
    assert!(
        ids.contains_key("prt_c3100002ee001Garden0050") && !ids.contains_key("msg_c3100002ff001Garden0050:1")
    );
}

/// Every page is overwritten in turn: what is on the others is read, and the loss is reported.
#[test]
fn a_damaged_page_costs_only_what_is_on_it() {
    const PAGE: usize = 1024;
    let whole = database_of("sessions-in-a-database");
    let all = messages(&run(whole.clone())).len();
    let (mut read_anyway, mut silent) = (0, Vec::new());
    for page in 1..whole.len() / PAGE {
        for byte in [0, 0xff] {
            let mut damaged = whole.clone();
            damaged[page * PAGE..(page + 1) * PAGE].fill(byte);
            let lines = run(damaged);
            let read = messages(&lines).len();
            read_anyway += usize::from(read > all / 2);
            // A page of nothing but zeros in the chain of a long value is a text of zeros.
            if read < all && skips(&lines).is_empty() && read > 0 {
                silent.push((page, byte));
            }
        }
    }
    assert_eq!(silent, []);
    assert!(read_anyway > whole.len() / PAGE, "{read_anyway}");
}

#[test]
fn a_database_that_is_cut_or_changed_never_panics() {
    for fixture in ["sessions-in-a-database", "sessions-of-version-2", "odd-rows-of-a-database"] {
        let whole = database_of(fixture);
        for length in (0..whole.len()).step_by(997) {
            run(whole[..length].to_vec());
        }
        let mut state = 7_u32;
        for _ in 0..300 {
            let mut changed = whole.clone();
            for _ in 0..8 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = state as usize % changed.len();
                changed[at] = changed[at].wrapping_add((state >> 24) as u8 | 1);
            }
            run(changed);
        }
    }
}

/// Runs with the `memo` of the run before; returns the lines, the new memo, and how many bytes were read.
fn again(files: &Files, memo: Memo) -> (Vec<Line>, Memo, u64) {
    let bundle = Bundle::from_files(files.clone());
    let mut sink = Sink::with_memo(memo);
    OpenCode::run(FORMAT, &bundle, &mut sink).expect("it is a database");
    let (lines, memo) = sink.into_lines_and_memo();
    (lines, memo, bundle.bytes_read())
}

#[test]
fn a_session_is_read_again_only_if_one_of_its_rows_was_written() {
    let mut now = files_of("the-whole-folder-of-the-program");
    now.retain(|(name, _)| name.starts_with(NAME));
    let before: Files = now.iter().filter(|(name, _)| name == NAME).cloned().collect();
    let (old, memo, _) = again(&before, Memo::default());
    let (new, memo, _) = again(&now, memo);
    assert_eq!(new, again(&now, Memo::default()).0);
    // One part was written anew.
    let said = |lines: &[Line]| {
        messages(lines).iter().any(|message| format!("{message:?}").contains("let in the light"))
    };
    assert!(!said(&old) && said(&new));
    assert_eq!(again(&now, memo).0, new);
}
