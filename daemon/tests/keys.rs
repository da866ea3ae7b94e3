//! An encrypted data directory, used through the program: none of it is readable on the disk, whatever was done and
//! wherever it was interrupted.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use home::{TestHome, code, stderr};
use serde_json::Value;

const PLANTED: &str = "planted-Quince-7731";
const PASSPHRASE: &str = "correct horse battery";
const KILLS: u32 = 10;

/// Returns an export of this many conversations, each with the planted words in its title and texts.
fn planted_export(home: &TestHome, name: &str, conversations: usize) -> String {
    let node = |id: &str, parent: &str, child: &str, number: usize, role: &str| {
        let text = format!("{PLANTED} {number} {id} and {}", "honey ".repeat(60));
        format!(
            r#""{id}": {{"id": "{id}", "parent": {parent}, "children": [{child}], "message": {{
            "id": "{name}-{number}-{id}", "author": {{"role": "{role}"}}, "create_time": 1746180000,
            "content": {{"content_type": "text", "parts": ["{text}"]}}, "metadata": {{}}, "recipient": "all"}}}}"#
        )
    };
    let conversation = |number: usize| {
        format!(
            r#"{{"title": "About {PLANTED} {number}", "create_time": 1746180000, "conversation_id": "{name}-{number}",
            "current_node": "a", "mapping": {{{}, {}}}}}"#,
            node("q", "null", r#""a""#, number, "user"),
            node("a", r#""q""#, "", number, "assistant"),
        )
    };
    let all: Vec<String> = (0..conversations).map(conversation).collect();
    home.file(&format!("{name}/conversations.json"), format!("[{}]", all.join(",")));
    home.path().join(name).to_str().unwrap().to_owned()
}

fn data(home: &TestHome) -> PathBuf {
    home.path().join(".local/share/satchel")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the files below a folder that contain the planted words.
fn readable(dir: &Path) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
    };
    files(dir).into_iter().filter(holds).collect()
}

fn none() -> Vec<PathBuf> {
    Vec::new()
}

fn ok(output: &Output) -> String {
    assert_eq!(code(output), Some(0), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn titles(output: &Output) -> Vec<String> {
    let listed: Value = serde_json::from_str(&ok(output)).unwrap();
    let mut titles: Vec<String> = listed["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["title"].as_str().unwrap().to_owned())
        .collect();
    titles.sort();
    titles
}

fn list(home: &TestHome) -> Vec<String> {
    titles(&home.run(&["conversations", "list", "--json", "--limit", "500"]))
}

/// Returns the program, with the passphrase in its environment.
fn with_passphrase(home: &TestHome, words: &[&str]) -> Command {
    let mut command = home.command(words);
    command.env("SATCHEL_DATA_PASSPHRASE", PASSPHRASE);
    command
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn an_encrypted_store_works_and_nothing_in_it_is_readable() {
    let home = TestHome::new();
    let key = home.path().join("data.key").to_str().unwrap().to_owned();
    let printed = ok(&home.run(&["keys", "encrypt", "--key-file", &key]));
    assert!(printed.contains("recovery phrase, shown only once"), "{printed}");
    let export = planted_export(&home, "export", 40);
    ok(&home.run(&["import", &export]));
    assert_eq!(list(&home).len(), 40);
    let found = ok(&home.run(&["conversations", "list", "--title", PLANTED]));
    assert!(found.contains(PLANTED), "{found}");
    let bundle = home.path().join("bundle.zip").to_str().unwrap().to_owned();
    ok(&home.run(&["export", "--output", &bundle]));
    ok(&home.run(&["verify", &bundle]));
    let backup = home.path().join("backup.zip").to_str().unwrap().to_owned();
    ok(&home.run(&["backup", &backup]));
    ok(&home.run(&["doctor"]));
    ok(&home.run(&["rebuild"]));
    assert_eq!(list(&home).len(), 40);
    assert_eq!(readable(&data(&home)), none());
    assert!(!fs::read(&backup).unwrap().windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes()));
    // Only somebody with the key can restore the backup.
    let restored = home.path().join("restored").to_str().unwrap().to_owned();
    ok(&home.run(&["restore", "--data-dir", &restored, &backup]));
    let there = home.run(&["conversations", "list", "--json", "--limit", "500", "--data-dir", &restored]);
    assert_eq!(titles(&there), list(&home));
    assert_eq!(readable(Path::new(&restored)), none());
    fs::remove_file(&key).unwrap();
    let refused = home.run(&["restore", "--data-dir", &format!("{restored}-2"), &backup]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("the key file"), "{}", stderr(&refused));
}

#[test]
fn a_killed_import_leaves_nothing_readable() {
    let home = TestHome::new();
    let key = home.path().join("data.key").to_str().unwrap().to_owned();
    ok(&home.run(&["keys", "encrypt", "--key-file", &key]));
    let export = planted_export(&home, "export", 1_500);
    let mut child =
        home.command(&["import", &export]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    // In the middle: the journal has data, and the import has not ended.
    let journal = data(&home).join("journal/00000001.seg");
    while fs::metadata(&journal).map_or(0, |about| about.len()) < 20_000
        && child.try_wait().unwrap().is_none()
    {
        assert!(begun.elapsed() < home::LONG, "the import does not write");
        std::thread::park_timeout(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(readable(&data(&home)), none());
    ok(&home.run(&["import", &export]));
    assert_eq!(list(&home).len(), 500);
    assert_eq!(readable(&data(&home)), none());
}

#[test]
fn an_existing_store_is_encrypted_and_a_wrong_passphrase_changes_nothing() {
    let home = TestHome::new();
    let export = planted_export(&home, "export", 40);
    ok(&home.run(&["import", &export]));
    let before = list(&home);
    assert!(!readable(&data(&home)).is_empty(), "what is plain is found");
    let none_given = home.run(&["keys", "encrypt", "--passphrase"]);
    assert_eq!(code(&none_given), Some(4));
    assert!(stderr(&none_given).contains("SATCHEL_DATA_PASSPHRASE"), "{}", stderr(&none_given));
    let output = with_passphrase(&home, &["keys", "encrypt", "--passphrase", "--json"]).output().unwrap();
    let printed: Value = serde_json::from_str(&ok(&output)).unwrap();
    let phrase = printed["recovery_phrase"].as_str().unwrap().to_owned();
    assert_eq!(phrase.split(' ').count(), 12);
    assert_eq!(readable(&data(&home)), none());
    let status: Value = serde_json::from_str(&ok(&home.run(&["keys", "status", "--json"]))).unwrap();
    assert_eq!(status["encrypted"], true);
    assert_eq!(status["opened_by"][0], "passphrase");
    let bytes = || -> Vec<(PathBuf, Vec<u8>)> {
        // The lock file names the process that tried to open the store.
        let files = files(&data(&home)).into_iter().filter(|path| !path.ends_with("store.lock"));
        files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let sealed = bytes();
    for words in [&["conversations", "list"] as &[&str], &["rebuild"], &["status"]] {
        let wrong = home.command(words).env("SATCHEL_DATA_PASSPHRASE", "another one").output().unwrap();
        assert_eq!(code(&wrong), Some(4), "{words:?}");
        assert!(stderr(&wrong).contains("the passphrase does not open"), "{}", stderr(&wrong));
        assert!(stderr(&wrong).contains("keys change --recovery"), "{}", stderr(&wrong));
    }
    let wrong = home.command(&["doctor"]).env("SATCHEL_DATA_PASSPHRASE", "another one").output().unwrap();
    assert_eq!(code(&wrong), Some(1));
    let now = bytes();
    let changed: Vec<_> = now.iter().filter(|file| !sealed.contains(file)).map(|file| &file.0).collect();
    assert!(now == sealed, "a wrong passphrase changed something: {changed:?}");
    let after =
        with_passphrase(&home, &["conversations", "list", "--json", "--limit", "500"]).output().unwrap();
    assert_eq!(titles(&after), before);
    // A file with the passphrase opens the data, and so does the phrase if the passphrase is lost.
    let file = home.file("passphrase", PASSPHRASE);
    let open = home.run(&["status", "--data-passphrase-file", &file]);
    assert!(stderr(&open).contains("others may read"), "{}", stderr(&open));
    let words = ["keys", "change", "--recovery", "--key-file", &format!("{}/new.key", home.path().display())];
    let mut child = home.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), phrase.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(list(&home), before);
}

#[test]
fn an_encryption_that_is_killed_at_any_moment_is_completed() {
    let home = TestHome::new();
    let export = planted_export(&home, "export", 300);
    ok(&home.run(&["import", &export]));
    let before = list(&home);
    let key = home.path().join("data.key").to_str().unwrap().to_owned();
    let words = |dir: &str| ["keys", "encrypt", "--key-file", &key, "--data-dir", dir].map(str::to_owned);
    let run = |dir: &str| home.command(&words(dir).each_ref().map(String::as_str)).output().unwrap();
    // The duration of an uninterrupted encryption.
    let whole = home.path().join("whole");
    copy(&data(&home), &whole);
    let begun = Instant::now();
    ok(&run(whole.to_str().unwrap()));
    let usual = begun.elapsed();
    let mut halfway = 0;
    for round in 0..KILLS {
        let dir = home.path().join(format!("killed-{round}"));
        copy(&data(&home), &dir);
        let dir = dir.to_str().unwrap();
        let mut child = home.command(&words(dir).each_ref().map(String::as_str));
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let encrypting = Path::new(dir).join("encrypting");
        if round == 0 {
            // However fast it is, this kill meets it.
            while !encrypting.exists() && child.try_wait().unwrap().is_none() {
                std::thread::park_timeout(Duration::from_millis(1));
            }
        } else {
            std::thread::park_timeout(usual * (round + 1) / (KILLS + 1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        halfway += u32::from(encrypting.exists());
        // Whatever state the kill left, every conversation is listed. If the plain files were about to be removed,
        // they are gone afterwards.
        let listed = home.run(&["conversations", "list", "--json", "--limit", "500", "--data-dir", dir]);
        assert_eq!(titles(&listed), before, "round {round}");
        let again = run(dir);
        let already = code(&again) == Some(4) && stderr(&again).contains("already encrypted");
        assert!(code(&again) == Some(0) || already, "round {round}: {}", stderr(&again));
        assert_eq!(readable(Path::new(dir)), none(), "round {round}");
        assert!(!Path::new(dir).join("encrypting").exists(), "round {round}");
        let listed = home.run(&["conversations", "list", "--json", "--limit", "500", "--data-dir", dir]);
        assert_eq!(titles(&listed), before, "round {round}");
        ok(&home.run(&["doctor", "--data-dir", dir]));
    }
    assert!(halfway > 0, "no kill met an encryption; the test showed nothing");
}

#[test]
fn secrets_stay_out_of_the_log_of_a_daemon() {
    let home = TestHome::new();
    let export = planted_export(&home, "export", 20);
    ok(&with_passphrase(&home, &["keys", "encrypt", "--passphrase"]).output().unwrap());
    let log = home.path().join("satchel.log").to_str().unwrap().to_owned();
    let mut daemon =
        with_passphrase(&home, &["serve", "-vv", "--log-file", &log]).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !data(&home).join("satchel.sock").exists() {
        assert!(begun.elapsed() < home::LONG, "the daemon does not answer");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    // A client of the daemon needs no key.
    ok(&home.run(&["import", &export]));
    assert_eq!(list(&home).len(), 20);
    let refused = with_passphrase(&home, &["keys", "encrypt", "--passphrase"]).output().unwrap();
    assert!(stderr(&refused).contains("already encrypted"), "{}", stderr(&refused));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let logged = fs::read_to_string(&log).unwrap();
    assert!(!logged.contains(PASSPHRASE) && !logged.contains(PLANTED), "{logged}");
    assert!(!logged.is_empty());
    assert_eq!(readable(&data(&home)), none());
}
