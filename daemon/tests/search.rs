//! `satchel search` as it is typed, with and without a daemon, and what it leaves on the disk.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{fs, path::Path};

use home::{TestHome, code, stderr};
use serde_json::Value;

/// Two conversations; the second has the word in its title only, and the first a long beginning.
fn home() -> TestHome {
    let home = TestHome::new();
    let node = |id: &str, parent: Option<&str>, child: Option<&str>, role: &str, text: &str| {
        serde_json::json!({"id": id, "parent": parent, "children": child.into_iter().collect::<Vec<_>>(), "message": {
            "id": id, "author": {"role": role}, "create_time": 1_746_180_000, "recipient": "all", "metadata": {},
            "content": {"content_type": "text", "parts": [text]}}})
    };
    let chats = serde_json::json!([
        {"title": "Winter", "create_time": 1_746_180_000, "conversation_id": "winter", "current_node": "e", "mapping": {
            "a": node("a", None, Some("b"), "user", "Good morning"),
            "b": node("b", Some("a"), Some("c"), "assistant", "Good morning, Ana"),
            "c": node("c", Some("b"), Some("d"), "user", "What do hornets eat?"),
            "d": node("d", Some("c"), Some("e"), "assistant", "Insects, such as flies."),
            "e": node("e", Some("d"), None, "user", "Do bees sleep in the winter?"),
        }},
        {"title": "Bees in the city", "create_time": 1_746_180_100, "conversation_id": "city", "current_node": "f",
            "mapping": {"f": node("f", None, None, "user", "Where may I put a hive?")}},
    ]);
    home.file("chat/conversations.json", chats.to_string());
    home
}

fn run(home: &TestHome, words: &[&str]) -> String {
    let output = home.run(words);
    assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn json(home: &TestHome, words: &[&str]) -> Value {
    serde_json::from_str(&run(home, &[words, &["--json"]].concat())).unwrap()
}

fn import(home: &TestHome) {
    run(home, &["import", home.path().join("chat").to_str().unwrap()]);
}

#[test]
fn a_hit_is_opened_with_the_command_that_is_printed() {
    let home = home();
    import(&home);
    let shown = run(&home, &["search", "bees", "winter"]);
    assert!(shown.contains("Winter") && shown.contains("Do bees sleep in the winter?"), "{shown}");
    let open = shown.lines().find_map(|line| line.trim().strip_prefix("satchel ")).unwrap();
    let opened = run(&home, &open.split(' ').collect::<Vec<_>>());
    assert!(opened.contains("▼") && opened.contains("Do bees sleep"), "{opened}");
    // From two messages before it.
    assert!(opened.contains("What do hornets eat?") && !opened.contains("Good morning"), "{opened}");
    assert!(opened.contains("2 messages before"), "{opened}");
}

#[test]
fn json_has_the_documented_keys() {
    let home = home();
    import(&home);
    let found = json(&home, &["search", "bee"]);
    assert_eq!((&found["total"], &found["more"]), (&2.into(), &false.into()), "{found}");
    assert!(found["revision"].as_u64().unwrap() > 0, "{found}");
    let hits = found["hits"].as_array().unwrap();
    let kinds: Vec<&str> = hits.iter().map(|hit| hit["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"message") && kinds.contains(&"title"), "{found}");
    let message = hits.iter().find(|hit| hit["kind"] == "message").unwrap();
    for (key, value) in [("platform", "chatgpt"), ("role", "user"), ("title", "Winter")] {
        assert_eq!(message[key], value, "{message}");
    }
    assert!(message["date"].as_str().unwrap().starts_with("2025-05-02T"), "{message}");
    assert!(message["snippet"].as_str().unwrap().contains("bees"), "{message}");
    for key in ["id", "conversation_id", "score"] {
        assert!(!message[key].is_null(), "{key}: {message}");
    }
    let titles = json(&home, &["search", "bees", "--in", "titles"]);
    assert_eq!(titles["hits"].as_array().unwrap().len(), 1, "{titles}");
    let first = json(&home, &["search", "platform:chatgpt", "--every", "--limit", "3"]);
    assert_eq!((first["hits"].as_array().unwrap().len(), &first["more"]), (3, &true.into()), "{first}");
}

#[test]
fn a_wrong_query_shows_the_place_and_a_typo_what_is_meant() {
    let home = home();
    import(&home);
    let wrong = home.run(&["search", "bees role:boss"]);
    assert_eq!(code(&wrong), Some(2), "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("         ^^^^"), "{}", stderr(&wrong));
    let typo = home.run(&["search", "hornats"]);
    assert_eq!(code(&typo), Some(0));
    assert!(stderr(&typo).contains("did you mean: satchel search hornets"), "{}", stderr(&typo));
    let excluded = json(&home, &["search", "bees -winter"]);
    assert_eq!(excluded["total"], 1, "{excluded}");
}

/// What is readable in the files of a plain index. Its words are not, as they are packed.
const IN_INDEX: [&str; 2] = ["exact_platform", "chatgpt"];

/// The files of the data directory that have a text, in any case.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap().to_ascii_lowercase();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn an_encrypted_data_directory_is_searched_without_a_plain_word_on_the_disk() {
    let home = home();
    import(&home);
    assert_eq!(json(&home, &["search", "hornets"])["strict_total"], 1);
    let data = home.path().join(".local/share/satchel");
    // The files of a plain index name its fields and the platforms.
    let index = data.join("search");
    for word in IN_INDEX {
        assert!(!files_with(&index, word).is_empty(), "{word}");
    }
    let key = home.path().join("data.key");
    run(&home, &["keys", "encrypt", "--key-file", key.to_str().unwrap()]);
    assert!(!index.exists(), "the plain index was erased");
    assert_eq!(json(&home, &["search", "hornets"])["strict_total"], 1);
    assert!(fs::read_dir(&index).unwrap().count() > 3, "there is an index");
    for word in IN_INDEX.iter().chain(&["hornet", "insects"]) {
        assert!(files_with(&data, word).is_empty(), "{word}: {:?}", files_with(&data, word));
    }
    // The next command opens it.
    assert_eq!(json(&home, &["search", "flies"])["strict_total"], 1);
}
