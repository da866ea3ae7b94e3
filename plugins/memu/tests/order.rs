//! Messages stand by number, else by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_memu::MemU;

fn told(numbers: [&str; 2]) -> Result<satchel_importer::testkit::Threads, ImportError> {
    let [one, two] = numbers;
    let text = format!(
        r#"{{"conversation_id":"c","agent_id":"a","user_id":"u","created_at":"2025-07-01T10:00:00Z","messages":[
            {{"message_id":"2",{one}"role":"assistant","content":"Green.","created_at":"2025-07-01T10:00:02Z"}},
            {{"message_id":"1",{two}"role":"user","content":"Which?","created_at":"2025-07-01T10:00:01Z"}}]}}"#
    );
    threads::<MemU>("conversation.json", &text)
}

#[test]
fn messages_without_numbers_stand_by_time_with_one_warning() -> Result<(), ImportError> {
    let read = told(["", ""])?;
    assert_eq!(
        (read.said, read.warnings),
        (vec![vec!["Which?".into(), "Green.".into()]], vec![SORTED.into()])
    );
    Ok(())
}

#[test]
fn numbers_count_more_than_times() -> Result<(), ImportError> {
    let read = told([r#""message_index":0,"#, r#""message_index":1,"#])?;
    assert_eq!(read.said, [["Green.", "Which?"]]);
    assert_eq!(
        read.warnings,
        ["the numbers of its messages contradict their times; they are read by number"]
    );
    let read = told([r#""message_index":1,"#, r#""message_index":0,"#])?;
    assert_eq!((read.said.concat(), read.warnings.len()), (vec!["Which?".into(), "Green.".into()], 0));
    Ok(())
}
