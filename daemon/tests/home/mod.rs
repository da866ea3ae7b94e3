//! A home directory for one test, and the program started in it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

/// Timeout. Nothing that these tests start takes a tenth of it, on any machine.
pub(crate) const LONG: Duration = Duration::from_mins(2);

pub(crate) struct TestHome(tempfile::TempDir);

impl TestHome {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the program with these arguments, with a data directory of its own and without the environment of
    /// the person.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_satchel"));
        self.set_environment(command.args(words));
        command
    }

    /// Replaces the environment of the person with one of this home directory.
    pub(crate) fn set_environment(&self, command: &mut Command) {
        command.env_clear().env("HOME", self.path()).stdin(Stdio::null());
        // The compiled importers are shared by all tests of a user: compiling them would take most of the time of
        // each test.
        let cache = format!("satchel-test-cache-{}", rustix::process::geteuid().as_raw());
        let cache = std::env::temp_dir().join(cache);
        command.env("XDG_CACHE_HOME", cache.join("cache")).env("XDG_STATE_HOME", cache.join("state"));
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts a daemon and waits until it says that it answers. No command is asked instead: without a daemon it would lock the
    /// data directory, which the daemon would then find in use.
    pub(crate) fn serve(&self) -> Child {
        let mut serve = self.command(&["serve"]);
        let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("serving"), "{line}");
        child
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for the program to end; if it hangs, kills it and fails the test.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > LONG {
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(begun.elapsed() < LONG, "the program hangs");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Asks a daemon to stop, and waits until it has.
pub(crate) fn stop(mut daemon: Child) {
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(ended(&mut daemon).success());
}

/// Returns a ChatGPT export of this many conversations, large enough that another command ends while it is
/// imported.
pub(crate) fn large_export(home: &TestHome, conversations: usize) -> String {
    let message = |id: &str, number: usize, role: &str| {
        let text = "honey ".repeat(50);
        format!(
            r#"{{"id": "{number}-{id}", "author": {{"role": "{role}"}}, "create_time": 1746180000,
            "content": {{"content_type": "text", "parts": ["{text}"]}}, "metadata": {{}}, "recipient": "all"}}"#
        )
    };
    let conversation = |number: usize| {
        format!(
            r#"{{"title": "{number}", "create_time": 1746180000, "conversation_id": "{number}", "current_node": "a",
            "mapping": {{"q": {{"id": "q", "parent": null, "children": ["a"], "message": {}}},
            "a": {{"id": "a", "parent": "q", "children": [], "message": {}}}}}}}"#,
            message("q", number, "user"),
            message("a", number, "assistant")
        )
    };
    let all: Vec<String> = (0..conversations).map(conversation).collect();
    home.file("large/conversations.json", format!("[{}]", all.join(",")));
    home.path().join("large").to_str().unwrap().to_owned()
}
