//! The sample exports beside the repository: every record is emitted or skipped, checked with another parser.

use satchel_importer::{
    pam::{conversation::Role, record::MessageRecord},
    testkit::{Sample, conversations, skips},
};
use satchel_plugin_gemini::Gemini;

fn sample(name: &str) -> Option<Sample> {
    Sample::read::<Gemini>(env!("CARGO_MANIFEST_DIR"), name)
}

fn json(message: &MessageRecord) -> String {
    serde_json::to_string(&message.content).expect("it is JSON")
}

#[test]
fn every_sample_file_is_claimed() {
    let Some(sample) = sample("gemini") else { return };
    let claimed: Vec<&String> = sample.exports.iter().flat_map(|export| &export.detection.files).collect();
    assert_eq!(claimed, sample.files());
}

#[test]
fn every_chunk_of_ai_studio_is_a_message() {
    let Some(sample) = sample("gemini") else { return };
    let lines = sample.lines();
    for file in sample.files().into_iter().filter(|file| file.contains("aistudio")) {
        let value = sample.json(file);
        let chunks = value["chunkedPrompt"]["chunks"].as_array().expect("it has chunks");
        let all = conversations(&lines);
        let record = all.iter().find(|record| record.locator.starts_with(file)).expect("it is imported");
        assert_eq!(record.messages.len(), chunks.len(), "{file}");
        for (chunk, message) in chunks.iter().zip(&record.messages) {
            assert_eq!(chunk["role"] == "user", message.role == Role::User, "{file}");
            let text = chunk["text"].as_str().filter(|text| !text.is_empty());
            if let Some(text) = text {
                let quoted = serde_json::to_string(text).expect("it is JSON");
                assert!(json(message).contains(quoted.trim_matches('"')), "{file}: {text}");
            }
        }
    }
}

#[test]
fn rows_of_activity_are_prompts_and_answers() {
    for (name, file) in [
        ("gemini", "MyActivity.safeHtmlItem.json"),
        ("authored/gemini", "Takeout/My Activity/Gemini Apps/MyActivity.json"),
    ] {
        let Some(sample) = sample(name) else { return };
        let (rows, lines) = (sample.json(file), sample.lines());
        let messages: Vec<_> = conversations(&lines)
            .into_iter()
            .filter(|record| record.locator.contains(file))
            .flat_map(|record| &record.messages)
            .collect();
        for row in rows.as_array().expect("it is a list") {
            let header = row["header"].as_str().unwrap_or_default();
            let title = row["title"].as_str().unwrap_or_default();
            if header == "Search" {
                assert!(!messages.iter().any(|message| json(message).contains(title)), "{title}");
                continue;
            }
            let prompt = title
                .trim_start_matches("Prompted ")
                .trim_start_matches("Asked Bard: ")
                .trim_start_matches("Eingegebener Prompt: ");
            let prompt = prompt.split(" Attached ").next().unwrap_or_default();
            let found = messages.iter().any(|message| {
                let raw = serde_json::to_string(&message.raw_metadata).expect("it is JSON");
                json(message).contains(prompt) || raw.contains(prompt)
            });
            assert!(found || !skips(&lines).is_empty(), "{title}");
        }
        let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
        let answered = rows
            .as_array()
            .expect("it is a list")
            .iter()
            .filter(|row| row["header"] != "Search" && row["safeHtmlItem"].is_array());
        assert_eq!(answers, answered.count(), "{name}");
    }
}

#[test]
fn secrets_of_the_samples_are_not_emitted() {
    let Some(sample) = sample("gemini") else { return };
    let text = serde_json::to_string(&sample.lines()).expect("it is JSON");
    for secret in [
        "SESSION_TOKEN",
        "AUTHORIZATION_VALUE",
        "EMBEDDED_SCRIPT",
        "EMBEDDED_STYLE",
        "GEMINI_ACCOUNT@",
        "NON_GEMINI",
    ] {
        assert!(!text.contains(secret), "{secret}");
    }
}
