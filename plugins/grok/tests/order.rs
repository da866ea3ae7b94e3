//! Responses that name no parents stand by time.

use satchel_importer::{ImportError, order::SORTED, testkit::threads};
use satchel_plugin_grok::Grok;

#[test]
fn responses_without_parents_stand_by_time_with_one_warning() -> Result<(), ImportError> {
    let said = |sender: &str, text: &str, second: u8| {
        format!(r#"{{"sender":"{sender}","message":"{text}","create_time":"2026-08-01T10:00:0{second}Z"}}"#)
    };
    let undated = r#"{"sender":"assistant","message":"No time"}"#.to_owned();
    let list = [
        said("assistant", "Green.", 2),
        undated,
        said("assistant", "You are welcome.", 4),
        said("human", "Thanks.", 4),
        said("human", "Green or black?", 1),
    ];
    let told = |list: &[String]| {
        let list = list.join(",");
        let text = format!(
            r#"{{"conversations":[{{"conversation":{{"id":"c","title":"Tea"}},"responses":[{list}]}}]}}"#
        );
        threads::<Grok>("prod-grok-backend.json", &text)
    };
    let read = told(&list)?;
    assert_eq!(read.said, [["Green or black?", "Green.", "No time", "Thanks.", "You are welcome."]]);
    assert_eq!(read.warnings, [SORTED]);
    let ordered = told(&[list[4].clone(), list[0].clone()])?;
    assert_eq!(
        (ordered.said, ordered.warnings),
        (vec![vec!["Green or black?".into(), "Green.".into()]], vec![])
    );
    Ok(())
}
