//! Tests encrypted exports as they are typed: what opens them, what does not, and the messages.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest")]
mod home;

use std::process::{Output, Stdio};

use age::{secrecy::ExposeSecret as _, x25519::Identity};
use home::{TestHome, code, stderr};

const PASSPHRASE: &str = "correct horse battery";

/// Returns a home with some stored data, an identity in `key.txt` and another in `other.txt`.
fn stored_home() -> (TestHome, String) {
    let home = TestHome::new();
    home.file(
        "chat/conversations.json",
        r#"[{"title": "bees", "create_time": 1746180000, "conversation_id": "1", "current_node": "q", "mapping": {"q": {
        "id": "q", "parent": null, "children": [], "message": {"id": "m", "author": {"role": "user"}, "create_time": 1746180000,
        "recipient": "all", "metadata": {}, "content": {"content_type": "text", "parts": ["how many hives?"]}}}}}]"#,
    );
    let [own, other] = [Identity::generate(), Identity::generate()];
    for (name, identity) in [("key.txt", &own), ("other.txt", &other)] {
        home.file(name, format!("# made for a test\n{}\n", identity.to_string().expose_secret()));
    }
    assert_eq!(code(&home.run(&["import", &at(&home, "chat")])), Some(0));
    let recipient = own.to_public().to_string();
    (home, recipient)
}

fn at(home: &TestHome, name: &str) -> String {
    home.path().join(name).to_str().unwrap().to_owned()
}

fn with_passphrase(home: &TestHome, words: &[&str], passphrase: &str) -> Output {
    home.command(words).env("SATCHEL_PASSPHRASE", passphrase).stdin(Stdio::null()).output().unwrap()
}

fn assert_fails_like(output: &Output, other: &Output, expected: &[&str]) {
    assert_eq!(code(output), code(other), "{}", stderr(output));
    assert_ne!(code(output), Some(0));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output));
    for part in expected {
        // Lines may be broken between any two words.
        let flat: Vec<&str> = text.split_whitespace().collect();
        assert!(flat.join(" ").contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("SECRET-KEY") && !text.contains("horse"), "{text}");
}

#[test]
fn an_export_for_a_recipient_needs_the_identity() {
    let (home, recipient) = stored_home();
    let [out, key, other] = ["out.zip.age", "key.txt", "other.txt"].map(|name| at(&home, name));
    let made = home.run(&["export", "--output", &out, "--encrypt-to", &recipient]);
    assert_eq!(code(&made), Some(0), "{}", stderr(&made));
    assert_eq!(code(&home.run(&["verify", &out, "--identity", &key])), Some(0));
    for command in ["verify", "apply", "import"] {
        let unreadable = home.run(&[command, &home.file("no.zip", "PK\u{3}\u{4}")]);
        assert_fails_like(&home.run(&[command, &out]), &unreadable, &["out.zip.age", "--identity FILE"]);
        let wrong = home.run(&[command, &out, "--identity", &other]);
        assert_fails_like(&wrong, &unreadable, &["out.zip.age", "none of the identities given opens it"]);
        // An unrelated passphrase in the environment does not change the message.
        let wrong = with_passphrase(&home, &[command, &out, "--identity", &other], PASSPHRASE);
        assert_fails_like(&wrong, &unreadable, &["none of the identities given opens it"]);
        let none = home.run(&[command, &out, "--identity", &at(&home, "chat/conversations.json")]);
        assert_ne!(code(&none), Some(0));
        assert!(stderr(&none).contains("no age identity"), "{}", stderr(&none));
    }
    for command in ["apply", "import"] {
        let done = home.run(&[command, &out, "--identity", &key]);
        assert_eq!(code(&done), Some(0), "{command}: {}", stderr(&done));
    }
}

#[test]
fn an_export_with_a_passphrase_needs_the_passphrase() {
    let (home, _) = stored_home();
    let [out, right, wrong] = [
        at(&home, "out.zip.age"),
        home.file("right.txt", format!("{PASSPHRASE}\nand what is no part of it\n")),
        home.file("wrong.txt", "something else\n"),
    ];
    let made = with_passphrase(&home, &["export", "--output", &out, "--passphrase"], PASSPHRASE);
    assert_eq!(code(&made), Some(0), "{}", stderr(&made));
    let unreadable = home.run(&["verify", &home.file("no.zip", "PK\u{3}\u{4}")]);
    assert_fails_like(&home.run(&["verify", &out]), &unreadable, &["out.zip.age", "--passphrase-file FILE"]);
    let refused = home.run(&["verify", &out, "--passphrase-file", &wrong]);
    assert_fails_like(&refused, &unreadable, &["out.zip.age", "the passphrase is not the one", "try again"]);
    assert_eq!(code(&home.run(&["verify", &out, "--passphrase-file", &right])), Some(0));
    assert_eq!(code(&with_passphrase(&home, &["verify", &out], PASSPHRASE)), Some(0));
    assert_eq!(code(&home.run(&["apply", &out, "--passphrase-file", &right])), Some(0));
}

#[test]
fn invalid_encryption_options_are_usage_errors() {
    let (home, recipient) = stored_home();
    let [out, short] = [at(&home, "out.zip.age"), home.file("short.txt", "hunter2\n")];
    for words in [
        // A passphrase is not an argument.
        &["--passphrase=hunter2hunter2"][..],
        &["--passphrase-file", &short],
        // There is no terminal to ask at.
        &["--passphrase"],
        &["--encrypt-to", "age1nobody"],
        &["--encrypt-to", &recipient, "--passphrase"],
        &[],
    ] {
        let output = home.run(&[&["export", "--output", &out], words].concat());
        assert_eq!(code(&output), Some(2), "{words:?}: {}", stderr(&output));
    }
    let plain = home.run(&["export", "--output", &at(&home, "out.zip"), "--encrypt-to", &recipient]);
    assert_eq!(code(&plain), Some(2), "{}", stderr(&plain));
    assert!(!home.path().join("out.zip.age").exists() && !home.path().join("out.zip").exists());
}
