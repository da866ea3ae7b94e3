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
    let read = |at| session.request(at, &mut source, &arena).map(|request| request.text.to_owned());
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

#[test]
fn a_damaged_change_of_the_requests_changes_nothing() {
    let (requests, _, skipped) = replay(&[
        START,
        r#"{"kind":1,"k":["requests"],"v":"oops"}"#,
        r#"{"kind":2,"k":["requests"],"i":0,"v":7}"#,
        r#"{"kind":2,"k":["requests"],"i":0,"v":[1"#,
        r#"{"kind":2,"k":["requests",0,"b"],"i":18446744073709551615,"v":[1]}"#,
    ]);
    assert_eq!((requests.len(), skipped), (2, 4));
}

#[test]
fn a_change_that_leads_nowhere_leaves_the_others_of_its_request() {
    let lines = [
        START,
        r#"{"kind":1,"k":["requests",0,"nope","x"],"v":1}"#,
        r#"{"kind":1,"k":["requests",0,"a"],"v":"text"}"#,
        r#"{"kind":2,"k":["requests",0,"a"],"v":[1],"i":0}"#,
        r#"{"kind":1,"k":["requests",0,"b"],"v":1}"#,
        r#"{"kind":2,"k":["requests",0,"b"],"v":1,"i":0}"#,
    ];
    let bundle = Bundle::from_files([("a.jsonl", lines.join("\n"))]);
    let session =
        Session::read(&bundle, "a.jsonl", detect::LOG, &mut Sink::collecting()).expect("it is read");
    let (mut source, arena) = (Source::open(&bundle, "a.jsonl").expect("it is there"), Arena::new());
    let request = session.request(0, &mut source, &arena).expect("it can be read");
    let failed: Vec<_> = request.failed.iter().map(|failed| failed.line).collect();
    assert_eq!((request.text, failed), (r#"{"a":"text","b":1}"#, vec![1, 3]));
}

/// Applies the changes of one list to `{}` with and without dropping any.
#[test]
fn what_is_dropped_makes_no_difference() {
    let push = |from: Option<usize>, items: &str| {
        let from = from.map_or(String::new(), |from| format!(r#","i":{from}"#));
        format!(r#"{{"kind":2,"k":["requests",0,"l"],"v":[{items}]{from}}}"#)
    };
    let set = |at: usize| format!(r#"{{"kind":1,"k":["requests",0,"l",{at},"x"],"v":{at}}}"#);
    let lines = [
        push(None, r#"{"n":1}"#),
        push(None, r#"{"n":2},{"n":3}"#),
        set(0),
        set(2),
        push(Some(2), r#"{"n":4}"#),
        set(2),
        push(Some(5), r#"{"n":5}"#),
        push(None, r#"{"n":6}"#),
        push(Some(5), r#"{"n":7}"#),
        set(1),
        set(4),
        push(Some(1), ""),
        push(Some(3), "8"),
    ];
    for end in 0..=lines.len() {
        let log: Vec<&str> = std::iter::once(START).chain(lines[..end].iter().map(String::as_str)).collect();
        let mut node = node::Node::Raw(r#"{"a":1}"#);
        let arena = Arena::new();
        for line in &lines[..end] {
            let operation = Operation::read(&mut Parser::new(line, &arena)).expect("it is a line");
            let applied = node.apply(&operation.path[2..], operation.change(), &mut node::Work::new(&arena));
            let _may_fail = applied.is_ok();
        }
        let mut expected = String::new();
        node.write(&mut expected);
        assert_eq!(replay(&log).0[0], expected, "{end} changes");
    }
}

#[test]
fn parts_that_are_written_again_do_not_count() {
    let text = "x".repeat(1024 * 1024);
    let mut lines = vec![START.to_owned()];
    for number in 0..40 {
        lines.push(format!(r#"{{"kind":2,"k":["requests",0,"l"],"v":["{number}{text}"],"i":1}}"#));
        lines.push(r#"{"kind":2,"k":["requests",0,"l"],"v":["y"]}"#.to_owned());
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(replay(&lines).0[0], format!(r#"{{"a":1,"l":[null,"39{text}","y"]}}"#));
}

#[test]
fn many_changes_of_a_long_field_are_applied_once() {
    let start = format!(
        r#"{{"kind":0,"v":{{"requests":[],"customTitle":{{"a":"","b":"{}"}}}}}}"#,
        "x".repeat(2_000_000)
    );
    let mut lines = vec![start];
    lines.extend((0..20_000).map(|number| format!(r#"{{"kind":1,"k":["customTitle","a"],"v":{number}}}"#)));
    let begun = std::time::Instant::now();
    let title = replay(&lines.iter().map(String::as_str).collect::<Vec<_>>()).1.expect("it is kept");
    assert!(title.starts_with(r#"{"a":19999,"#));
    assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{:?}", begun.elapsed());
}
