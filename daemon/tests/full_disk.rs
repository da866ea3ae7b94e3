//! A disk that another process fills while a daemon runs, and a disk that is read-only: stored data can be read and
//! exported, and writing resumes by itself.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod paired;

use std::{
    path::{Path, PathBuf},
    process::{Child, Output, Stdio},
    time::Instant,
};

use home::{LONG, TestHome, code, ended, stderr, stop};
use paired::Listening;
use satchel_tests::small_disk::SmallDisk;

fn demo(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
    path.to_str().unwrap().to_owned()
}

struct Fixture {
    home: TestHome,
    disk: SmallDisk,
}

impl Fixture {
    fn data(&self) -> String {
        self.disk.path().join("data").to_str().unwrap().to_owned()
    }

    fn run(&self, words: &[&str]) -> Output {
        let data = self.data();
        let all: Vec<&str> = ["--data-dir", &data].iter().chain(words).copied().collect();
        self.home.run(&all)
    }

    fn run_ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn serve(&self) -> Child {
        let data = self.data();
        let mut child =
            self.home.command(&["--data-dir", &data, "serve"]).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !Path::new(&data).join("satchel.sock").exists() {
            assert!(begun.elapsed() < LONG && child.try_wait().unwrap().is_none(), "it does not serve");
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        child
    }

    /// Returns the output of every command that reads, without values that depend on the clock or on free space.
    fn read_all(&self) -> Vec<String> {
        let conversations = self.run_ok(&["conversations", "list", "--json", "--all"]);
        let list: serde_json::Value = serde_json::from_str(&conversations).unwrap();
        let id = list["conversations"][0]["id"].as_str().unwrap().to_owned();
        let memories = self.run_ok(&["memories", "list", "--json", "--all"]);
        let list: serde_json::Value = serde_json::from_str(&memories).unwrap();
        let memory = list["memories"][0]["id"].as_str().unwrap().to_owned();
        let rest = [
            &["conversations", "show", &id, "--json"][..],
            &["conversations", "purge", &id, "--dry-run"],
            &["memories", "show", &memory, "--json"],
            &["memories", "history", &memory, "--json"],
            &["imports", "list", "--json"],
            &["imports", "show", "--last", "--json"],
            &["exports", "list", "--json"],
            &["sources", "list", "--json"],
            &["keys", "list", "--json"],
            &["keys", "status"],
            &["relations", "list", "--json"],
            &["plugins", "list", "--json"],
        ];
        [conversations, memories]
            .into_iter()
            .chain(rest.into_iter().map(|words| self.run_ok(words)))
            .collect()
    }

    /// Makes an export on another disk, and checks that it is complete and valid.
    fn export_and_verify(&self, name: &str) -> String {
        let output = self.home.path().join(name);
        let made = self.run(&["export", "--output", output.to_str().unwrap()]);
        assert_eq!(code(&made), Some(0), "{}", stderr(&made));
        self.run_ok(&["verify", output.to_str().unwrap()]);
        stderr(&made)
    }

    fn assert_refused(&self, words: &[&str]) {
        let output = self.run(words);
        let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(code(&output) != Some(0), "{words:?}: {printed}");
        let room = printed.contains("no space left") || printed.contains("read-only");
        assert!(room && !printed.contains("internal error"), "{words:?}: {printed}");
    }
}

#[test]
fn a_disk_that_fills_up_under_a_daemon_can_be_read_and_is_written_again_later() {
    let Some(disk) = SmallDisk::mount(160).unwrap() else { return };
    let fixture = Fixture { home: TestHome::new(), disk };
    let mut daemon = fixture.serve();
    fixture.run_ok(&["import", &demo("chatgpt-export")]);
    fixture.export_and_verify("before.zip");
    // The disk is filled before the database has written what this import adds.
    fixture.run_ok(&["import", &demo("claude-export")]);
    fixture.disk.fill().unwrap();
    let shown = fixture.read_all();
    for round in 0..2 {
        fixture.assert_refused(&["import", "--again", &demo("chatgpt-export")]);
        let printed = fixture.export_and_verify(&format!("full-{round}.zip"));
        assert!(printed.contains("could not be recorded"), "{printed}");
        assert_eq!(fixture.read_all(), shown, "what was refused has not happened");
    }
    fixture.disk.free().unwrap();
    fixture.run_ok(&["import", "--again", &demo("chatgpt-export")]);
    fixture.export_and_verify("after.zip");
    let listed = fixture.run_ok(&["exports", "list", "--json"]);
    assert_eq!(listed.matches("\"export_id\"").count(), 2, "{listed}");
    // A stop on a full disk is an orderly one.
    let shown = fixture.read_all();
    fixture.disk.fill().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&daemon), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(ended(&mut daemon).code(), Some(0));
    assert_eq!(fixture.read_all(), shown, "without a daemon, and without room for one");
    fixture.assert_refused(&["import", "--again", &demo("claude-export")]);
    fixture.disk.free().unwrap();
    assert_eq!(fixture.read_all(), shown);
    fixture.run_ok(&["import", "--again", &demo("claude-export")]);
    assert_eq!(code(&fixture.run(&["doctor"])), Some(0));
}

#[test]
fn a_read_only_disk_can_be_read() {
    let Some(disk) = SmallDisk::mount(160).unwrap() else { return };
    let fixture = Fixture { home: TestHome::new(), disk };
    fixture.run_ok(&["import", &demo("chatgpt-export")]);
    fixture.export_and_verify("before.zip");
    let shown = fixture.read_all();
    fixture.disk.remount("ro").unwrap();
    assert_eq!(fixture.read_all(), shown);
    let printed = fixture.export_and_verify("after.zip");
    assert!(printed.contains("could not be recorded"), "{printed}");
    let backup = fixture.home.path().join("backup.zip");
    fixture.run_ok(&["backup", backup.to_str().unwrap()]);
    let looked = fixture.run(&["doctor"]);
    let printed = format!("{}{}", String::from_utf8_lossy(&looked.stdout), stderr(&looked));
    assert!(printed.contains("read-only") && printed.contains("1 problem"), "{printed}");
    fixture.assert_refused(&["import", &demo("claude-export")]);
    fixture.disk.remount("rw").unwrap();
    assert_eq!(fixture.read_all(), shown);
    fixture.run_ok(&["import", &demo("claude-export")]);
}

/// A machine whose disk is full takes nothing of its peers, says so, and catches up when there is room again.
#[test]
fn a_full_disk_stops_the_exchange_with_peers_until_there_is_room() {
    let Some(disk) = SmallDisk::mount(160).unwrap() else { return };
    let (fixture, desk) = (Fixture { home: TestHome::new(), disk }, Listening::start());
    let daemon = fixture.serve();
    let code_of_desk = desk.code(&["--as", "laptop", "--role", "peer"]);
    fixture.run_ok(&["peers", "add", &code_of_desk, "--address", &desk.address, "--as", "desk"]);
    fixture.run_ok(&["sync", "--wait"]);
    fixture.disk.fill().unwrap();
    paired::ok(&desk.home, &["import", &demo("chatgpt-export")]);
    paired::ok(&desk.home, &["import", &demo("claude-export")]);
    for _ in 0..3 {
        fixture.assert_refused(&["sync"]);
    }
    let listed: serde_json::Value =
        serde_json::from_str(&fixture.run_ok(&["peers", "list", "--json"])).unwrap();
    let peer = &listed["peers"][0];
    assert!(peer["last_error"].to_string().contains("no space left"), "{listed}");
    assert_eq!(peer["in_step"], false, "{listed}");
    assert_eq!(paired::json(&desk.home, &["peers", "list"])["peers"][0]["in_step"], false);
    fixture.disk.free().unwrap();
    fixture.run_ok(&["sync", "--wait"]);
    let digest = |status: serde_json::Value| status["digest"].as_str().unwrap().to_owned();
    let there = digest(paired::json(&desk.home, &["sync", "status"]));
    let here = digest(serde_json::from_str(&fixture.run_ok(&["sync", "status", "--json"])).unwrap());
    assert_eq!(here, there);
    stop(daemon);
    assert_eq!(code(&fixture.run(&["doctor"])), Some(0));
    desk.stop();
}
