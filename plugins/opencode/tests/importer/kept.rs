//! Checks that what is broken or unusual costs nothing that is beside it.

use satchel_importer::{
    Bundle, Importer as _, Line,
    pam::record::RecordKind,
    testkit::{check_lines, conversations, messages, produce, skips, skips_of, warnings},
};
use satchel_plugin_opencode::OpenCode;
use serde_json::{Value, json};

fn read(files: Vec<(String, String)>) -> Vec<Line> {
    let mut lines = Vec::new();
    for export in produce::<OpenCode>(&Bundle::from_files(files)).expect("detection answers").exports {
        assert_eq!(export.error, None);
        check_lines(&export.lines).expect("every record makes sense");
        lines.extend(export.lines);
    }
    lines
}

/// Reads an export with an answer of these parts.
fn answer(parts: &[Value]) -> Vec<Line> {
    let export = json!({
        "info": {"id": "ses_1", "title": "T", "version": "1", "time": {"created": 1_767_700_000_000_u64}},
        "messages": [{"info": {"id": "msg_1", "role": "assistant", "time": {"created": 1_767_700_001_000_u64}},
            "parts": parts}],
    });
    read(vec![("session.json".to_owned(), export.to_string())])
}

fn said(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "text", "text": text})
}

fn all_of(lines: &[Line]) -> String {
    conversations(lines)
        .iter()
        .map(|record| serde_json::to_string(record).expect("records are JSON"))
        .collect()
}

fn ids(lines: &[Line]) -> Vec<String> {
    messages(lines).into_iter().map(|message| message.id.clone()).collect()
}

fn session(path: &str, id: &str, title: &str, updated: u64) -> (String, String) {
    let own = json!({"id": id, "projectID": "p", "title": title, "time": {"created": 1, "updated": updated}});
    (path.to_owned(), own.to_string())
}

fn prompt(session: &str, id: &str) -> [(String, String); 2] {
    let own = json!({"id": id, "sessionID": session, "role": "user", "time": {"created": 1}});
    let path = format!("part/{id}/prt_{id}.json");
    [
        (format!("message/{session}/{id}.json"), own.to_string()),
        (path, said(&format!("prt_{id}"), "Hello.").to_string()),
    ]
}

#[test]
fn a_tool_with_an_output_and_an_error_keeps_both() {
    let state = json!({"status": "error", "input": {}, "output": "half of it", "error": "then it broke"});
    let lines =
        answer(&[json!({"id": "prt_1", "type": "tool", "callID": "c", "tool": "ls", "state": state})]);
    assert!(all_of(&lines).contains("half of it") && all_of(&lines).contains("then it broke"));
}

#[test]
fn a_part_that_cannot_be_read_costs_only_itself() {
    let many: Vec<u8> = vec![1; 50_001];
    let call = |attachments: Value| {
        let state = json!({"status": "completed", "input": {}, "output": "x", "attachments": attachments});
        json!({"id": "prt_2", "type": "tool", "callID": "c", "tool": "ls", "state": state})
    };
    for odd in [json!("a text"), json!(7), call(json!(many))] {
        let lines = answer(&[said("prt_1", "Before."), odd, said("prt_3", "Behind.")]);
        assert_eq!(ids(&lines), ["msg_1", "prt_3"]);
        assert_eq!(skips_of(&lines, RecordKind::Message), 1);
        assert!(skips(&lines)[0].locator.contains("#part"), "{}", skips(&lines)[0].locator);
    }
}

#[test]
fn a_file_in_an_answer_keeps_its_id_when_a_call_before_it_ends() {
    let parts = |state: Value| {
        [
            said("prt_1", "Look."),
            json!({"id": "prt_2", "type": "tool", "callID": "c", "tool": "draw", "state": state}),
            json!({"id": "prt_3", "type": "file", "filename": "a.gif", "url": "data:image/gif;base64,R0lG"}),
        ]
    };
    let running = ids(&answer(&parts(json!({"status": "running", "input": {}}))));
    assert_eq!(running, ["msg_1", "prt_2", "prt_3"]);
    let ended = ids(&answer(&parts(json!({"status": "completed", "input": {}, "output": "Done."}))));
    assert_eq!(ended, ["msg_1", "prt_2", "prt_2:result", "prt_3"]);
}

#[test]
fn a_session_that_moved_to_a_project_is_read_from_its_newest_file() {
    for (old, new) in [("a", "b"), ("b", "a")] {
        let mut files = vec![
            session(&format!("session/{old}/ses_1.json"), "ses_1", "Before", 5),
            session(&format!("session/{new}/ses_1.json"), "ses_1", "Since", 9),
        ];
        files.extend(prompt("ses_1", "msg_1"));
        let lines = read(files);
        assert_eq!(conversations(&lines)[0].title.as_deref(), Some("Since"));
        assert_eq!(skips(&lines)[0].locator, format!("session/{old}/ses_1.json"));
    }
}

#[test]
fn sessions_whose_files_have_the_same_id_are_both_read() {
    let mut files = vec![
        session("session/p/ses_1.json", "ses_1", "One", 5),
        session("session/p/ses_2.json", "ses_1", "Two", 5),
    ];
    files.extend(prompt("ses_1", "msg_1"));
    files.extend(prompt("ses_2", "msg_2"));
    let lines = read(files);
    let found: Vec<String> = conversations(&lines).into_iter().map(|record| record.id.clone()).collect();
    assert_eq!(found, ["ses_1", "ses_2"]);
    assert_eq!(warnings(&lines).len(), 1);
}

#[test]
fn a_project_that_cannot_be_read_is_reported_once() {
    let mut files = vec![
        ("project/p.json".to_owned(), "[\"torn".to_owned()),
        session("session/p/ses_1.json", "ses_1", "One", 5),
        session("session/p/ses_2.json", "ses_2", "Two", 5),
    ];
    files.extend(prompt("ses_1", "msg_1"));
    files.extend(prompt("ses_2", "msg_2"));
    let lines = read(files);
    assert_eq!(skips_of(&lines, RecordKind::File), 1);
    assert!(skips(&lines)[0].locator.starts_with("project/p.json"));
}

#[test]
fn names_that_are_too_long_for_ids_are_shortened() {
    let long = "x".repeat(1100);
    let (session, message) = (format!("ses_{long}"), format!("msg_{long}"));
    let own = json!({"sessionID": "s", "role": "assistant", "time": {"created": 1}}).to_string();
    let mut files: Vec<(String, String)> = (0..2)
        .map(|at| {
            let part = json!({"type": "text", "text": "Hello."}).to_string();
            (format!("part/{message}/prt_{at}{long}.json"), part)
        })
        .collect();
    files.push((format!("message/{session}/{message}.json"), own));
    files
        .push((format!("session/p/{session}.json"), r#"{"projectID":"p","title":"T","time":{}}"#.to_owned()));
    files.extend([self::session("session/p/ses_0.json", "ses_0", "T", 1)]);
    let lines = read(files);
    let mut found = ids(&lines);
    assert_eq!(found.len(), 2);
    found.extend(conversations(&lines).into_iter().map(|record| record.id.clone()));
    assert!(found.iter().all(|id| id.len() <= 1024));
}

#[test]
fn exports_of_other_programs_are_left_alone() {
    for other in [
        json!({"info": {"id": "session-1", "title": "T", "time": {}},
            "messages": [{"info": {"id": "1", "role": "user"}, "parts": []}]}),
        json!({"info": {"id": "ses_1", "title": "T"}, "messages": [{"role": "user", "content": "Hello."}]}),
        json!({"info": {"id": "ses_1", "title": "T"}, "messages": ["Hello."]}),
    ] {
        let bundle = Bundle::from_files([("session.json", other.to_string())]);
        assert!(OpenCode::detect(&bundle).expect("detection answers").is_empty(), "{other}");
    }
    let own = r#"{"id":"session-1","version":"1","time":{}}"#;
    let bundle = Bundle::from_files([("session/php/session-1.json", own)]);
    assert!(OpenCode::detect(&bundle).expect("detection answers").is_empty());
}

#[test]
fn what_stands_behind_an_export_is_reported() {
    let export = |id: &str| {
        let info = json!({"id": id, "title": "T", "version": "1"});
        let message = json!({"info": {"id": "msg_1", "role": "user"}, "parts": [said("prt_1", "Hello.")]});
        json!({"info": info, "messages": [message]}).to_string()
    };
    let text = format!("{}\n{}", export("ses_1"), export("ses_2"));
    let lines = read(vec![("session.json".to_owned(), text)]);
    assert_eq!(conversations(&lines).len(), 1);
    assert!(!skips(&lines).is_empty() || !warnings(&lines).is_empty());
}

#[test]
fn lists_that_are_repeated_in_an_export_are_reported() {
    let list = |id: &str| json!([{"info": {"id": id, "role": "user"}, "parts": [said("p", "Hello.")]}]);
    let info = r#"{"id":"ses_1","title":"T","version":"1"}"#;
    let text = format!(r#"{{"info":{info},"messages":{},"messages":{}}}"#, list("msg_1"), list("msg_2"));
    let lines = read(vec![("session.json".to_owned(), text)]);
    assert!(
        messages(&lines).len() == 2 || skips(&lines).len() + warnings(&lines).len() > 0,
        "{}",
        all_of(&lines)
    );
}

#[test]
fn a_file_whose_address_is_plain_text_is_kept() {
    let file =
        json!({"id": "prt_1", "type": "file", "mime": "text/plain", "url": "data:text/plain,Hello%20there"});
    let lines = answer(&[file]);
    assert!(warnings(&lines).is_empty() && skips(&lines).is_empty());
    assert_eq!(messages(&lines)[0].attachments.len(), 1);
    assert!(!all_of(&lines).contains("Hello%20there"));
}
