//! Network namespaces, each of which stands for a machine with a home directory of its own, and a virtual cable between two of them.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::home::{self, LONG, TestHome, code, stderr};

/// The address of the machine with the daemon.
pub(crate) const DESK: &str = "10.77.0.1";
/// The address of the other machine.
pub(crate) const LAPTOP: &str = "10.77.0.2";
/// The port of the daemon. It is free, as each namespace has ports of its own.
pub(crate) const PORT: u16 = 7443;
/// The network interface of a machine.
pub(crate) const CABLE: &str = "cable";
/// Where `ip` may be. The programs of the tests run with an environment of their own.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// The file in the home directory with what the daemons of the machine have logged.
const LOG: &str = "daemon.log";

/// The namespaces that this process has made.
static CREATED: AtomicU32 = AtomicU32::new(0);

/// Two machines on one network.
pub(crate) struct Network {
    pub(crate) desk: Host,
    pub(crate) laptop: Host,
}

/// A machine. Its namespace is removed on drop.
pub(crate) struct Host {
    namespace: String,
    pub(crate) home: TestHome,
    /// Where the data directory is, if not in the home directory.
    pub(crate) data_home: Option<PathBuf>,
}

impl Network {
    /// Returns two machines that are connected; `None` if this process may not create network namespaces.
    pub(crate) fn create() -> Option<Self> {
        let hosts = Host::create("desk").and_then(|desk| Ok((desk, Host::create("laptop")?)));
        let (desk, laptop) = hosts.map_err(|reason| skip(&reason)).ok()?;
        let (a, b) = (&desk.namespace, &laptop.namespace);
        ip(&["link", "add", CABLE, "netns", a, "type", "veth", "peer", "name", CABLE, "netns", b]).unwrap();
        for (host, address) in [(&desk, DESK), (&laptop, LAPTOP)] {
            host.add_address(address);
            host.ip(&["link", "set", CABLE, "up"]);
        }
        Some(Self { desk, laptop })
    }

    /// Cuts the link: what the laptop sends is lost, and nothing tells it so.
    pub(crate) fn cut(&self) {
        self.desk.ip(&["link", "set", CABLE, "down"]);
    }

    /// Connects the machines again, and waits until both have noticed.
    pub(crate) fn join(&self) {
        self.desk.ip(&["link", "set", CABLE, "up"]);
        for host in [&self.desk, &self.laptop] {
            host.wait_for_link();
            // That a machine did not answer is remembered for a while.
            host.ip(&["neighbour", "flush", "dev", CABLE]);
        }
    }

    /// Pairs the laptop, which calls the daemon `desk`. `options` are those of `devices pair`.
    pub(crate) fn pair(&self, options: &[&str]) {
        let opened = self.desk.json(&[&["devices", "pair", "--as", "laptop"], options].concat());
        let code = opened["code"].as_str().unwrap();
        self.laptop.ok(&["pair", code, "--address", &address(DESK), "--as", "desk"]);
    }
}

/// Says that a test is not run, on stderr, bypassing the captured output of the test. Where the tests between programs are required,
/// this fails instead.
pub(crate) fn skip(reason: &str) {
    let required = std::env::var_os("SATCHEL_INTEROP").is_some();
    assert!(!required, "network namespaces are required: {reason}");
    not_run(reason);
}

/// Says that a test is not run for want of something that not every machine with namespaces has.
pub(crate) fn not_run(reason: &str) {
    let skipped = format!("not run: no network of namespaces can be created here: {reason}\n");
    std::io::stderr().write_all(skipped.as_bytes()).unwrap();
}

/// Returns the address of a daemon at `ip`.
pub(crate) fn address(ip: &str) -> String {
    format!("{ip}:{PORT}")
}

impl Host {
    /// Creates a machine that is not connected to any other.
    pub(crate) fn create(name: &str) -> Result<Self, String> {
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("satchel-{}-{number}-{name}", std::process::id());
        ip(&["netns", "add", &namespace])?;
        let host = Self { namespace, home: TestHome::new(), data_home: None };
        host.ip(&["link", "set", "lo", "up"]);
        Ok(host)
    }

    /// Runs `ip` in the namespace.
    fn ip(&self, words: &[&str]) {
        ip(&[&["-netns", &self.namespace], words].concat()).unwrap();
    }

    fn wait_for_link(&self) {
        let begun = Instant::now();
        loop {
            let words = ["-netns", &self.namespace, "-oneline", "link", "show", "dev", CABLE];
            let shown = Command::new("ip").args(words).output().unwrap();
            if String::from_utf8_lossy(&shown.stdout).contains("state UP") {
                return;
            }
            assert!(begun.elapsed() < LONG, "the link stays down: {shown:?}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    pub(crate) fn add_address(&self, address: &str) {
        self.ip(&["address", "add", &format!("{address}/24"), "dev", CABLE]);
    }

    pub(crate) fn remove_address(&self, address: &str) {
        self.ip(&["address", "delete", &format!("{address}/24"), "dev", CABLE]);
    }

    /// Returns a command that runs `program` on this machine.
    pub(crate) fn run_program(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]).args(words);
        self.home.set_environment(&mut command);
        command.env("PATH", PATH);
        if let Some(data_home) = &self.data_home {
            command.env("XDG_DATA_HOME", data_home);
        }
        command
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.run_program(env!("CARGO_BIN_EXE_satchel"), words)
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[words, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that must fail within `limit`, and returns what it says.
    pub(crate) fn fails_within(&self, limit: Duration, words: &[&str]) -> String {
        let begun = Instant::now();
        let output = self.run(words);
        let took = begun.elapsed();
        assert_ne!(code(&output), Some(0), "{words:?}");
        assert!(took < limit, "{words:?} took {took:?}: {}", stderr(&output));
        stderr(&output)
    }

    /// Starts a daemon that listens on all addresses, and waits until it does.
    pub(crate) fn serve(&self) -> Daemon {
        let mut serve = self.command(&["serve", "--json", "--listen", &address("0.0.0.0")]);
        let log = OpenOptions::new().create(true).append(true).open(self.home.path().join(LOG)).unwrap();
        let mut child = serve.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let stdout = serde_json::Deserializer::from_reader(child.stdout.take().unwrap());
        let ready: Value = stdout.into_iter().next().unwrap().unwrap();
        let daemon = Daemon(Some(child));
        assert_eq!(ready["listening"], address("0.0.0.0"), "{ready}");
        daemon
    }

    /// Returns what the daemons of this machine have logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.path().join(LOG)).unwrap_or_default()
    }

    /// The data directory, unless it is elsewhere.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join(".local/share/satchel")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The cable goes with the first of the two.
        let removed = ip(&["netns", "delete", &self.namespace]);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

/// A daemon. It is killed if a test ends without stopping it.
pub(crate) struct Daemon(Option<Child>);

impl Daemon {
    /// Stops it in an orderly way.
    pub(crate) fn stop(mut self) {
        self.0.take().map(home::stop).unwrap();
    }

    /// Kills it, as a power cut does.
    pub(crate) fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended by itself; in both cases it is gone afterwards.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Runs `ip`, and returns what it says if it fails.
fn ip(words: &[&str]) -> Result<(), String> {
    let output =
        Command::new("ip").args(words).env("PATH", PATH).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(stderr(&output)) }
}

/// Waits until `condition` holds for the text of a file.
pub(crate) fn wait_for(file: &Path, condition: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if condition(&text) {
            return text;
        }
        assert!(begun.elapsed() < LONG, "{} has only {text:?}", file.display());
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
