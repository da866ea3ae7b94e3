use satchel_importer::Line;

use super::*;

/// The requests and the title after these lines, and how many lines were skipped.
fn replay(lines: &[&str]) -> (Vec<String>, Option<String>, usize) {
    replay_bytes(lines.join("\n").as_bytes())
}

fn replay_bytes(bytes: &[u8]) -> (Vec<String>, Option<String>, usize) {
    let bundle = Bundle::from_files([("a.jsonl", bytes.to_vec())]);
    let mut sink = Sink::collecting();
    let session = Session::read(&bundle, "a.jsonl", detect::LOG, &mut sink).expect("it is read");
    let (mut source, arena) = (Source::open(&bundle, "a.jsonl").expect("it is there"), Arena::new());
    let read = |at| session.request(at, &mut source, &arena).map(ToOwned::to_owned);
    let requests =
        (0..session.len()).map(read).map(|read| read.unwrap_or_else(|error| error.message)).collect();
    let skipped = sink.into_lines().iter().filter(|line| matches!(line, Line::Skip(_))).count();
    (requests, session.header.get("customTitle").cloned(), skipped)
}

const START: &str = r#"{"kind":0,"v":{"version":3, "requests": [ {"a":1} ,{"a":2}],"customTitle":"x"}}"#;

#[test]
fn operations_change_the_state_in_order() {
    let (requests, title, skipped) = replay(&[
        START,
        r#"{"kind":1,"k":["customTitle"],"v":"y"}"#,
        r#"{"kind":1,"k":["requests",0,"a"],"v":{"b":[1]}}"#,
        r#"{"kind":2,"k":["requests",0,"a","b"],"v":[2,3]}"#,
        r#"{"kind":2,"k":["requests",0,"a","b"],"v":[4],"i":2}"#,
        r#"{"kind":2,"k":["requests",1,"new"],"v":["n"]}"#,
        r#"{"kind":3,"k":["requests",1,"a"]}"#,
        r#"{"kind":2,"k":["requests"],"v":[{"a":3},{"a":4}]}"#,
        r#"{"kind":2,"k":["requests"],"i":3}"#,
        r#"{"kind":1,"k":["requests",2],"v":{"a":5}}"#,
    ]);
    assert_eq!(requests, [r#"{"a":{"b":[1,2,4]}}"#, r#"{"new":["n"]}"#, r#"{"a":5}"#]);
    assert_eq!((title.as_deref(), skipped), (Some("\"y\""), 0));
}

#[test]
fn a_later_state_replaces_all() {
    let (requests, title, _) = replay(&[START, r#"{"kind":0,"v":{"requests":[{"z":0}]}}"#]);
    assert_eq!((requests, title), (vec![r#"{"z":0}"#.to_owned()], None));
}

#[test]
fn what_is_deleted_or_undefined_is_absent() {
    let (requests, title, _) =
        replay(&[START, r#"{"kind":3,"k":["customTitle"]}"#, r#"{"kind":1,"k":["requests",0,"a"]}"#]);
    assert_eq!((requests[0].as_str(), title), ("{}", None));
}

#[test]
fn lines_that_lead_nowhere_are_skipped_alone() {
    let (requests, title, skipped) = replay(&[
        START,
        "7",
        r#"{"kind":9,"k":[],"v":1}"#,
        r#"{"k":["customTitle"],"v":1}"#,
        r#"{"kind":1,"v":1}"#,
        r#"{"kind":1,"k":[],"v":1}"#,
        r#"{"kind":1,"k":["requests",9,"a"],"v":1}"#,
        r#"{"kind":1,"k":["requests","a"],"v":1}"#,
        r#"{"kind":2,"k":["customTitle"],"v":[1]}"#,
        r#"{"kind":1,"k":["customTitle","a"],"v":1}"#,
        r#"{"kind":0,"v":[]}"#,
        r#"{"kind":1,"k":[null],"v":1}"#,
    ]);
    assert_eq!((requests.len(), title.as_deref(), skipped), (2, Some("\"x\""), 11));
}

#[test]
fn invalid_bytes_do_not_move_what_stands_behind_them() {
    let line = br#"{"kind":0,"v":{"version":3,"customTitle":"$","requests":[{"a":"$"},{"a":2}]}}"#;
    let bytes: Vec<u8> = line.iter().map(|byte| if *byte == b'$' { 0xff } else { *byte }).collect();
    assert_eq!(replay_bytes(&bytes).0, ["{\"a\":\"\u{fffd}\"}", r#"{"a":2}"#]);
}
