//! Rows that stand neither newest first nor oldest first stand by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_copilot::Copilot;

#[test]
fn only_rows_in_neither_order_are_told_of() -> Result<(), ImportError> {
    let told = |rows: &[(u8, &str, &str)]| {
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
        told(&rows)?.check(&["Which?", "Green.", "Thanks."], &[]);
    }
    told(&[answer, thank, ask])?.check(&["Which?", "Green.", "Thanks."], &[SORTED]);
    Ok(())
}
