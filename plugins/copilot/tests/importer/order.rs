//! Rows that are neither newest first nor oldest first are sorted by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_copilot::Copilot;

#[test]
fn only_rows_in_neither_order_give_a_warning() -> Result<(), ImportError> {
    let read = |rows: &[(u8, &str, &str)]| {
        let row = |(second, author, text): &(u8, &str, &str)| {
            format!("Tea,2026-03-01T10:00:0{second},{author},{text}\n")
        };
        let rows: String = rows.iter().map(row).collect();
        threads::<Copilot>(
            "copilot-activity-history.csv",
            &format!("Conversation,Time,Author,Message\n{rows}"),
        )
    };
    let (ask, answer, thank) = ((1, "Human", "Which?"), (2, "AI", "Green."), (3, "Human", "Thanks."));
    for rows in [[ask, answer, thank], [thank, answer, ask]] {
        read(&rows)?.check(&["Which?", "Green.", "Thanks."], &[]);
    }
    read(&[answer, thank, ask])?.check(&["Which?", "Green.", "Thanks."], &[SORTED]);
    Ok(())
}
