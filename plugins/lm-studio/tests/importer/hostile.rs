//! Broken input: however it is cut or changed, the importer neither panics nor emits inconsistent records.

use std::time::{Duration, Instant};

use satchel_importer::{
    Bundle, Importer as _, Line, Sink, broken_file_tests,
    pam::record::RecordKind,
    testkit::{
        BrokenFiles, FixtureFile, Unclaimed, conversations, messages, produce, run_file, skips, skips_of,
        text, warnings,
    },
};
use satchel_plugin_lm_studio::LmStudio;

const NAME: &str = "1767700000000.conversation.json";
const FORMAT: &str = "lm-studio-importer/2024.08";

/// The chats of all fixtures.
fn files() -> BrokenFiles {
    let chosen = |file: &FixtureFile| !conversations(&read_as(&file.name, &file.bytes)).is_empty();
    BrokenFiles::new(env!("CARGO_MANIFEST_DIR"), chosen, read_as)
}

fn read_as(name: &str, bytes: &[u8]) -> Vec<Line> {
    run_file::<LmStudio>(FORMAT, name, bytes).checked_lines(Unclaimed::ReadOrRefused)
}

/// Reads a chat with these messages.
fn read(messages: &[String]) -> Vec<Line> {
    let chat = format!(
        r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"clientInput":"","messages":[{}]}}"#,
        messages.join(",")
    );
    read_as(NAME, chat.as_bytes())
}

fn prompt(text: &str) -> String {
    format!(
        r#"{{"versions":[{{"type":"singleStep","role":"user","content":[{{"type":"text","text":"{text}"}}]}}],"currentlySelected":0}}"#
    )
}

fn answer(steps: &str) -> String {
    format!(
        r#"{{"versions":[{{"type":"multiStep","role":"assistant","steps":[{steps}]}}],"currentlySelected":0}}"#
    )
}

fn step(id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"contentBlock","stepIdentifier":"{id}","content":[{{"type":"text","text":"{text}"}}]}}"#
    )
}

broken_file_tests! { importer: LmStudio, format: FORMAT, files: files() }

#[test]
fn a_file_cut_at_random_is_reported() {
    files().cut_at_random(|cut| {
        assert!(cut.lines.is_empty() || cut.has_reports() || cut.misses_nothing(), "{cut:?}");
    });
}

#[test]
fn one_broken_message_costs_only_itself() {
    for broken in ["7", "null", "[]", "{}", r#""text""#, r#"{"versions":{}}"#, r#"{"versions":[[]]}"#] {
        let lines = read(&[prompt("Before."), broken.to_owned(), prompt("Behind.")]);
        assert_eq!(messages(&lines).len(), 2, "{broken}");
        assert_eq!(skips_of(&lines, RecordKind::Message), 1, "{broken}");
    }
}

#[test]
fn one_broken_step_or_part_costs_only_itself() {
    let deep = format!(r#"{{"type":"contentBlock","content":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for broken in ["7", r#""x""#, "[]"] {
        let steps = [step("a", "One."), broken.to_owned(), step("b", "Two.")].join(",");
        let lines = read(&[answer(&steps)]);
        assert_eq!((messages(&lines).len(), skips(&lines).len()), (2, 1), "{broken}");
        let parts = format!(
            r#"{{"type":"contentBlock","stepIdentifier":"a","content":[{{"type":"text","text":"One."}},{},{{"type":"text","text":"Two."}}]}}"#,
            if broken.starts_with('"') { "[7]" } else { broken }
        );
        let lines = read(&[answer(&parts)]);
        assert_eq!((messages(&lines).len(), skips(&lines).len()), (1, 1), "{broken}");
    }
    let lines = read(&[prompt("Before."), answer(&deep), prompt("Behind.")]);
    assert_eq!(messages(&lines).len(), 2);
    assert_eq!(skips_of(&lines, RecordKind::Message), 1);
}

#[test]
fn repeated_ids_are_told_apart() {
    let lines =
        read(&[answer(&[step("a", "One."), step("a", "Two.")].join(",")), answer(&step("a", "Three."))]);
    let ids: Vec<&str> = messages(&lines).iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["a", "a~2", "a~3"]);
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("same id")));
}

#[test]
fn ids_that_look_like_those_of_parts_are_not_used() {
    for id in ["a:1", "a#2", "a~2", &"x".repeat(300)] {
        let lines = read(&[answer(&step(id, "One."))]);
        assert_eq!(messages(&lines).len(), 1);
        assert!(messages(&lines)[0].id.starts_with("natural:"), "{id}");
        assert_eq!(messages(&lines)[0].provider_message_id, None);
    }
}

#[test]
fn files_are_looked_for_in_one_folder_only() {
    let part = r#"{"type":"file","fileIdentifier":"../conversations/secret.json","fileType":"image"}"#;
    let message = format!(
        r#"{{"versions":[{{"type":"singleStep","role":"user","content":[{part}]}}],"currentlySelected":0}}"#
    );
    let chat = format!(r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"messages":[{message}]}}"#);
    let files =
        [(format!("conversations/{NAME}"), chat), ("conversations/secret.json".to_owned(), "{}".to_owned())];
    let produced = produce::<LmStudio>(&Bundle::from_files(files)).expect("detection answers");
    let lines: Vec<Line> = produced.exports.into_iter().flat_map(|export| export.lines).collect();
    let file = &messages(&lines)[0].attachments[0];
    assert!(file.source.is_none() && file.attachment.provider_id.is_some());
    assert_eq!(warnings(&lines).len(), 1);
}

#[test]
fn a_field_that_is_too_long_is_reported() {
    let long = "x".repeat(1024 * 1024 + 1);
    let chat = format!(
        r#"{{"name":"T","createdAt":1767700000000,"clientInput":"{long}","messages":[{}]}}"#,
        prompt("Hello.")
    );
    let lines = read_as(NAME, chat.as_bytes());
    assert_eq!(messages(&lines).len(), 1);
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("clientInput")));
}

#[test]
fn the_last_field_is_reported_too_if_it_is_too_long() {
    let many = (0..30).map(|at| format!(r#""field{at}":{at},"#)).collect::<Vec<_>>().concat();
    for length in [1024 * 1024 + 1, 17 * 1024 * 1024] {
        let long = "x".repeat(length);
        for end in ["", r#","pinned":true"#] {
            let chat = format!(
                r#"{{"name":"T","createdAt":1767700000000,{many}"messages":[{}],"looseFiles":["{long}"]{end}}}"#,
                prompt("Hello.")
            );
            let lines = read_as(NAME, chat.as_bytes());
            let warnings = warnings(&lines);
            let named = |message: &str| message.contains("looseFiles");
            let found = warnings.iter().filter(|warning| named(&warning.message)).count();
            assert_eq!(found, 1, "{length} {end}");
        }
    }
}

#[test]
fn fields_without_end_are_not_held_in_memory() {
    let long = "x".repeat(1000 * 1000);
    let large = (0..20).map(|at| format!(r#""large{at}":"{long}","#)).collect::<Vec<_>>().concat();
    let small = (0..5000).map(|at| format!(r#""small{at}":{at},"#)).collect::<Vec<_>>().concat();
    let chat = format!(
        r#"{{"createdAt":1767700000000,"tokenCount":1,"messages":[{}],{large}{small}"name":"T"}}"#,
        prompt("Hello.")
    );
    let lines = read_as(NAME, chat.as_bytes());
    let metadata = conversations(&lines)[0].raw_metadata.as_ref().map_or(0, |json| json.as_str().len());
    assert!((1000..5_000_000).contains(&metadata), "{metadata}");
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("more fields")));
}

#[test]
fn a_file_that_is_named_many_times_is_read_once() {
    let part = r#"{"type":"file","fileIdentifier":"a.png","fileType":"image"}"#;
    let parts = vec![part; 500].join(",");
    let entry = format!(
        r#"{{"versions":[{{"type":"singleStep","role":"user","content":[{parts}]}}],"currentlySelected":0}}"#
    );
    let chat = format!(r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"messages":[{entry}]}}"#);
    let preview = "x".repeat(1024 * 1024);
    for (original, name) in [("sea.png".to_owned(), "sea.png"), ("s".repeat(100_000), "a.png")] {
        let description = format!(r#"{{"originalName":"{original}","preview":{{"data":"{preview}"}}}}"#);
        let bundle = Bundle::from_files([
            (format!("conversations/{NAME}"), chat.clone()),
            ("user-files/a.png".to_owned(), "x".to_owned()),
            ("user-files/a.png.metadata.json".to_owned(), description),
        ]);
        let mut sink = Sink::collecting();
        let summary = LmStudio::run(FORMAT, &bundle, &mut sink).expect("the chat is read");
        assert!(summary.bytes < 4 * 1024 * 1024, "{} bytes", summary.bytes);
        let lines = sink.into_lines();
        let files = &messages(&lines)[0].attachments;
        assert!(files.len() == 500 && files.iter().all(|file| file.attachment.name.as_deref() == Some(name)));
    }
}

#[test]
fn everything_behind_a_chat_is_reported() {
    let chat =
        format!(r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"messages":[{}]}}"#, prompt("One."));
    let lines = read_as(NAME, vec![chat; 100].join("\n").as_bytes());
    assert_eq!(skips(&lines).iter().filter(|skip| skip.reason.contains("only one chat")).count(), 99);
}

#[test]
fn what_stands_behind_a_chat_is_reported() {
    let chat =
        format!(r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"messages":[{}]}}"#, prompt("One."));
    let lines = read_as(NAME, format!("{chat}\n{chat}").as_bytes());
    assert_eq!(conversations(&lines).len(), 1);
    assert!(!skips(&lines).is_empty());
}

#[test]
fn a_list_of_chats_is_left_alone_and_costs_no_other_chat() {
    let chat =
        format!(r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"messages":[{}]}}"#, prompt("One."));
    for list in [format!("[{chat}]"), format!("\u{feff} [{chat},{chat}]")] {
        let files =
            [("conversations/1.json".to_owned(), list), (format!("conversations/{NAME}"), chat.clone())];
        let produced = produce::<LmStudio>(&Bundle::from_files(files)).expect("detection answers");
        assert_eq!(produced.exports[0].detection.files, [format!("conversations/{NAME}")]);
        assert_eq!(conversations(&produced.exports[0].lines).len(), 1);
    }
}

#[test]
fn many_messages_versions_steps_and_parts_are_read_in_time() {
    let parts: Vec<String> = (0..40_000).map(|_| r#"{"type":"text","text":"x"}"#.to_owned()).collect();
    let block = format!(r#"{{"type":"contentBlock","stepIdentifier":"p","content":[{}]}}"#, parts.join(","));
    let calls: Vec<String> =
        (0..20_000).map(|_| r#"{"type":"toolCallRequest","name":"ls"}"#.to_owned()).collect();
    let called = format!(r#"{{"type":"contentBlock","stepIdentifier":"c","content":[{}]}}"#, calls.join(","));
    let version = r#"{"type":"singleStep","role":"user","content":[{"type":"text","text":"same"}]}"#;
    let versions = vec![version; 20_000].join(",");
    let mut all = vec![
        answer(&block),
        answer(&called),
        format!(r#"{{"versions":[{versions}],"currentlySelected":0}}"#),
    ];
    all.extend((0..20_000).map(|_| prompt("same")));
    all.extend((0..20_000).map(|_| answer(&step("one", "x"))));
    let begun = Instant::now();
    let lines = read(&all);
    assert_eq!(messages(&lines).len(), 1 + 20_000 + 20_000 + 40_000);
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

/// One entry within the limit of bytes, which would become far more than a guest has.
#[test]
fn what_one_message_becomes_is_bounded_and_reported() {
    let list = |item: &str, count: usize| vec![item; count].join(",");
    let step = |part: &str| format!(r#"{{"type":"contentBlock","content":[{}]}}"#, list(part, 40_000));
    let call = step(r#"{"type":"toolCallRequest"}"#);
    let version = format!(r#"{{"type":"multiStep","role":"assistant","steps":[{}]}}"#, list("{}", 40_000));
    for (entry, most) in [
        (answer(&list(&step("7"), 20)), 1),
        (answer(&list(&step(r#""x""#), 10)), 2),
        (answer(&list(&call, 3)), 25_000),
        (format!(r#"{{"versions":[{}],"currentlySelected":0}}"#, list(&version, 20)), 20),
        (format!(r#"{{"versions":[{}],"currentlySelected":0}}"#, list("{}", 40_000)), 25_000),
    ] {
        let lines = read(&[prompt("Before."), entry, prompt("Behind.")]);
        let found = messages(&lines).len();
        assert!((3..=most + 2).contains(&found), "{found} messages instead of {most}");
        let skips = skips(&lines);
        assert!((1..=1001).contains(&skips.len()), "{} skips", skips.len());
        assert!(skips.iter().any(|skip| skip.reason.contains("more parts of it")));
        assert!(lines.iter().map(|line| format!("{line:?}").len()).sum::<usize>() < 64 * 1024 * 1024);
    }
}

#[test]
fn many_unknown_types_are_reported_once_and_that_there_are_more() {
    let steps: Vec<String> = (0..200).map(|at| format!(r#"{{"type":"new{at}","text":"x"}}"#)).collect();
    let lines = read(&[answer(&steps.join(",")), answer(&steps.join(","))]);
    let warnings = warnings(&lines);
    assert_eq!(warnings.len(), 65);
    assert!(warnings[64].message.contains("more kinds"));
}

#[test]
fn an_unknown_field_of_a_part_that_shows_nothing_is_reported() {
    let part = r#"{"type":"file","sizeBytes":7,"remark":"The tide comes in at noon, so mind the boats."}"#;
    let lines = read(&[format!(
        r#"{{"versions":[{{"type":"singleStep","role":"user","content":[{part}]}}],"currentlySelected":0}}"#
    )]);
    assert!(warnings(&lines).iter().any(|warning| warning.message.contains("\"remark\"")));
    let metadata = messages(&lines)[0].raw_metadata.as_ref().expect("there is some").to_map();
    assert_eq!(metadata["parts"][0]["sizeBytes"], 7);
}

#[test]
fn a_field_of_a_chat_is_not_replaced_by_its_folder() {
    let chat = format!(
        r#"{{"name":"T","createdAt":1767700000000,"tokenCount":1,"folder":"Sea","messages":[{}]}}"#,
        prompt("One.")
    );
    let lines = read_as(&format!("Ice/{NAME}"), chat.as_bytes());
    let metadata = conversations(&lines)[0].raw_metadata.as_ref().expect("there is some").to_map();
    assert_eq!(metadata["folder"], "Sea");
}

#[test]
fn an_object_in_the_place_of_a_list_is_its_only_item() {
    let version =
        |body: &str| format!(r#"{{"versions":[{{"role":"assistant",{body}}}],"currentlySelected":0}}"#);
    for body in [
        format!(r#""steps":{}"#, step("a", "One.")),
        r#""type":"singleStep","content":{"type":"text","text":"One."}"#.to_owned(),
    ] {
        let lines = read(&[version(&body)]);
        assert_eq!(text(messages(&lines)[0]), "One.");
    }
    let lines = read(&[version(r#""steps":7"#)]);
    assert_eq!(skips_of(&lines, RecordKind::Message), 1);
}

#[test]
fn chats_of_other_programs_are_left_alone() {
    for other in [
        "",
        "[]",
        "{}",
        r#"{"name":"T","messages":[]}"#,
        r#"{"name":"T","createdAt":1,"messages":[{"role":"user","content":"Hello."}]}"#,
        r#"{"versions":[{"role":"user","content":[]}],"currentlySelected":0}"#,
        r#"{"messages":[{"versions":[{"content":"1.0"}],"currentlySelected":0}]}"#,
        r#"{"name":"T","pinned":true,"notes":[],"plugins":[],"messages":[]}"#,
    ] {
        let bundle = Bundle::from_files([(NAME, other)]);
        assert!(LmStudio::detect(&bundle).expect("detection answers").is_empty(), "{other}");
        assert!(LmStudio::run(FORMAT, &bundle, &mut Sink::collecting()).is_err(), "{other}");
    }
}

#[test]
fn large_files_of_others_are_left_after_a_few_bytes() {
    let long = "x".repeat(4 * 1024 * 1024);
    for other in [
        format!(r#"{{"mapping":{{"a":"{long}"}},"id":"1","title":"T"}}"#),
        format!(r#"{{"id":"1","title":"T","model":"m","text":"{long}"}}"#),
        format!(r#"[{{"title":"{long}"}}]"#),
    ] {
        let bundle = Bundle::from_files([("conversations.json", other)]);
        assert!(LmStudio::detect(&bundle).expect("detection answers").is_empty());
    }
    let own =
        format!(r#"{{"name":"T","systemPrompt":"{long}","tokenCount":1,"messages":[{}]}}"#, prompt("Hello."));
    assert_eq!(LmStudio::detect(&Bundle::from_files([(NAME, own)])).expect("detection answers").len(), 1);
}

#[test]
fn what_the_model_was_given_costs_no_version_if_it_cannot_be_compared() {
    let many: Vec<String> = (0..50_001).map(|at| at.to_string()).collect();
    let entry = format!(
        r#"{{"versions":[{{"type":"singleStep","role":"user","content":[{{"type":"text","text":"Hello."}}],"preprocessed":{{"role":"user","content":[{}]}}}}],"currentlySelected":0}}"#,
        many.join(",")
    );
    let lines = read(&[entry]);
    assert_eq!((messages(&lines).len(), skips(&lines).len()), (1, 0));
}
