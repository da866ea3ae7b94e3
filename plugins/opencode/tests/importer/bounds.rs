//! Checks that work and memory do not grow beyond what is read.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use satchel_importer::{
    Bundle, Importer as _, Sink,
    testkit::{Unclaimed, messages, run_file, warnings},
};
use satchel_plugin_opencode::OpenCode;

const FORMAT: &str = "opencode-importer/2026.01";
const STORAGE: &str = "opencode-importer/2025.09";
const INFO: &str = r#"{"id":"ses_1","title":"T","version":"1","time":{"created":1767700000000}}"#;

#[test]
fn many_providers_in_a_part_are_read_in_time() {
    let mut providers = String::new();
    for at in 0..40_000 {
        let _ = write!(providers, r#""p{at}":{{"a":1}},"#);
    }
    let part = format!(r#"{{"id":"prt_1","type":"text","text":"x","metadata":{{{providers}"z":1}}}}"#);
    let message = format!(r#"{{"info":{{"id":"msg_1","role":"assistant"}},"parts":[{part}]}}"#);
    let export = format!(r#"{{"info":{INFO},"messages":[{message}]}}"#);
    let begun = Instant::now();
    let lines =
        run_file::<OpenCode>(FORMAT, "a.json", export.as_bytes()).checked_lines(Unclaimed::ReadOrRefused);
    assert_eq!(messages(&lines).len(), 1);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn the_search_for_a_title_reads_no_more_than_a_message_may_have() {
    const PART: usize = 3 * 1024 * 1024;
    let mut files = vec![
        (
            "session/p/ses_1.json".to_owned(),
            r#"{"id":"ses_1","projectID":"p","time":{"created":1}}"#.to_owned(),
        ),
        (
            "message/ses_1/msg_1.json".to_owned(),
            r#"{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1}}"#.to_owned(),
        ),
    ];
    for at in 0..12 {
        let text = format!(r#"{{"id":"prt_{at}","type":"text","text":"{}"}}"#, "x".repeat(PART));
        files.push((format!("part/msg_1/prt_{at:02}.json"), text));
    }
    let bundle = Bundle::from_files(files);
    OpenCode::run(STORAGE, &bundle, &mut Sink::collecting()).expect("it is a storage");
    let read = bundle.bytes_read();
    assert!(read < (12 + 8) * PART as u64, "{read}");
}

#[test]
fn a_long_list_of_tasks_is_left_out() {
    let task = format!(r#"{{"content":"{}"}}"#, "x".repeat(600 * 1024));
    let export = format!(
        r#"{{"info":{INFO},"todos":[{task},{task},{task}],"messages":[{{"info":{{"id":"msg_1","role":"user"}},"parts":[]}}]}}"#
    );
    let lines =
        run_file::<OpenCode>(FORMAT, "a.json", export.as_bytes()).checked_lines(Unclaimed::ReadOrRefused);
    assert_eq!(warnings(&lines).len(), 1);
}

#[test]
fn ids_of_a_session_have_a_limit_together() {
    let parts: Vec<String> =
        (0..30_000).map(|at| format!(r#"{{"id":"{at:0>250}","type":"text","text":"x"}}"#)).collect();
    let message = |at: usize, parts: &[String]| {
        format!(r#"{{"info":{{"id":"msg_{at}","role":"assistant"}},"parts":[{}]}}"#, parts.join(","))
    };
    let half: Vec<String> = parts.iter().map(|part| part.replacen(r#""id":"0"#, r#""id":"1"#, 1)).collect();
    let third: Vec<String> = parts.iter().map(|part| part.replacen(r#""id":"0"#, r#""id":"2"#, 1)).collect();
    let all = [message(1, &parts), message(2, &half), message(3, &third)].join(",");
    let export = format!(r#"{{"info":{INFO},"messages":[{all}]}}"#);
    let lines =
        run_file::<OpenCode>(FORMAT, "a.json", export.as_bytes()).checked_lines(Unclaimed::ReadOrRefused);
    let bytes: usize = messages(&lines).into_iter().map(|message| message.id.len()).sum();
    assert!(bytes <= 16 * 1024 * 1024, "{bytes}");
}
