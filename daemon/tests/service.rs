//! Tests the daemon as a service manager runs it: notifications, the inherited socket, signals, and an orderly
//! stop.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    os::{fd::OwnedFd, unix::net::UnixDatagram, unix::net::UnixListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use home::{LONG, TestHome, code, ended, large_export, stderr};
use rustix::process::{Pid, Signal, kill_process};
use satchel_proto::v1::{
    CreateImportRequest, GetStatsRequest, admin_service_client::AdminServiceClient,
    import_service_client::ImportServiceClient,
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// A service manager that receives the notifications of the daemon.
struct ServiceManager {
    home: TestHome,
    messages: Receiver<String>,
}

impl ServiceManager {
    fn new() -> Self {
        let home = TestHome::new();
        let socket = UnixDatagram::bind(home.path().join("notify")).unwrap();
        let (tell, messages) = mpsc::channel();
        // Reads continuously, as a service manager does; the thread ends with the test.
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(length) = socket.recv(&mut buffer) {
                if tell.send(String::from_utf8_lossy(&buffer[..length]).into_owned()).is_err() {
                    break;
                }
            }
        });
        Self { home, messages }
    }

    fn data_dir(&self) -> PathBuf {
        self.home.path().join(".local/share/satchel")
    }

    fn socket(&self) -> PathBuf {
        self.data_dir().join("satchel.sock")
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("satchel.log")
    }

    fn configure(&self, text: &str) {
        self.home.file(".config/satchel/satchel.toml", text);
    }

    /// Returns `serve`, with a watchdog interval of a fifth of a second.
    fn command(&self) -> Command {
        let mut command = self.home.command(&["serve", "--log-file", self.log().to_str().unwrap()]);
        command.env("NOTIFY_SOCKET", self.home.path().join("notify")).env("WATCHDOG_USEC", "200000");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a daemon and waits until it answers.
    fn start(&self) -> Daemon {
        let daemon = Daemon::spawn(self.command());
        self.wait_for_message("READY=1");
        daemon
    }

    /// Waits for a message with this line, and returns the whole message.
    fn wait_for_message(&self, line: &str) -> String {
        let begun = Instant::now();
        loop {
            let message = self.messages.recv_timeout(LONG.saturating_sub(begun.elapsed())).unwrap();
            if message.lines().any(|one| one == line) {
                return message;
            }
        }
    }

    /// Reads the log until it contains this text.
    fn wait_for_log(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            if log.contains(text) {
                return log;
            }
            assert!(begun.elapsed() < LONG, "{text:?} is not in\n{log}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn json(&self, words: &[&str]) -> serde_json::Value {
        let output = self.home.run(&[words, &["--json"]].concat());
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// A daemon that ends with its test, however the test ends.
struct Daemon(Child);

impl Daemon {
    fn spawn(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Sends SIGTERM, and waits for an orderly stop.
    fn stop(mut self) {
        self.send(Signal::TERM);
        assert_eq!(ended(&mut self.0).code(), Some(0));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Either it has ended, or the test has failed already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_service_manager_is_notified_of_every_state() {
    let manager = ServiceManager::new();
    let mut daemon = Daemon::spawn(manager.command());
    let ready = manager.wait_for_message("READY=1");
    assert!(ready.contains("STATUS=serving "), "{ready}");
    // READY=1 is not sent before the daemon answers: the first attempt to connect succeeds.
    std::os::unix::net::UnixStream::connect(manager.socket()).unwrap();
    manager.wait_for_message("WATCHDOG=1");
    manager.wait_for_message("WATCHDOG=1");
    daemon.send(Signal::HUP);
    let reloading = manager.wait_for_message("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    manager.wait_for_message("READY=1");
    daemon.send(Signal::TERM);
    manager.wait_for_message("STOPPING=1");
    assert_eq!(ended(&mut daemon.0).code(), Some(0));
    assert!(!manager.socket().exists());
}

/// A client may connect before the daemon runs: the service manager holds the connection until the daemon has
/// started.
#[test]
fn an_inherited_socket_is_served_and_not_removed() {
    let manager = ServiceManager::new();
    fs::create_dir_all(manager.data_dir()).unwrap();
    let listener = UnixListener::bind(manager.socket()).unwrap();
    let early = manager.home.command(&["status", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let serve = manager.command();
    let mut shell = Command::new("/bin/sh");
    // The process that the variable names is the daemon itself: exec keeps the process id.
    let take = "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
    shell.args(["-c", take, "sh"]).arg(serve.get_program()).args(serve.get_args());
    shell.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap())));
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Daemon::spawn(shell);
    manager.wait_for_message("READY=1");
    let early = early.wait_with_output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&early.stdout).unwrap();
    assert_eq!(status["pid"], daemon.0.id(), "{status}");
    daemon.stop();
    assert!(manager.socket().exists(), "the service manager still listens there");
    // Another daemon does not take over the address either.
    let refused = manager.home.run(&["serve"]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("the service manager listens on"), "{}", stderr(&refused));
    drop(listener);
}

#[test]
fn the_configuration_is_reloaded_and_an_invalid_one_is_ignored() {
    let manager = ServiceManager::new();
    let export = large_export(&manager.home, 2);
    manager.home.file("large/user.json", "{}");
    manager.configure("[import]\nmax-files = 9\n");
    let daemon = manager.start();
    let again = |text: &str| {
        manager.configure(text);
        daemon.send(Signal::HUP);
        manager.wait_for_message("RELOADING=1");
        manager.wait_for_message("READY=1");
    };
    again("[import]\nmax-fils = 1\n");
    let log = manager.wait_for_log("the previous one stays in effect");
    assert!(log.contains("did you mean \\\"max-files\\\"?"), "{log}");
    // A client of the socket does not read a configuration.
    let server = format!("unix:{}", manager.socket().display());
    let status = |words: &[&str]| manager.home.run(&[words, &["--server", &server]].concat()).status.code();
    assert_eq!(status(&["import", &export]), Some(0), "the limit of before");
    again("[import]\nmax-files = 1\n[store]\ncache-mib = 8\n");
    let log = manager.wait_for_log("take effect after a restart");
    assert!(log.contains("[store] cache-mib") && log.contains("changed=[\"[import]\"]"), "{log}");
    // The parts of the daemon apply the new settings asynchronously.
    let begun = Instant::now();
    while status(&["import", "--again", &export]) != Some(4) {
        assert!(begun.elapsed() < LONG, "the new limit does not hold");
    }
    again("[log]\nlevel = \"debug\"\n");
    daemon.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_during_an_import_keeps_whole_records_and_the_next_import_completes_it() {
    let manager = ServiceManager::new();
    let (all, export) = (10_000, large_export(&manager.home, 10_000));
    let mut command = manager.command();
    command.env("SATCHEL_LOG", "debug");
    let mut daemon = Daemon::spawn(command);
    manager.wait_for_message("READY=1");
    let channel = satchel_server::connect::connect(&manager.data_dir()).await.unwrap();
    let request = CreateImportRequest { path: export.clone(), ..CreateImportRequest::default() };
    ImportServiceClient::new(channel.clone()).create_import(request).await.unwrap();
    let mut admin = AdminServiceClient::new(channel);
    let begun = Instant::now();
    while admin.get_stats(GetStatsRequest {}).await.unwrap().get_ref().conversations == 0 {
        assert!(begun.elapsed() < LONG, "nothing is imported");
    }
    daemon.send(Signal::TERM);
    manager.wait_for_message("STOPPING=1");
    assert_eq!(ended(&mut daemon.0).code(), Some(0));
    let stored = || manager.json(&["status"])["conversations"]["total"].as_u64().unwrap();
    let kept = stored();
    assert!((1..all).contains(&kept), "{kept} conversations");
    let imports = manager.json(&["imports", "list"]);
    assert_eq!(imports["imports"][0]["status"], "cancelled", "{imports}");
    let daemon = manager.start();
    let receipt = manager.json(&["import", &export]);
    assert_eq!(receipt["imports"][0]["status"], "completed", "{receipt}");
    assert_eq!(stored(), all);
    daemon.stop();
    let log = fs::read_to_string(manager.log()).unwrap();
    assert!(log.contains("stopping") && !log.contains("honey"), "the log tells what is in the export");
}

/// A stream that its client never closes delays an orderly stop for the grace period; a second signal ends that.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_does_not_wait_for_clients() {
    let manager = ServiceManager::new();
    let mut daemon = manager.start();
    let channel = satchel_server::connect::connect(&manager.data_dir()).await.unwrap();
    let watch = HealthCheckRequest { service: String::new() };
    let mut stream = HealthClient::new(channel).watch(watch).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    daemon.send(Signal::TERM);
    manager.wait_for_message("STOPPING=1");
    assert!(daemon.0.try_wait().unwrap().is_none(), "the stream is still open");
    daemon.stop();
    assert!(manager.wait_for_log("stopping immediately").contains("sigterm"));
    drop(stream);
}
