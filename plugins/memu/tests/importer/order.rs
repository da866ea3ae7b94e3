//! Messages are sorted by number, else by time.

use satchel_importer::{
    ImportError,
    order::SORTED,
    testkit::{Threads, threads},
};
use satchel_plugin_memu::MemU;

fn import(numbers: [String; 2]) -> Result<Threads, ImportError> {
    let [one, two] = numbers;
    let text = format!(
        r#"{{"conversation_id":"c","agent_id":"a","user_id":"u","created_at":"2025-07-01T10:00:00Z","messages":[
            {{"message_id":"2",{one}"role":"assistant","content":"Green.","created_at":"2025-07-01T10:00:02Z"}},
            {{"message_id":"1",{two}"role":"user","content":"Which?","created_at":"2025-07-01T10:00:01Z"}}]}}"#
    );
    threads::<MemU>("conversation.json", &text)
}

#[test]
fn messages_without_numbers_are_sorted_by_time_with_one_warning() -> Result<(), ImportError> {
    import([String::new(), String::new()])?.check(&["Which?", "Green."], &[SORTED]);
    Ok(())
}

#[test]
fn numbers_take_precedence_over_times() -> Result<(), ImportError> {
    let warning = "the numbers of its messages contradict their times; they are read by number";
    let numbered =
        |one: u8, two: u8| import([one, two].map(|number| format!(r#""message_index":{number},"#)));
    numbered(0, 1)?.check(&["Green.", "Which?"], &[warning]);
    numbered(1, 0)?.check(&["Which?", "Green."], &[]);
    Ok(())
}
