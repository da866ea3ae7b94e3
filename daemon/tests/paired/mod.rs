//! A daemon that listens, and machines that are paired with it.

use std::process::{Child, Stdio};

use serde_json::Value;

use crate::home::{TestHome, code, stderr, stop};

/// A daemon that listens for devices, and its address.
pub(crate) struct Listening {
    pub(crate) home: TestHome,
    daemon: Child,
    pub(crate) address: String,
}

impl Listening {
    pub(crate) fn start() -> Self {
        Self::start_in(TestHome::new(), "127.0.0.1:0")
    }

    pub(crate) fn start_in(home: TestHome, address: &str) -> Self {
        let mut serve = home.command(&["serve", "--json", "--listen", address]);
        let mut daemon = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = serde_json::Deserializer::from_reader(daemon.stdout.take().unwrap());
        let ready: Value = stdout.into_iter().next().unwrap().unwrap();
        let address = ready["listening"].as_str().unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "{ready}");
        Self { home, daemon, address }
    }

    /// Opens a window, and returns its code.
    pub(crate) fn code(&self, options: &[&str]) -> String {
        let opened = json(&self.home, &[&["devices", "pair"], options].concat());
        opened["code"].as_str().unwrap().to_owned()
    }

    /// Pairs a new machine, which calls this daemon `desk`.
    #[allow(dead_code, reason = "not every test pairs a device")]
    pub(crate) fn pair(&self, options: &[&str]) -> TestHome {
        let other = TestHome::new();
        ok(&other, &["pair", &self.code(options), "--address", &self.address, "--as", "desk"]);
        other
    }

    /// Kills the daemon, as a power cut would.
    #[allow(dead_code, reason = "not every test kills it")]
    pub(crate) fn kill(mut self) -> TestHome {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        self.home
    }

    pub(crate) fn stop(self) -> TestHome {
        stop(self.daemon);
        self.home
    }
}

pub(crate) fn ok(home: &TestHome, words: &[&str]) -> String {
    let output = home.run(words);
    assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn json(home: &TestHome, words: &[&str]) -> Value {
    serde_json::from_str(&ok(home, &[words, &["--json"]].concat())).unwrap()
}

/// Runs a command that must fail, and returns what it says.
pub(crate) fn fails(home: &TestHome, words: &[&str]) -> String {
    let output = home.run(words);
    assert_ne!(code(&output), Some(0), "{words:?}");
    stderr(&output)
}
