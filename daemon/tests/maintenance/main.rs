//! Tests the maintenance commands for a data directory: `backup`, `restore`, `rebuild` and `doctor`, with a daemon
//! and without.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

mod loss;
mod repair;

/// Timeout. Nothing that these tests start takes a tenth of it, on any machine.
const LONG: Duration = Duration::from_mins(2);

pub(crate) struct TestHome(pub(crate) tempfile::TempDir);

impl TestHome {
    /// Returns a home with the sample exports imported.
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        assert_eq!(home.run(&["import", sample.to_str().unwrap()]).status.code(), Some(0));
        home
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_satchel"));
        command.args(words).env_clear().env("HOME", self.0.path()).stdin(Stdio::null());
        // The compiled importers are shared by all tests of a user: compiling them would take most of the time of
        // each test.
        let cache = format!("satchel-test-cache-{}", rustix::process::geteuid().as_raw());
        let cache = std::env::temp_dir().join(cache);
        command.env("XDG_CACHE_HOME", cache.join("cache")).env("XDG_STATE_HOME", cache.join("state"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.0.path().join(".local/share/satchel")
    }

    /// Starts a daemon and waits until it answers.
    fn daemon(&self) -> Daemon {
        let child = self.command(&["serve"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let daemon = Daemon(child);
        let begun = Instant::now();
        while !self.data().join("satchel.sock").exists() {
            assert!(begun.elapsed() < LONG, "the daemon does not answer");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        daemon
    }

    /// Returns all files below a folder of the data directory, sorted by path.
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.data().join(folder)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    }
}

/// A daemon that is killed when the test ends.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        let printed = String::from_utf8_lossy(&output.stderr);
        Value::String(format!("{error}: {printed}"))
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_running_daemon_can_be_backed_up_and_checked() {
    let home = TestHome::new();
    let daemon = home.daemon();
    let backup = json(&home.run(&["backup", "--json", &home.path("b.zip")]));
    assert!(
        backup["revision"].as_u64() > Some(0) && backup["left_out"] == Value::Array(Vec::new()),
        "{backup}"
    );
    let checked = home.run(&["doctor", "--json"]);
    let printed = json(&checked);
    assert_eq!((checked.status.code(), &printed["healthy"]), (Some(0), &Value::Bool(true)), "{printed}");
    assert!(printed["checked"].to_string().contains("frames"), "{printed}");
    let occupied = home.run(&["backup", &home.path("b.zip")]);
    assert_eq!(occupied.status.code(), Some(4), "{}", stderr(&occupied));
    let pid = daemon.0.id().to_string();
    for words in [&["rebuild"][..], &["restore", "--replace", &home.path("b.zip")]] {
        let refused = home.run(words);
        assert_eq!(refused.status.code(), Some(4), "{words:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(&pid), "{words:?}: {}", stderr(&refused));
    }
    assert_eq!(home.run(&["doctor", "--repair"]).status.code(), Some(4));
}

#[test]
fn a_backup_can_be_restored_elsewhere() {
    let home = TestHome::new();
    let written = json(&home.run(&["backup", "--json", &home.path("b.zip")]));
    let other = home.path("other");
    let restored = json(&home.run(&["--data-dir", &other, "restore", "--json", &home.path("b.zip")]));
    assert_eq!((&restored["digest"], &restored["revision"]), (&written["digest"], &written["revision"]));
    for list in [["memories", "list", "--json"], ["conversations", "list", "--json"]] {
        let (mut here, mut there) =
            (json(&home.run(&list)), json(&home.run(&[&["--data-dir", other.as_str()], &list[..]].concat())));
        // The history of the restored store diverges from here on, so its revisions must not be compared with those
        // of the original.
        assert_ne!(here["store_id"].take(), there["store_id"].take(), "{list:?}");
        assert!(here[list[0]].as_array().is_some_and(|rows| rows.len() > 1) && here == there, "{list:?}");
    }
    let refused = home.run(&["--data-dir", &other, "restore", &home.path("b.zip")]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(stderr(&refused).contains("--replace"), "{}", stderr(&refused));
    let replaced = home.run(&["--data-dir", &other, "restore", "--replace", &home.path("b.zip")]);
    assert_eq!(replaced.status.code(), Some(0), "{}", stderr(&replaced));
    assert!(Path::new(&format!("{other}.replaced-1")).is_dir());
}

#[test]
fn a_rebuild_restores_the_same_state_and_reports_its_speed() {
    let home = TestHome::new();
    let before = home.run(&["conversations", "list", "--json"]).stdout;
    let rebuilt = json(&home.run(&["rebuild", "--json"]));
    assert!(rebuilt["bytes_per_second"].as_u64() > Some(0), "{rebuilt}");
    assert!(home.data().join("db.broken-1").is_dir());
    assert_eq!(home.run(&["conversations", "list", "--json"]).stdout, before);
    let nothing = home.run(&["--data-dir", &home.path("nowhere"), "rebuild"]);
    assert_eq!(nothing.status.code(), Some(4));
    assert!(!Path::new(&home.path("nowhere")).exists());
}

#[test]
fn doctor_reports_what_it_found_and_repaired() {
    let home = TestHome::new();
    let doctor = || {
        let output = home.run(&["doctor", "--json"]);
        (output.status.code(), json(&output))
    };
    let (code, printed) = doctor();
    assert_eq!((code, printed["repaired"].to_string().as_str()), (Some(0), "[]"), "{printed}");
    // The database: repaired, and reported.
    let largest = home.files("db").into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    flip(&largest, 5_000);
    fs::create_dir_all(home.data().join("blobs/tmp")).unwrap();
    fs::write(home.data().join("blobs/tmp/9-9"), "half").unwrap();
    let (code, printed) = doctor();
    let repaired = printed["repaired"].to_string();
    assert_eq!(code, Some(0), "{printed}");
    assert!(repaired.contains("rebuilt") && repaired.contains("1 unfinished file"), "{printed}");
    // An attachment: first changed, then missing.
    let blob = home.files("blobs").remove(0);
    let bytes = fs::read(&blob).unwrap();
    flip(&blob, 3);
    let (code, printed) = doctor();
    assert_eq!(
        (code, printed["problems"][0]["reason"].as_str()),
        (Some(1), Some("FILE_DAMAGED")),
        "{printed}"
    );
    fs::remove_file(&blob).unwrap();
    let (code, printed) = doctor();
    assert_eq!(
        (code, printed["problems"][0]["reason"].as_str()),
        (Some(1), Some("FILE_MISSING")),
        "{printed}"
    );
    fs::write(&blob, bytes).unwrap();
    // The journal: reported, and no backup is made of it.
    let segment = home.files("journal").remove(0);
    flip(&segment, fs::read(&segment).unwrap().len() / 2);
    let (code, printed) = doctor();
    assert_eq!(
        (code, printed["problems"][0]["reason"].as_str()),
        (Some(1), Some("JOURNAL_DAMAGED")),
        "{printed}"
    );
    let refused = home.run(&["backup", &home.path("b.zip")]);
    assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("damaged") && !Path::new(&home.path("b.zip")).exists());
}

/// An export of one conversation.
const CONVERSATION: &str = r#"[{"title": "Bees", "create_time": 1746180000, "conversation_id": "bees-1", "current_node": "q",
    "mapping": {"q": {"id": "q", "parent": null, "children": [], "message": {"id": "q", "author": {"role": "user"},
    "create_time": 1746180000, "content": {"content_type": "text", "parts": ["How do bees winter?"]},
    "metadata": {}, "recipient": "all"}}}}]"#;
