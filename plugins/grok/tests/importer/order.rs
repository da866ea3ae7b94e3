//! Responses that name no parents are sorted by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_grok::Grok;

#[test]
fn responses_without_parents_are_sorted_by_time_with_one_warning() -> Result<(), ImportError> {
    let response = |sender: &str, text: &str, second: u8| {
        format!(r#"{{"sender":"{sender}","message":"{text}","create_time":"2026-08-01T10:00:0{second}Z"}}"#)
    };
    let undated = r#"{"sender":"assistant","message":"No time"}"#.to_owned();
    let list = [
        response("assistant", "Green.", 2),
        undated,
        response("assistant", "You are welcome.", 4),
        response("human", "Thanks.", 4),
        response("human", "Green or black?", 1),
    ];
    let read = |list: &[String]| {
        let list = list.join(",");
        let text = format!(
            r#"{{"conversations":[{{"conversation":{{"id":"c","title":"Tea"}},"responses":[{list}]}}]}}"#
        );
        threads::<Grok>("prod-grok-backend.json", &text)
    };
    read(&list)?.check(&["Green or black?", "Green.", "No time", "Thanks.", "You are welcome."], &[SORTED]);
    read(&[list[4].clone(), list[0].clone()])?.check(&["Green or black?", "Green."], &[]);
    Ok(())
}
