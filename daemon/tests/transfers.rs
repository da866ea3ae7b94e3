//! Sending exports to a daemon on another machine, and fetching bundles and attachments from it, as a person does it. Each home
//! directory stands for a machine.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
mod paired;

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use home::{TestHome, code, stderr};
use paired::{Listening, fails, json, ok};
use serde_json::Value;
use zip::{ZipWriter, write::SimpleFileOptions};

/// A ChatGPT export with one conversation, in which a picture was uploaded.
const PICTURE: &str = r#"[{"title": "Hive", "conversation_id": "hive", "create_time": 1746180000, "current_node": "a", "mapping": {
  "q": {"id": "q", "parent": null, "children": ["a"], "message": {"id": "q", "author": {"role": "user"}, "create_time": 1746180000,
    "content": {"content_type": "multimodal_text", "parts": [
      {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Hive1", "size_bytes": 9},
      "What is wrong with this frame?"]},
    "metadata": {"attachments": [{"id": "file-Hive1", "name": "../frame.png", "size": 9, "mime_type": "image/png"},
      {"id": "file-Lost2", "name": "notes.pdf", "size": 5, "mime_type": "application/pdf"}]}, "recipient": "all"}},
  "a": {"id": "a", "parent": "q", "children": [], "message": {"id": "a", "author": {"role": "assistant"}, "create_time": 1746180001,
    "content": {"content_type": "text", "parts": ["Chalkbrood."]}, "metadata": {}, "recipient": "all"}}
}}]"#;
const BYTES: &[u8] = b"\x89PNG hive";

fn demo(export: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(export)
}

/// Writes a ZIP of an export of the demo.
fn zip(export: &str, path: &Path) {
    let mut zip = ZipWriter::new(File::create(path).unwrap());
    for entry in fs::read_dir(demo(export)).unwrap() {
        let entry = entry.unwrap();
        zip.start_file(entry.file_name().to_str().unwrap(), SimpleFileOptions::default()).unwrap();
        zip.write_all(&fs::read(entry.path()).unwrap()).unwrap();
    }
    zip.finish().unwrap();
}

fn path(home: &TestHome, name: &str) -> String {
    home.path().join(name).to_str().unwrap().to_owned()
}

/// Imports at the paired daemon, and returns the status of each import.
fn import(home: &TestHome, path: &str) -> Vec<String> {
    statuses(&json(home, &["--server", "desk", "import", path]))
}

fn statuses(imports: &Value) -> Vec<String> {
    let imports = imports["imports"].as_array().unwrap();
    imports.iter().map(|import| import["status"].as_str().unwrap().to_owned()).collect()
}

/// Returns the ids of all memories and conversations.
fn ids(home: &TestHome, options: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for list in ["memories", "conversations"] {
        let listed = json(home, &[options, &[list, "list", "--all"]].concat());
        ids.extend(listed[list].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
    }
    ids.sort();
    ids
}

#[test]
fn files_and_folders_are_imported_as_on_the_machine_itself() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    zip("chatgpt-export", &other.path().join("chatgpt.zip"));
    let zipped = path(&other, "chatgpt.zip");
    let local = TestHome::new();
    assert_eq!(import(&other, &zipped), statuses(&json(&local, &["import", &zipped])));
    assert_eq!(import(&other, &zipped), ["unchanged"]);
    let shown = ok(&other, &["--server", "desk", "imports", "show", "--last"]);
    assert!(shown.contains("chatgpt.zip"), "the receipt names the file: {shown}");
    let folder = demo("claude-export");
    let folder = folder.to_str().unwrap();
    assert_eq!(import(&other, folder), statuses(&json(&local, &["import", folder])));
    assert_eq!(import(&other, folder), ["unchanged"]);
    assert_eq!(ids(&local, &[]), ids(&desk.home, &[]));
    // What was sent does not stay on either machine.
    let left = fs::read_dir(desk.home.path().join(".local/share/satchel/uploads"));
    assert!(left.map_or(0, Iterator::count) == 0);
    desk.stop();
}

#[test]
fn a_folder_of_archives_is_imported_whole() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    let folder = other.path().join("Downloads/exports");
    fs::create_dir_all(&folder).unwrap();
    zip("chatgpt-export", &folder.join("chatgpt.zip"));
    zip("claude-export", &folder.join("claude.zip"));
    std::os::unix::fs::symlink("/etc/hostname", folder.join("link")).unwrap();
    let output = other.run(&["--server", "desk", "import", folder.to_str().unwrap(), "--json"]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("link"), "what is not sent is told: {}", stderr(&output));
    let imports: Value = serde_json::from_slice(&output.stdout).unwrap();
    let local = TestHome::new();
    let there = json(&local, &["import", folder.to_str().unwrap()]);
    let platforms = |imports: &Value| {
        let imports = imports["imports"].as_array().unwrap();
        imports
            .iter()
            .map(|import| (import["provider"].clone(), import["status"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(platforms(&imports), platforms(&there));
    assert_eq!(ids(&local, &[]), ids(&desk.home, &[]));
    desk.stop();
}

#[test]
fn what_cannot_be_imported_is_told_and_costs_nothing_else() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    let strange = other.file("strange.bin", b"neither of these");
    let output = other.run(&["--server", "desk", "import", &strange]);
    assert_eq!(code(&output), Some(3), "{}", stderr(&output));
    let missing = fails(&other, &["--server", "desk", "import", "/nobody/export.zip"]);
    assert!(missing.contains("/nobody/export.zip"), "{missing}");
    let reader = desk.pair(&["--as", "tablet", "--role", "reader"]);
    let refused = fails(&reader, &["--server", "desk", "import", &strange]);
    assert!(refused.contains("permission"), "{refused}");
    let refused = fails(&reader, &["--server", "desk", "export", "--output", &path(&reader, "a.zip")]);
    assert!(refused.contains("permission"), "{refused}");
    ok(&desk.home, &["devices", "revoke", "laptop"]);
    let refused = fails(&other, &["--server", "desk", "import", &strange]);
    assert!(refused.contains("revoked"), "{refused}");
    desk.stop();
}

#[test]
fn bundles_are_fetched_verified_and_applied() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    ok(&other, &["--server", "desk", "import", demo("chatgpt-export").to_str().unwrap()]);
    let full = path(&other, "full.zip");
    let export = json(&other, &["--server", "desk", "export", "--output", &full]);
    assert_eq!(export["path"], full.as_str());
    ok(&other, &["--server", "desk", "memories", "add", "Keeps bees"]);
    let changes = path(&other, "changes.zip");
    ok(&other, &["--server", "desk", "export", "--incremental", "--output", &changes]);
    // With the keys of the daemon, and without any.
    for options in [&["--server", "desk"][..], &[]] {
        let verdict = json(&other, &[options, &["verify", &changes, "--base", &full]].concat());
        assert_eq!((&verdict["valid"], &verdict["signature"]), (&true.into(), &"valid".into()), "{verdict}");
    }
    let encrypted = path(&other, "full.zip.age");
    let mut command = other.command(&["--server", "desk", "export", "--passphrase", "--output", &encrypted]);
    let output = command.env("SATCHEL_PASSPHRASE", "correct horse battery staple").output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let mut command = other.command(&["verify", &encrypted, "--passphrase"]);
    let output = command.env("SATCHEL_PASSPHRASE", "correct horse battery staple").output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    // Nothing is written over, and the name says what the file is.
    assert!(fails(&other, &["--server", "desk", "export", "--output", &full]).contains("exists"));
    let folder = path(&other, "folder");
    assert!(fails(&other, &["--server", "desk", "export", "--output", &folder]).contains(".zip"));
    // Another daemon merges the bundle, which was signed by a key that it does not know.
    let second = Listening::start();
    let code = second.code(&["--as", "laptop"]);
    ok(&other, &["pair", &code, "--address", &second.address, "--as", "second"]);
    ok(&other, &["--server", "second", "apply", "--any-owner", &full]);
    ok(&other, &["--server", "second", "apply", "--any-owner", &changes]);
    assert_eq!(ids(&second.home, &[]), ids(&desk.home, &[]));
    second.stop();
    desk.stop();
}

#[test]
fn attachments_are_saved_under_safe_names() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    other.file("export/conversations.json", PICTURE);
    other.file("export/file-Hive1-frame.png", BYTES);
    ok(&other, &["--server", "desk", "import", &path(&other, "export")]);
    let listed = json(&other, &["--server", "desk", "attachments", "list", "--last"]);
    let attachments = listed["attachments"].as_array().unwrap();
    let stored: Vec<_> =
        attachments.iter().map(|one| (one["name"].as_str(), one["stored"] == true)).collect();
    assert!(stored.contains(&(Some("notes.pdf"), false)), "{stored:?}");
    let id = listed["conversation_id"].as_str().unwrap();
    let folder = path(&other, "pictures");
    let save = ["--server", "desk", "attachments", "save", id, &folder];
    let output = other.run(&save);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("notes.pdf is not stored"), "{}", stderr(&output));
    let picture = Path::new(&folder).join("frame.png");
    assert_eq!(fs::read(&picture).unwrap(), BYTES);
    // Once more: nothing is written. Another file of this name stays.
    assert_eq!(json(&other, &save)["saved"][0]["existed"], true);
    fs::write(&picture, "mine").unwrap();
    let saved = json(&other, &[&save[..], &["--only", "../frame.png"]].concat());
    assert_eq!(saved["saved"][0]["path"], Path::new(&folder).join("frame (2).png").to_str().unwrap());
    assert_eq!(fs::read(&picture).unwrap(), b"mine");
    assert!(fails(&other, &[&save[..], &["--only", "nothing"]].concat()).contains("attachments list"));
    // The same on the machine of the daemon.
    let local = path(&desk.home, "pictures");
    ok(&desk.home, &["attachments", "save", id, &local]);
    assert_eq!(fs::read(Path::new(&local).join("frame.png")).unwrap(), BYTES);
    let inside = path(&desk.home, ".local/share/satchel/pictures");
    assert!(fails(&desk.home, &["attachments", "save", id, &inside]).contains("data directory"));
    desk.stop();
}
