//! Turns are sorted by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_perplexity::Perplexity;

#[test]
fn turns_are_sorted_by_time_with_one_warning() -> Result<(), ImportError> {
    let turn = |number: u8, time: &str| {
        format!(r#"{{"uuid":"t-{number}","query":"Question {number}","answer":"Answer {number}"{time}}}"#)
    };
    let at = |second: u8| format!(r#","timestamp":"2026-08-01T10:00:0{second}Z""#);
    let read = |turns: &[String]| {
        let turns = turns.join(",");
        let text = format!(
            r#"{{"metadata":{{"thread_title":"Tea","context_uuid":"c"}},"conversations":[{turns}]}}"#
        );
        threads::<Perplexity>("thread.json", &text)
    };
    let expected = ["Question 1", "Answer 1", "Question 2", "Answer 2", "Question 3", "Answer 3"];
    read(&[turn(2, &at(4)), turn(3, ""), turn(1, &at(2))])?.check(&expected, &[SORTED]);
    assert!(read(&[turn(1, &at(2)), turn(2, &at(2))])?.warnings.is_empty());
    Ok(())
}
