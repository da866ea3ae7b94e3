//! A disk that another process fills while a daemon runs, and a disk that is read-only: stored data can be read and
//! exported, and writing resumes by itself.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Instant,
};

use home::{Home, LONG, code, ended, stderr};

/// A small file system in memory; it is unmounted on drop.
struct Small(tempfile::TempDir);

impl Small {
    /// Returns `None` if this process may not mount one, and says so on stderr, bypassing the captured output of
    /// the test.
    fn mount(megabytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m,mode=0700");
        let mounted = rustix::process::geteuid().is_root()
            && Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "satchel-test"])
                .arg(dir.path())
                .status()
                .is_ok_and(|status| status.success());
        if !mounted {
            std::io::stderr().write_all(b"not run: no tmpfs can be mounted here\n").unwrap();
        }
        mounted.then(|| Self(dir))
    }

    fn data(&self) -> String {
        self.0.path().join("data").to_str().unwrap().to_owned()
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Fills the remaining space.
    fn fill(&self) {
        let mut file = fs::File::create(self.ballast()).unwrap();
        while file.write_all(&[1; 8 << 10]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn remount(&self, option: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{option}")])
            .arg(self.0.path())
            .status()
            .unwrap();
        assert!(done.success(), "{option}");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{:?} stays mounted", self.0.path());
    }
}

fn demo(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
    path.to_str().unwrap().to_owned()
}

struct Scene {
    home: Home,
    small: Small,
}

impl Scene {
    fn run(&self, words: &[&str]) -> Output {
        let data = self.small.data();
        let all: Vec<&str> = ["--data-dir", &data].iter().chain(words).copied().collect();
        self.home.run(&all)
    }

    fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn serve(&self) -> Child {
        let data = self.small.data();
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
    fn shown(&self) -> Vec<String> {
        let conversations = self.done(&["conversations", "list", "--json", "--all"]);
        let list: serde_json::Value = serde_json::from_str(&conversations).unwrap();
        let id = list["conversations"][0]["id"].as_str().unwrap().to_owned();
        let memories = self.done(&["memories", "list", "--json", "--all"]);
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
        [conversations, memories].into_iter().chain(rest.into_iter().map(|words| self.done(words))).collect()
    }

    /// Makes an export on another disk, and checks that it is complete and valid.
    fn exported(&self, name: &str) -> String {
        let output = self.home.path().join(name);
        let made = self.run(&["export", "--output", output.to_str().unwrap()]);
        assert_eq!(code(&made), Some(0), "{}", stderr(&made));
        self.done(&["verify", output.to_str().unwrap()]);
        stderr(&made)
    }

    fn refused(&self, words: &[&str]) {
        let output = self.run(words);
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(code(&output) != Some(0), "{words:?}: {told}");
        let room = told.contains("no space left") || told.contains("read-only") || told.contains("only read");
        assert!(room && !told.contains("should not be"), "{words:?}: {told}");
    }
}

#[test]
fn a_disk_that_is_filled_under_a_daemon_is_read_exported_and_written_again() {
    let Some(small) = Small::mount(160) else { return };
    let scene = Scene { home: Home::new(), small };
    let mut daemon = scene.serve();
    scene.done(&["import", &demo("chatgpt-export")]);
    scene.exported("before.zip");
    // The disk is filled before the database has written what this import adds.
    scene.done(&["import", &demo("claude-export")]);
    scene.small.fill();
    let shown = scene.shown();
    for round in 0..2 {
        scene.refused(&["import", "--again", &demo("chatgpt-export")]);
        let told = scene.exported(&format!("full-{round}.zip"));
        assert!(told.contains("is not listed here"), "{told}");
        assert_eq!(scene.shown(), shown, "what was refused has not happened");
    }
    scene.small.free();
    scene.done(&["import", "--again", &demo("chatgpt-export")]);
    scene.exported("after.zip");
    let listed = scene.done(&["exports", "list", "--json"]);
    assert_eq!(listed.matches("\"export_id\"").count(), 2, "{listed}");
    // A stop on a full disk is an orderly one.
    let shown = scene.shown();
    scene.small.fill();
    rustix::process::kill_process(rustix::process::Pid::from_child(&daemon), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(ended(&mut daemon).code(), Some(0));
    assert_eq!(scene.shown(), shown, "without a daemon, and without room for one");
    scene.refused(&["import", "--again", &demo("claude-export")]);
    scene.small.free();
    assert_eq!(scene.shown(), shown);
    scene.done(&["import", "--again", &demo("claude-export")]);
    assert_eq!(code(&scene.run(&["doctor"])), Some(0));
}

#[test]
fn a_disk_that_is_read_only_is_read() {
    let Some(small) = Small::mount(160) else { return };
    let scene = Scene { home: Home::new(), small };
    scene.done(&["import", &demo("chatgpt-export")]);
    scene.exported("before.zip");
    let shown = scene.shown();
    scene.small.remount("ro");
    assert_eq!(scene.shown(), shown);
    let told = scene.exported("after.zip");
    assert!(told.contains("is not listed here"), "{told}");
    let backup = scene.home.path().join("backup.zip");
    scene.done(&["backup", backup.to_str().unwrap()]);
    let looked = scene.run(&["doctor"]);
    let told = format!("{}{}", String::from_utf8_lossy(&looked.stdout), stderr(&looked));
    assert!(told.contains("only read") && told.contains("1 problem"), "{told}");
    scene.refused(&["import", &demo("claude-export")]);
    scene.small.remount("rw");
    assert_eq!(scene.shown(), shown);
    scene.done(&["import", &demo("claude-export")]);
}
