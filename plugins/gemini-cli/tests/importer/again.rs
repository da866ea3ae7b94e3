//! Messages that are written again with something else: nothing of it is lost without a word.

use satchel_importer::{
    Line,
    testkit::{conversations, messages, skips, warnings},
};

use crate::hostile::{gemini, read, tree, user};

/// The JSON text of all messages.
fn stored(lines: &[Line]) -> String {
    format!("{:?}", messages(lines))
}

/// An answer without a text and with one call, which has other fields.
fn calls(more: &str) -> String {
    gemini("g", "", &format!(r#","toolCalls":[{{"id":"c","name":"sh","args":{{}},{more}}}]"#))
}

fn ids(lines: &[Line]) -> Vec<String> {
    tree(lines).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn a_result_that_comes_after_what_was_shown_is_read() {
    let result =
        r#""status":"success","result":[{"functionResponse":{"id":"c","response":{"output":"All of it."}}}]"#;
    for first in [
        r#""status":"executing","resultDisplay":"line 1""#,
        r#""status":"success""#,
        r#""status":"success","result":[{"functionResponse":{"id":"c","response":{}}}]"#,
    ] {
        let read = read(&[calls(first), calls(result), calls(result), calls(first)]);
        assert_eq!(stored(&read).matches("All of it.").count(), 1, "{first}");
        assert!(warnings(&read).is_empty() && skips(&read).is_empty());
    }
}

#[test]
fn another_result_of_the_same_call_is_named() {
    let result = |text: &str| calls(&format!(r#""status":"success","result":"{text}""#));
    let read = read(&[result("one"), result("<tool_output_masked>"), result("two")]);
    assert_eq!(ids(&read), ["g:call:c", "g:result:c"]);
    let warnings = warnings(&read);
    assert!(warnings.len() == 1 && warnings[0].message.contains("session.jsonl[3]"), "{warnings:?}");
    let metadata = format!("{:?}", conversations(&read)[0]);
    assert!(metadata.contains("masked") && metadata.contains("changed"), "{metadata}");
}

#[test]
fn files_and_unknown_parts_that_come_later_are_read() {
    let look = |more: &str| format!(r#"{{"id":"u","type":"user","content":[{{"text":"Look"}}{more}]}}"#);
    let file = r#",{"inlineData":{"mimeType":"image/png","data":"AAEC"}}"#;
    let code = r#",{"executableCode":{"language":"PYTHON","code":"print('the quick brown fox')"}}"#;
    let all = look(&format!("{file}{code}"));
    let read = read(&[look(""), look(file), all.clone(), all, look("")]);
    assert_eq!(ids(&read), ["u", "u:2", "u:3"]);
    let messages = messages(&read);
    let files: Vec<usize> = messages.iter().map(|message| message.attachments.len()).collect();
    assert_eq!(files, [0, 1, 0]);
    assert!(messages[1].content.is_none() && stored(&read).matches("quick brown fox").count() == 1);
}

#[test]
fn thoughts_and_calls_that_are_alike_are_told_apart() {
    let thoughts = r#","thoughts":[{"description":"2*3 = 6"},{"description":"23 = 6"}]"#;
    let calls = r#","toolCalls":[{"id":"c","name":"ls","args":{"p":1},"status":"success","result":"one"},{"id":"c","name":"cat","args":{"p":2},"status":"success","result":"two"}]"#;
    let line = gemini("h", "x", &format!("{thoughts}{calls}"));
    let read = read(&[line.clone(), line]);
    let expected =
        ["h:thought:1", "h:thought:2", "h", "h:call:c", "h:result:c", "h:call:c:2", "h:result:c:2"];
    assert_eq!(ids(&read), expected);
}

#[test]
fn results_of_calls_with_one_id_may_come_later() {
    let calls = |one: &str, two: &str| {
        let calls = format!(
            r#","toolCalls":[{{"id":"c","name":"ls","args":{{}}{one}}},{{"id":"c","name":"cat","args":{{}}{two}}}]"#
        );
        gemini("h", "x", &calls)
    };
    let read = read(&[
        calls("", ""),
        calls(r#","result":"one""#, ""),
        calls(r#","result":"one""#, r#","result":"two""#),
    ]);
    assert_eq!(ids(&read), ["h", "h:call:c", "h:call:c:2", "h:result:c", "h:result:c:2"]);
}

#[test]
fn a_mark_that_is_a_sentence_is_kept() {
    let line = r#"{"id":"g","type":"gemini","content":[{"text":"answer","thought":"I think that this is a long sentence."}]}"#;
    let read = read(&[line.to_owned()]);
    assert!(stored(&read).contains("I think that this is a long sentence."));
}

#[test]
fn an_unknown_field_that_changes_is_named() {
    let thought =
        |more: &str| gemini("g", "x", &format!(r#","thoughts":[{{"description":"Why.","note":"{more}"}}]"#));
    let one = thought("The person was in a hurry today.");
    let read = read(&[one.clone(), one, thought("Nobody was in a hurry on that day.")]);
    assert!(warnings(&read).iter().any(|warning| warning.message.contains("session.jsonl[3]")), "{read:?}");
}

#[test]
fn a_step_back_keeps_what_a_checkpoint_has_before_it() {
    let (sum, got) = (user("s", "<state_snapshot>sum"), gemini("k", "Got it.", ""));
    let (u, g) = (|n: u8| user(&format!("u{n}"), "q"), |n: u8| gemini(&format!("g{n}"), "r", ""));
    let checkpoint = |n: u8| format!(r#"{{"$set":{{"messages":[{sum},{got},{},{}]}}}}"#, u(n), g(n));
    let back = r#"{"$rewindTo":"u2"}"#.to_owned();
    let read = read(&[u(1), g(1), u(2), g(2), checkpoint(2), back, u(3), g(3), checkpoint(3)]);
    assert_eq!(ids(&read), ["u1", "g1", "u2", "g2", "s", "k", "u3", "g3"]);
    assert_eq!(tree(&read)[6].1.as_deref(), Some("k"));
    assert_eq!(conversations(&read)[0].current.as_deref(), Some("g3"));
    assert!(warnings(&read).is_empty());
}

#[test]
fn a_message_that_cannot_be_read_costs_only_itself_in_both_passes() {
    let fields: Vec<String> = (0..50_001).map(|number| format!(r#""f{number}":1"#)).collect();
    let big = format!(r#"{{"id":"big","type":"user","content":"x",{}}}"#, fields.join(","));
    let checkpoint = format!(r#"{{"$set":{{"messages":[{big},{}]}}}}"#, user("n", "It is read."));
    let answers = ["g1", "g2"].map(|id| gemini(id, id, &format!(r#","tokens":{{"output":{}}}"#, &id[1..])));
    let read = read(&[[user("u", "x"), checkpoint].as_slice(), &answers].concat());
    let tokens: Vec<_> =
        messages(&read).iter().map(|message| (message.id.clone(), message.token_count)).collect();
    let expected = [("u", None), ("n", None), ("g1", Some(1)), ("g2", Some(2))];
    assert_eq!(tokens, expected.map(|(id, count)| (id.to_owned(), count)));
    assert_eq!((skips(&read).len(), conversations(&read)[0].current.as_deref()), (1, Some("g2")));
}
