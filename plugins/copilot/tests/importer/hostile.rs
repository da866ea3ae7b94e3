//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use satchel_importer::{
    Line, names,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, run_file, skips, skips_of, warnings,
    },
};
use satchel_plugin_copilot::Copilot;

const NAME: &str = "copilot-activity-history.csv";
const FORMAT: &str = "copilot-importer/2026.02-history";

/// The files of all fixtures that hold conversations.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        names::has_extension(&file.name, "csv") && !conversations(&read(&file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, |_, bytes| read(bytes))
}

fn read(bytes: &[u8]) -> Vec<Line> {
    run_file::<Copilot>(FORMAT, NAME, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

#[test]
fn changed_bytes_never_panic() {
    files().change_bytes();
}

#[test]
fn a_file_cut_anywhere_gives_the_rows_before_the_cut() {
    files().cut_everywhere(|cut| {
        // The last row may be cut, which is reported; all others are whole.
        assert!(cut.new_messages().len() <= usize::from(cut.has_reports()), "{cut:?}");
        let line_end = matches!(cut.left, [.., b'\n' | b'\r']);
        assert!(cut.lines.is_empty() || cut.has_all_messages() || cut.has_reports() || line_end, "{cut:?}");
    });
}

#[test]
fn a_hundred_thousand_rows_of_one_second_are_read() {
    let rows = "Untitled,2026-01-01T00:00:00,Human,x\n".repeat(100_001);
    let lines = read(format!("Conversation,Time,Author,Message\n{rows}").as_bytes());
    assert_eq!(messages(&lines).len(), 100_001);
    assert!(
        !skips(&lines).is_empty() || !warnings(&lines).is_empty(),
        "the split of the conversation is reported"
    );
}

#[test]
fn an_unclosed_quotation_mark_costs_no_memory() {
    let mut text = String::from(
        "Conversation,Time,Author,Message\nTea,2026-01-01T00:00:00,Human,whole\nTea,2026-01-01T00:00:00,AI,\"",
    );
    text.push_str(&"never closed, ".repeat(2_000_000));
    let lines = read(text.as_bytes());
    assert_eq!(messages(&lines).len(), 1);
    assert!(skips_of(&lines, RecordKind::Message) > 0);
}

#[test]
fn newer_rows_change_no_id() {
    let head = "Conversation,Time,Author,Message\r\n";
    let old = "Tea,2026-01-01T00:00:00,AI,a\r\nTea,2026-01-01T00:00:00,Human,q\r\n";
    let new = "Tea,2026-01-02T00:00:00,AI,b\r\nTea,2026-01-02T00:00:00,Human,r\r\n";
    let (before, after) =
        (read(format!("{head}{old}").as_bytes()), read(format!("{head}{new}{old}").as_bytes()));
    let (before, after) = (conversations(&before)[0], conversations(&after)[0]);
    assert_eq!(before.id, after.id);
    assert_eq!(before.messages[..], after.messages[..2]);
    assert_eq!(after.messages.len(), 4);
}

#[test]
fn the_host_can_stop_a_run() {
    files().cancel::<Copilot>(FORMAT);
}
