//! Tests the program as a shell starts it: its exit codes, what it prints where, and what happens if nobody reads
//! the output.

#![expect(clippy::unwrap_used, reason = "tests")]

mod edits;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use home::{LONG, TestHome, code, ended, large_export, stderr};

fn sample() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export");
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_input_that_is_not_a_bundle_is_rejected_with_a_hint() {
    let home = TestHome::new();
    let folder = home.path().join("empty");
    fs::create_dir(&folder).unwrap();
    let cases = [
        (home.file("letter.pdf", "%PDF-1.7"), "\"letter.pdf\" is no PAM document"),
        (home.file("conversations.json", "[]"), "\"conversations.json\" is no PAM document"),
        (home.file("notes.json", "{\"schema\": \"notes\"}"), "\"notes.json\" is no PAM document"),
        (home.file("empty.zip", [&b"PK\x05\x06"[..], &[0; 18]].concat()), "there is no file in it"),
        (folder.to_str().unwrap().to_owned(), "there is no file in it"),
        (sample(), "it holds no memory-store.json but \""),
    ];
    for (path, seen) in cases {
        let output = home.run(&["verify", &path]);
        let printed = stderr(&output);
        assert_eq!((code(&output), output.stdout.len()), (Some(4), 0), "{path}: {printed}");
        assert!(
            printed.contains(&format!("{path:?} is not a PAM bundle")) && printed.contains(seen),
            "{printed}"
        );
        assert!(printed.contains("  hint: pass a folder or ZIP written by `satchel export`"), "{printed}");
    }
}

#[test]
fn a_damaged_memory_store_is_an_invalid_bundle() {
    let home = TestHome::new();
    for (name, content) in
        [("memory-store.json", "{\"schema\""), ("renamed.json", "{\"schema\": \"portable-ai-memory\", \"mem")]
    {
        let output = home.run(&["verify", &home.file(name, content)]);
        assert_eq!(code(&output), Some(1), "{name}: {}", stderr(&output));
    }
}

/// The threads of sled log too. If one panicked because stderr is closed, a thread that waits for its write would wait
/// for ever.
#[test]
fn an_import_continues_if_stderr_is_closed() {
    let home = TestHome::new();
    let mut command = home.command(&["-vv", "import", &sample()]);
    command.env("SATCHEL_LOG", "warn,satchel=debug,sled=debug");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 64];
    let mut log = child.stderr.take().unwrap();
    log.read_exact(&mut some).unwrap();
    drop(log);
    let status = ended(&mut child);
    let mut receipt = String::new();
    child.stdout.take().unwrap().read_to_string(&mut receipt).unwrap();
    assert!(status.success() && receipt.contains("completed"), "{status}: {receipt}");
    let listed = home.run(&["memories", "list", "--json"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("\"content\""));
}

#[test]
fn imports_continue_if_stdout_is_closed() {
    let home = TestHome::new();
    let claude = sample().replace("chatgpt-export", "claude-export");
    let nothing = home.file("holiday.txt", "sun");
    let mut command = home.command(&["import", &sample(), &claude, &nothing]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(ended(&mut child).code(), Some(3), "the file that no importer knows");
    let listed = home.run(&["imports", "list", "--json"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("\"id\"").count(), 3, "{listed}");
}

#[test]
fn a_command_survives_the_end_of_the_command_that_hosts_its_daemon() {
    let home = TestHome::new();
    let large = large_export(&home, 4_000);
    let start =
        |words: &[&str]| home.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = start(&["import", &sample()]);
    let socket = home.path().join(".local/share/satchel/satchel.sock");
    let begun = Instant::now();
    while !socket.exists() && begun.elapsed() < LONG {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let others = [start(&["import", &large]), start(&["status"]), start(&["memories", "list"])];
    assert!(ended(&mut first).success());
    for other in others {
        let output = other.wait_with_output().unwrap();
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    }
    let status = home.run(&["status", "--json"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("\"total\": 4002"), "{status}");
}

/// Returns every file and folder below `folder` that other users may read, write or enter.
fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;

    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.permissions().mode() & 0o077 != 0 {
            found.push(path.clone());
        }
        if metadata.is_dir() {
            found.extend(open_to_others(&path));
        }
    }
    found
}

#[test]
fn stored_files_are_not_accessible_to_others() {
    let home = TestHome::new();
    let data = home.path().join("data");
    let out = home.path().join("out");
    let data_dir = data.to_str().unwrap();
    for words in [&["import", &sample()][..], &["export", "--output", out.to_str().unwrap()]] {
        let output = home.run(&[&["--data-dir", data_dir], words].concat());
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    }
    assert_eq!(open_to_others(&data), Vec::<PathBuf>::new());
}

#[test]
fn an_export_can_be_written_in_the_format_of_memu() {
    let home = TestHome::new();
    let memory = home.file("memory.json", r#"{"profile": ["Keeps two goats"], "event": ["Sold cheese"]}"#);
    assert_eq!(code(&home.run(&["import", &memory])), Some(0));
    let out = home.path().join("view");
    let output = home.run(&["export", "--format", "memu", "--json", "--output", out.to_str().unwrap()]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(r#""format": "memu""#) && printed.contains(r#""checksum": null"#), "{printed}");
    let written = fs::read_to_string(out.join("memories.json")).unwrap();
    assert!(written.contains("Keeps two goats") && written.contains("Sold cheese"), "{written}");
    let refused = home.run(&["export", "--format", "memu", "--attachments", "--output", "elsewhere"]);
    assert_eq!(code(&refused), Some(2), "{}", stderr(&refused));
    assert_eq!(code(&home.run(&["export", "--format", "word", "--output", "elsewhere"])), Some(2));
}

#[test]
fn only_commands_that_need_importers_load_them() {
    let home = TestHome::new();
    let (caches, cache) = (home.path().join("caches"), home.path().join("caches/satchel/importers"));
    // Not the cache that all tests share.
    let run = |words: &[&str]| home.command(words).env("XDG_CACHE_HOME", &caches).output().unwrap();
    let out = home.path().join("out.zip");
    for words in [
        &["memories", "add", "Keeps bees"][..],
        &["status"],
        &["memories", "list"],
        &["conversations", "list"],
        &["imports", "list"],
        &["export", "--output", out.to_str().unwrap()],
        &["import", out.to_str().unwrap()],
    ] {
        let output = run(words);
        assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
        assert!(!cache.exists(), "{words:?} loads importers");
    }
    // Compiling them may take longer than a call, but not longer than an import.
    assert_eq!(code(&run(&["import", &sample()])), Some(0));
    assert!(cache.exists());
}
