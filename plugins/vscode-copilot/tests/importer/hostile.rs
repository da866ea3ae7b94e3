//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Line, broken_file_tests,
    pam::record::{MessageRecord, RecordKind},
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, nested_json, parents_are_messages,
        run_file, skips, skips_of, warnings,
    },
};
use satchel_plugin_vscode_copilot::VsCodeCopilot;
use serde_json::{Value, json};

const NAME: &str = "5d1c0b5e-7a41-4c1e-9f20-000000000099.jsonl";
const FORMAT: &str = "vscode-copilot-importer/2026.01";

/// The session files of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| {
        !file.name.contains(".vscdb") && !conversations(&read_as(&file.name, &file.bytes)).is_empty()
    };
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    let lines = run_file::<VsCodeCopilot>(FORMAT, name, bytes).checked_lines(Unclaimed::ReadOrRefused);
    assert!(conversations(&lines).into_iter().all(parents_are_messages), "links go to messages only");
    lines
}

fn read(bytes: &[u8]) -> Vec<Line> {
    read_as(NAME, bytes)
}

/// The first line of a log.
fn start(requests: &Value) -> Value {
    json!({"kind":0,"v":{"version":3,"sessionId":"s","creationDate":1_772_452_800_000_u64,"requests":requests}})
}

fn request(number: usize, response: &Value) -> Value {
    json!({"requestId":format!("q{number}"),"timestamp":1_772_452_800_000_usize + number,"message":{"text":format!("question {number}")},
        "responseId":format!("a{number}"),"response":response,"modelId":"copilot/x"})
}

fn push(path: Value, items: Value, from: Option<usize>) -> Value {
    match from {
        Some(from) => json!({"kind":2,"k":path,"v":items,"i":from}),
        None => json!({"kind":2,"k":path,"v":items}),
    }
}

fn log(lines: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    (lines.join("\n") + "\n").into_bytes()
}

/// The id, the parent and the content of each message.
fn tree(lines: &[Line]) -> Vec<(String, Option<String>, String)> {
    let content = |message: &MessageRecord| format!("{:?} {:?}", message.content, message.tool_calls);
    messages(lines)
        .into_iter()
        .map(|message| (message.id.clone(), message.parent.clone(), content(message)))
        .collect()
}

broken_file_tests! { importer: VsCodeCopilot, format: FORMAT, files: files() }

#[test]
fn a_file_cut_at_random_is_reported_or_ends_between_two_lines() {
    files().cut_at_random(|cut| {
        let log = cut.left.starts_with(b"{\"kind\"");
        let line_end = cut.left.ends_with(b"\n") || cut.missing.starts_with(b"\n");
        assert!(
            cut.lines.is_empty() || cut.has_reports() || (line_end && log) || cut.misses_nothing(),
            "{cut:?}"
        );
    });
}

#[test]
fn a_session_that_grows_changes_nothing_before_its_last_answer() {
    let call = |number: usize| {
        json!({"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":format!("c{number}"),"isComplete":true,
            "toolSpecificData":{"kind":"terminal","commandLine":{"original":"ls"},"terminalCommandOutput":{"text":"a"}}})
    };
    let mut lines = vec![start(&json!([]))];
    // Lines at which every answer has ended.
    let mut ends = Vec::new();
    for number in 0..8 {
        let path = json!(["requests", number, "response"]);
        lines.push(push(json!(["requests"]), json!([request(number, &json!([]))]), None));
        lines.push(push(path.clone(), json!([{"kind":"thinking","value":"I think","id":"t"}]), None));
        lines.push(push(
            path.clone(),
            json!([{"kind":"thinking","value":"I think so.","id":"t"},{"value":"I lo"}]),
            Some(0),
        ));
        lines.push(push(
            path.clone(),
            json!([{"value":"I look."},{"kind":"undoStop","id":"u"},call(number)]),
            Some(1),
        ));
        lines.push(push(path, json!([{"value":"It is a."}]), None));
        lines.push(json!({"kind":1,"k":["requests",number,"result"],"v":{"metadata":{"toolCallRounds":[{"id":"r","toolCalls":[
            {"id":format!("c{number}__vscode-1"),"name":"run_in_terminal","arguments":"{\"command\":\"ls\"}"},
            {"id":"unseen","name":"read_file","arguments":"{}"}]}]}}}));
        ends.push(lines.len());
        lines.push(json!({"kind":1,"k":["requests",number,"vote"],"v":1}));
        lines.push(json!({"kind":1,"k":["customTitle"],"v":format!("title {number}")}));
    }
    let whole = tree(&read(&log(&lines)));
    assert_eq!(whole.len(), 8 * 6);
    for end in ends {
        let grown = tree(&read(&log(&lines[..end])));
        assert_eq!(grown, whole[..grown.len()], "{end} lines");
    }
    // Inside an answer only the message that is being written and what belongs to it may change; ids and parents never do.
    for end in 2..lines.len() {
        let grown = tree(&read(&log(&lines[..end])));
        let place = |tree: &[(String, Option<String>, String)]| -> Vec<(String, Option<String>)> {
            tree.iter().map(|(id, parent, _)| (id.clone(), parent.clone())).collect()
        };
        assert_eq!(place(&grown), place(&whole[..grown.len()]), "{end} lines");
    }
}

#[test]
fn a_log_and_the_file_after_its_changes_give_the_same_messages() {
    let requests: Vec<Value> =
        (0..5).map(|number| request(number, &json!([{"value":"x"}, {"value":number.to_string()}]))).collect();
    let document =
        json!({"version":3,"sessionId":"s","creationDate":1_772_452_800_000_u64,"requests":requests});
    let mut lines = vec![start(&json!(requests[..2]))];
    lines.push(push(json!(["requests"]), json!([request(9, &json!([]))]), None));
    lines.push(push(json!(["requests"]), json!(requests[2..]), Some(2)));
    let (of_log, of_document) = (read(&log(&lines)), read(document.to_string().as_bytes()));
    assert_eq!(tree(&of_log), tree(&of_document));
    assert_eq!(conversations(&of_log)[0].id, conversations(&of_document)[0].id);
}

#[test]
fn many_requests_and_changes_are_read_in_time() {
    let requests: Vec<Value> = (0..20_000).map(|number| request(number, &json!([{"value":"x"}]))).collect();
    let mut lines = vec![start(&json!(requests))];
    lines.extend((0..4_000).map(|number| {
        push(
            json!(["requests", 7, "response"]),
            json!([{"kind":"thinking","value":"x"}, {"value":number.to_string()}]),
            None,
        )
    }));
    let begun = Instant::now();
    let read = read(&log(&lines));
    assert_eq!(messages(&read).len(), 40_000 + 8_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn paths_of_any_shape_are_refused_alone() {
    let long: Vec<Value> = (0..1_000).map(|_| json!("a")).collect();
    let mut lines = vec![start(&json!([request(0, &json!([{"value":"x"}]))]))];
    for path in [
        json!([]),
        json!(long),
        json!(["requests", -1]),
        json!(["requests", 1.5, "a"]),
        json!(["requests", 18_446_744_073_709_551_615_u64, "a"]),
        json!(["requests", 5]),
        json!(["requests", null]),
        json!([{}]),
        json!("requests"),
        json!([0]),
    ] {
        lines.push(json!({"kind":1,"k":path,"v":1}));
        lines.push(json!({"kind":2,"k":path,"v":[1]}));
        lines.push(json!({"kind":3,"k":path}));
    }
    let count = lines.len() - 1;
    lines.push(json!({"kind":2,"k":["requests", 0, "response"],"v":[],"i":4_294_967_296_u64}));
    let read = read(&log(&lines));
    assert_eq!((messages(&read).len(), skips(&read).len()), (2, count + 1));
}

#[test]
fn a_change_that_leads_nowhere_inside_a_request_is_skipped_alone() {
    let requests = json!([request(0, &json!([])), request(1, &json!([]))]);
    let lines = [
        start(&requests),
        json!({"kind":1,"k":["requests",0,"message","text","deep"],"v":1}),
        push(json!(["requests", 0, "response"]), json!([{"value":"x"}]), Some(0)),
    ];
    let read = read(&log(&lines));
    assert_eq!(skips_of(&read, RecordKind::Message), 1);
    let ids: Vec<_> = messages(&read).into_iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["q0", "a0", "q1"]);
}

#[test]
fn nesting_beyond_the_limit_skips_the_request_alone() {
    let text = r#"{"version":3,"sessionId":"s","creationDate":1,"requests":[
        {"requestId":"a","message":{"text":"deep"},"odd":$deep},{"requestId":"b","message":{"text":"It is read."}}]}"#;
    let lines = read_as("a.json", &nested_json(text));
    assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1));
}

#[test]
fn rendered_results_of_any_depth_and_width_do_not_hang() {
    let mut node = json!({"text":"x"});
    for _ in 0..80 {
        node = json!({"children":[node]});
    }
    let wide: Vec<Value> = (0..50_000).map(|_| json!({"text":"x","lineBreakBefore":true})).collect();
    let results = json!({"c1":{"content":[{"value":{"node":node}}]},"c2":{"content":[{"value":{"node":{"children":wide}}}]}});
    let calls = json!([{"id":"c1","name":"a","arguments":"{}"},{"id":"c2","name":"b","arguments":"["}]);
    let mut request = request(0, &json!([]));
    request["result"] =
        json!({"metadata":{"toolCallRounds":[{"toolCalls":calls}],"toolCallResults":results}});
    let lines = read(&log(&[start(&json!([request]))]));
    assert!(skips_of(&lines, RecordKind::Message) <= 1);
}

#[test]
fn requests_beyond_the_limit_are_skipped_alone() {
    let long = request(0, &json!([{"value":"x".repeat(13 * 1024 * 1024)}]));
    let document =
        json!({"version":3,"sessionId":"s","creationDate":1,"requests":[long, request(1, &json!([]))]});
    for (name, bytes) in
        [("a.json", document.to_string().into_bytes()), (NAME, log(&[json!({"kind":0,"v":document})]))]
    {
        let lines = read_as(name, &bytes);
        assert_eq!((messages(&lines).len(), skips_of(&lines, RecordKind::Message)), (1, 1), "{name}");
    }
}

#[test]
fn a_first_line_of_any_length_is_read_request_by_request() {
    let text = "x".repeat(6 * 1024 * 1024);
    let requests: Vec<Value> = (0..7).map(|number| request(number, &json!([{"value":text}]))).collect();
    let vote = json!({"kind":1,"k":["requests",6,"response"],"v":[{"value":"Shorter."}]});
    let lines =
        read(&log(&[start(&json!(requests)), vote, json!({"kind":1,"k":["customTitle"],"v":"Long"})]));
    let record = conversations(&lines)[0];
    assert_eq!((record.messages.len(), record.title.as_deref(), skips(&lines).len()), (14, Some("Long"), 0));
    assert!(format!("{:?}", record.messages.last()).contains("Shorter."));
}

#[test]
fn repeated_ids_and_links_make_no_cycle() {
    let same = |id: &str| json!({"requestId":id,"responseId":id,"message":{"text":id},"response":[{"value":"x"},{"kind":"thinking","value":"y"},{"value":"z"}]});
    let requests = json!([same("a"), same("a"), same("a:1"), same("a:2"), same("a:2:1")]);
    let lines = read(&log(&[start(&requests)]));
    let record = conversations(&lines)[0];
    let ids: std::collections::BTreeSet<_> = record.messages.iter().map(|message| &message.id).collect();
    assert_eq!((ids.len(), record.messages.len()), (20, 20));
}

#[test]
fn unsorted_and_undated_requests_keep_the_order_of_the_file() {
    let mut requests: Vec<Value> =
        (0..4).rev().map(|number| request(number, &json!([{"value":"x"}]))).collect();
    requests[1]["timestamp"] = json!("soon");
    requests[2]["timestamp"] = json!(null);
    let lines = read(&log(&[start(&json!(requests))]));
    let ids: Vec<_> = messages(&lines).into_iter().map(|message| message.id.clone()).collect();
    assert_eq!(ids, ["q3", "a3", "q2", "a2", "q1", "a1", "q0", "a0"]);
}

#[test]
fn requests_without_ids_of_chats_without_ids_are_told_apart() {
    let chat = |answer: &str| {
        let text = json!({"responderUsername":"x","initialLocation":"panel","requests":[{"message":"Hello","response":[{"value":answer}]}]});
        conversations(&read_as("chat.json", text.to_string().as_bytes()))[0].id.clone()
    };
    assert_ne!(chat("one"), chat("two"));
}

#[test]
fn answers_of_many_equal_parts_are_read_in_time() {
    let many = |part: Value| -> Vec<Value> { (0..15_000).map(|_| part.clone()).collect() };
    let call = json!({"kind":"toolInvocationSerialized","toolCallId":"c"});
    let round = json!({"response":"not there","toolCalls":[{"id":"c","name":"n"}]});
    let fence = json!([{"value":"```"},{"kind":"codeblockUri"}]);
    let begun = Instant::now();
    for response in [
        many(json!({"kind":"thinking","value":"x","id":"t"})),
        many(json!({"value":"x"})),
        many(call),
        (0..7_000).flat_map(|_| fence.as_array().cloned().unwrap_or_default()).collect(),
    ] {
        let mut request = request(0, &json!(response));
        request["result"] = json!({"metadata":{"toolCallRounds":many(round.clone())}});
        let lines = read(&log(&[start(&json!([request]))]));
        assert!(!messages(&lines).is_empty());
    }
    let same =
        many(json!({"requestId":"q","responseId":"q","message":{"text":"x"},"response":[{"value":"x"}]}));
    assert_eq!(messages(&read(&log(&[start(&json!(same))]))).len(), 30_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn fields_of_any_length_and_number_are_reported() {
    let words = "unsent words ".repeat(220_000);
    let mut document = json!({"version":3,"sessionId":"s","creationDate":1,"unsentRequests":[words],"requests":[request(0, &json!([]))]});
    let named = |lines: &[Line], name: &str| {
        lines.iter().any(|line| matches!(line, Line::Warning(warning) if warning.message.contains(name)))
    };
    for repeat in [1, 5] {
        document["unsentRequests"] = json!([words.repeat(repeat)]);
        let lines = read_as("a.json", document.to_string().as_bytes());
        assert!(named(&lines, "unsentRequests") && messages(&lines).len() == 1);
    }
    for number in 0..3_000 {
        document[format!("odd{number}")] = json!(1);
    }
    document["unsentRequests"] = json!(null);
    for (name, bytes) in
        [("a.json", document.to_string().into_bytes()), (NAME, log(&[json!({"kind":0,"v":document})]))]
    {
        let lines = read_as(name, &bytes);
        assert!(named(&lines, "left out") && messages(&lines).len() == 1, "{name}");
    }
}

#[test]
fn repeated_keys_are_reported() {
    let text = r#"{"version":3,"sessionId":"s","creationDate":1,"customTitle":"one","customTitle":"two","requests":[
        {"requestId":"q","message":{"text":"a"},"response":[{"value":"first","value":"x"}],"response":[{"value":"b"}]}]}"#;
    for (name, text) in
        [("a.json", text.to_owned()), (NAME, format!("{{\"kind\":0,\"v\":{}}}", text.replace('\n', "")))]
    {
        let lines = read_as(name, text.as_bytes());
        let warned = |key: &str| {
            let message = format!("{key:?} twice");
            lines
                .iter()
                .any(|line| matches!(line, Line::Warning(warning) if warning.message.contains(&message)))
        };
        assert!(["customTitle", "response", "value"].into_iter().all(warned), "{name}: {lines:?}");
    }
}

#[test]
fn an_answer_of_too_many_messages_is_cut_off() {
    let response: Vec<Value> = (0..30_000).map(|_| json!({"kind":"command"})).collect();
    let mut failed = request(0, &json!(response));
    failed["result"] = json!({"errorDetails":{"message":"It is kept."}});
    let lines = read(&log(&[start(&json!([failed, request(1, &json!([{"value":"x"}]))]))]));
    let ids: Vec<_> = messages(&lines).into_iter().map(|message| message.id.as_str()).collect();
    assert_eq!((ids.len(), &ids[20_001..]), (20_004, &["a0:20000", "q1", "a1"][..]));
    assert_eq!(lines.iter().filter(|line| matches!(line, Line::Warning(_))).count(), 1);
}

#[test]
fn that_there_are_more_kinds_of_warnings_is_said() {
    let parts: Vec<Value> =
        (0..100).map(|at| json!({"kind":format!("novelty{at}"),"content":"It is kept."})).collect();
    let read = read(&log(&[start(&json!([request(1, &json!(parts))]))]));
    let given = |start: &str| {
        warnings(&read).into_iter().filter(|warning| warning.message.starts_with(start)).count()
    };
    assert_eq!((given("a part of an answer has an unknown type"), given("there are more kinds")), (64, 1));
}
