use super::*;

fn outline(text: &str) -> Outline {
    let bundle = Bundle::from_files([("s.jsonl", text)]);
    Outline::read(&bundle, "s.jsonl").expect("memory can be read")
}

fn parents(outline: &Outline) -> Vec<(&str, Option<&str>)> {
    let nodes = outline.nodes.iter().enumerate().filter(|(_, node)| node.kept);
    nodes.map(|(at, node)| (node.id.as_str(), outline.parent(at))).collect()
}

#[test]
fn messages_are_linked_through_lines_that_are_left_out() {
    let outline = outline(concat!(
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
        "\n",
        r#"{"type":"progress","uuid":"p","parentUuid":"a","data":{}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"b","parentUuid":"p","message":{"role":"assistant"}}"#,
        "\n",
        r#"{"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"b"}"#,
        "\n",
        r#"{"type":"user","uuid":"d","parentUuid":"gone","message":{}}"#,
        "\n",
    ));
    let expected = [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("gone"))];
    assert_eq!(parents(&outline), expected);
    assert_eq!((outline.place(1), outline.left_out["progress"]), (Place::LeftOut, 1));
    assert_eq!((outline.current(), outline.title.as_deref()), (Some("d"), Some("hi")));
}

#[test]
fn parts_of_one_message_count_their_tokens_once_and_when_it_is_complete() {
    let line = |uuid: &str, message: &str, stop: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":null,"message":{{"id":"{message}","stop_reason":{stop}}}}}"#
        )
    };
    let lines = [
        line("a", "m", "null"),
        line("b", "m", "null"),
        line("c", "n", "\"end_turn\""),
        line("d", "o", "null"),
    ];
    let counted = |lines: &[String]| {
        let outline = outline(&lines.join("\n"));
        outline.nodes.iter().map(|node| node.last_part).collect::<Vec<bool>>()
    };
    assert_eq!(counted(&lines), [false, true, true, false]);
    // The message of the last line may get another part.
    assert_eq!(counted(&lines[..2]), [false, false]);
}

#[test]
fn a_growing_session_keeps_its_ids_parents_and_tokens() {
    let text = include_str!(
        "../../fixtures/tools-and-branches/input/-home-mara-bakery/5e551000-0000-4000-8000-000000000001.jsonl"
    );
    let whole = outline(text);
    let lines: Vec<&str> = text.lines().collect();
    for count in 1..lines.len() {
        let part = outline(&lines[..count].join("\n"));
        for (at, node) in part.nodes.iter().enumerate() {
            assert_eq!((&node.id, part.parent(at)), (&whole.nodes[at].id, whole.parent(at)));
            assert!(!node.last_part || whole.nodes[at].last_part, "{}", node.id);
        }
    }
}

#[test]
fn the_last_message_of_a_subagent_is_current() {
    let line = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"isSidechain":true,"message":{{"content":"x"}}}}"#
        )
    };
    let outline = outline(&[line("a", "null"), line("b", "\"a\"")].join("\n"));
    assert_eq!(outline.current(), Some("b"));
}

#[test]
fn equal_lines_without_an_id_are_read_in_time() {
    let outline = outline(&vec![r#"{"type":"user","message":{"content":"x"}}"#; 60_000].join("\n"));
    assert_eq!(outline.nodes.len(), 60_000);
    assert!(outline.nodes[59_999].id.ends_with(":60000"));
}

#[test]
fn typed_texts_are_kept_if_the_model_got_them_and_no_line_has_them() {
    let queued = |operation: &str, text: &str| {
        format!(
            r#"{{"type":"queue-operation","operation":"{operation}","content":"{text}","sessionId":"s"}}"#
        )
    };
    let lines = [
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"content":"hi"}}"#.to_owned(),
        queued("enqueue", "handed over"),
        queued("enqueue", "sent as a line"),
        r#"{"type":"queue-operation","operation":"remove","sessionId":"s"}"#.to_owned(),
        queued("enqueue", "taken back"),
        r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"content":[{"type":"text","text":"sent as a line"}]}}"#.to_owned(),
    ];
    let outline = outline(&lines.join("\n"));
    let places: Vec<bool> = (0..6).map(|at| matches!(outline.place(at), Place::Message(_))).collect();
    assert_eq!(places, [true, true, false, false, false, true]);
    assert_eq!(outline.left_out["queue-operation"], 3);
}

#[test]
fn lines_without_an_id_follow_the_one_before() {
    let outline = outline(&[r#"{"type":"user","message":{"content":"again"}}"#; 2].join("\n"));
    let parents = parents(&outline);
    assert!(parents[1].0.starts_with(parents[0].0) && parents[1].0.ends_with(":2"), "{parents:?}");
    assert_eq!((parents[0].1, parents[1].1), (None, Some(parents[0].0)));
}

#[test]
fn repeated_ids_and_cycles_are_found() {
    let line = |uuid: &str, parent: &str| {
        format!(r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","message":{{}}}}"#)
    };
    let outline = outline(&[line("a", "b"), line("b", "a"), line("a", "b")].join("\n"));
    assert_eq!(outline.cycles, ["a"]);
    assert_eq!(parents(&outline), [("a", None), ("b", Some("a"))]);
    assert_eq!(outline.place(2), Place::Repeated);
}

#[test]
fn a_summary_is_the_title_only_of_its_own_session() {
    let summary = |leaf: &str| format!(r#"{{"type":"summary","summary":"Bees","leafUuid":"{leaf}"}}"#);
    let line = r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"content":"hi"}}"#;
    assert_eq!(outline(&[summary("a").as_str(), line].join("\n")).title.as_deref(), Some("Bees"));
    assert_eq!(outline(&[summary("other").as_str(), line].join("\n")).title.as_deref(), Some("hi"));
}
