//! `memories review` as a person uses it.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::process::{Command, Stdio};

use home::{TestHome, code, stderr};
use satchel_core::edits::{Agent, AgentDraft, Draft, EditContext};
use satchel_pam::memory::ExtractionMethod;
use satchel_tests::test_core::TestCore;
use serde_json::Value;

/// A text and a name that would act on a terminal: they clear the screen, set the title, and reorder the line.
const HOSTILE: &str = "Likes \u{1b}[2Jtea\u{1b}]0;owned\u{7} \u{202e}gnp.exe";
const HOSTILE_NAME: &str = "bot\u{1b}[31m";

/// Creates a data directory in which agents have written memories; returns their ids.
fn home_with(memories: &[(&str, &str)]) -> (TestHome, Vec<String>) {
    let home = TestHome::new();
    let core = TestCore::open(&home.path().join(".local/share/satchel")).unwrap();
    let edits = core.imports.edits();
    let write = |(device, content): &(&str, &str)| {
        let agent = Agent {
            device: format!("id-{}", device.len()),
            device_name: (*device).to_owned(),
            entity: (*device).to_owned(),
            platform: "helper".to_owned(),
        };
        let draft = AgentDraft {
            draft: Draft {
                content: Some((*content).to_owned()),
                summary: Some(Some("A harmless summary".to_owned())),
                ..Draft::default()
            },
            confidence: Some(0.5),
            conversation: None,
            message: None,
            method: ExtractionMethod::LlmInference,
        };
        let reason = format!("heard it \u{1b}[1A from {device}");
        let call = EditContext { actor: format!("device:{device}"), reason, request: None };
        edits.quarantine_memory(&call, &agent, &draft).unwrap().memories[0].clone()
    };
    let ids = memories.iter().map(write).collect();
    core.close().unwrap();
    (home, ids)
}

fn ok(home: &TestHome, words: &[&str]) -> String {
    let output = home.run(words);
    assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn json(home: &TestHome, words: &[&str]) -> Value {
    serde_json::from_str(&ok(home, &[words, &["--json"]].concat())).unwrap()
}

fn contents(list: &Value) -> Vec<&str> {
    list["memories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["memory"]["content"].as_str().unwrap())
        .collect()
}

#[test]
fn memories_are_listed_approved_and_rejected_by_id() {
    let (home, ids) = home_with(&[("bot", "Likes tea"), ("bot", "Likes coffee"), ("other", "Rows")]);
    let status = ok(&home, &["status"]);
    assert!(status.contains("3 memories written by agents"), "{status}");
    assert_eq!(json(&home, &["status"])["quarantined_memories"], 3);
    // Without a terminal, nothing is asked.
    let listed = ok(&home, &["memories", "review"]);
    assert!(listed.contains("Likes tea") && listed.contains("other"), "{listed}");
    assert!(!listed.contains("harmless"), "a summary stands for the content: {listed}");
    let listed = json(&home, &["memories", "review"]);
    let entry = &listed["memories"][0];
    assert_eq!((entry["device"].as_str(), entry["state"].as_str()), (Some("other"), Some("waiting")));
    assert_eq!(entry["memory"]["provenance"]["platform"], "helper");
    assert_eq!(listed["memories"].as_array().unwrap().len(), 3);

    let settled = ["memories", "review", "--approve", &ids[0], "--reject", &ids[1][..13], "--reason", "no"];
    let settled = json(&home, &settled);
    assert_eq!(settled["reviewed"][0]["state"], "approved");
    assert_eq!(settled["reviewed"][0]["memory_id"], ids[0].as_str());
    assert_eq!(settled["reviewed"][1]["state"], "rejected");
    let token = settled["undo_tokens"][0].as_str().unwrap();
    assert_eq!(contents(&json(&home, &["memories", "review", "--list"])), ["Rows"]);
    assert_eq!(contents(&json(&home, &["memories", "review", "--rejected"])), ["Likes coffee"]);
    let memories = json(&home, &["memories", "list"]);
    assert_eq!(memories["memories"].as_array().unwrap().len(), 1);
    let history = ok(&home, &["memories", "history", &ids[0]]);
    assert!(history.contains("device:bot") && history.contains("approved by owner: no"), "{history}");
    ok(&home, &["memories", "undo", "--change", token]);
    assert_eq!(json(&home, &["memories", "list"])["memories"].as_array().unwrap().len(), 0);
    // A rejected memory can be approved after all.
    ok(&home, &["memories", "review", "--approve", &ids[1]]);
    let refused = home.run(&["memories", "review", "--reject", &ids[1]]);
    assert_eq!(code(&refused), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("approved before"), "{}", stderr(&refused));
    let unknown = home.run(&["memories", "review", "--approve", "ffff"]);
    assert_eq!(code(&unknown), Some(4), "{}", stderr(&unknown));
}

#[test]
fn all_are_settled_only_after_a_confirmation() {
    let (home, _) = home_with(&[("bot", "Likes tea"), ("bot", "Likes coffee"), ("other", "Rows")]);
    let refused = home.run(&["memories", "review", "--approve-all"]);
    assert_eq!(code(&refused), Some(2));
    assert!(stderr(&refused).contains("--yes"), "{}", stderr(&refused));
    let both = home.run(&["memories", "review", "--approve-all", "--reject-all", "--yes"]);
    assert_eq!(code(&both), Some(2));
    ok(&home, &["memories", "list"]);
    assert_eq!(json(&home, &["memories", "review"])["memories"].as_array().unwrap().len(), 3);
    let approved = ok(&home, &["memories", "review", "--approve-all", "--yes"]);
    assert_eq!(approved.matches("approved").count(), 3, "{approved}");
    assert_eq!(json(&home, &["memories", "list"])["memories"].as_array().unwrap().len(), 3);
    let none = home.run(&["memories", "review", "--reject-all", "--yes"]);
    assert_eq!((code(&none), none.stdout.len()), (Some(0), 0), "{}", stderr(&none));
    assert!(stderr(&none).contains("no memory waits"), "{}", stderr(&none));
    assert!(!ok(&home, &["status"]).contains("to review"));
}

/// Answers the questions of the program on a terminal of its own.
fn answer_at_terminal(home: &TestHome, words: &[&str], answers: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_satchel"), quoted.join(" "));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]);
    home.set_environment(&mut script);
    script.env("PATH", "/usr/bin:/bin").env("PAGER", "").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = script.spawn().unwrap();
    std::io::Write::write_all(running.stdin.as_mut().unwrap(), answers.as_bytes()).unwrap();
    String::from_utf8_lossy(&running.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn at_a_terminal_one_memory_after_the_other_is_settled() {
    let (home, ids) = home_with(&[("bot", "Likes tea"), ("bot", "Likes coffee"), ("other", "Rows")]);
    let shown = answer_at_terminal(&home, &["memories", "review"], "a\nwhat\nr\nq\n");
    assert!(shown.contains("1 of 3") && shown.contains("2 of 3") && shown.contains("3 of 3"), "{shown}");
    assert_eq!(shown.matches("2 of 3").count(), 2, "an unknown answer is asked for again: {shown}");
    assert_eq!(contents(&json(&home, &["memories", "review"])), ["Rows"]);
    let shown = json(&home, &["memories", "show", &ids[0]]);
    assert_eq!(shown["memory"]["content"], "Likes tea");
    assert_eq!(contents(&json(&home, &["memories", "review", "--rejected"])), ["Likes coffee"]);
}

#[test]
fn what_an_agent_wrote_does_not_act_on_the_terminal() {
    let (home, ids) = home_with(&[(HOSTILE_NAME, HOSTILE)]);
    let outputs = [
        ok(&home, &["memories", "review"]),
        ok(&home, &["memories", "review", "--json"]),
        ok(&home, &["memories", "review", "--reject", &ids[0]]),
        ok(&home, &["memories", "review", "--rejected"]),
        ok(&home, &["memories", "review", "--approve", &ids[0]]),
        ok(&home, &["memories", "history", &ids[0]]),
    ];
    for output in outputs {
        assert!(output.contains("tea") && !output.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{output:?}");
    }
    let (home, _) = home_with(&[(HOSTILE_NAME, HOSTILE)]);
    let shown = answer_at_terminal(&home, &["memories", "review"], "s\n");
    assert!(shown.contains("1 of 1"), "{shown:?}");
    for hostile in ["\u{1b}[2J", "\u{1b}]0;", "\u{1b}[1A", "\u{7}", "\u{202e}"] {
        assert!(!shown.contains(hostile), "{hostile:?} reaches the terminal: {shown:?}");
    }
}
