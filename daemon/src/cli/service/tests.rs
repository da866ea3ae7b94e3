#![expect(clippy::unwrap_used, reason = "tests")]

use clap::Parser;

use super::*;
use crate::cli::{
    args::{Cli, Command},
    output::memory::MemoryBuffer,
};

/// Records the commands to run, and answers as configured.
#[derive(Default)]
struct RecordingRunner {
    calls: Vec<String>,
    /// True if the program does not exist.
    missing: bool,
    /// A command with this word fails.
    failing: Option<&'static str>,
}

impl CommandRunner for RecordingRunner {
    fn run(&mut self, call: &ManagerCommand) -> io::Result<system::CommandOutcome> {
        if self.missing {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.calls.push(call.shell_line());
        let success = !self.failing.is_some_and(|word| call.words.iter().any(|one| one == word));
        let stdout = if call.words.iter().any(|word| word == "is-active") { "active" } else { "enabled" };
        let stderr = if success { "" } else { "Failed to connect to bus" };
        Ok(system::CommandOutcome { success, stdout: stdout.to_owned(), stderr: stderr.to_owned() })
    }
}

struct Fixture {
    home: tempfile::TempDir,
    runner: RecordingRunner,
}

impl Fixture {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), runner: RecordingRunner::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.path(".config/systemd/user").join(name)
    }

    fn environment(&self) -> Environment {
        Environment {
            home: Some(self.home.path().to_owned()),
            executable: Some("/usr/bin/satchel".into()),
            runtime_dir: self.path("run"),
            ..Environment::default()
        }
    }

    /// Runs `satchel service …` as on a Linux machine.
    fn typed(&mut self, words: &[&str]) -> (Result<Exit, CliError>, MemoryBuffer) {
        let cli = Cli::try_parse_from([&["satchel", "service"], words].concat()).unwrap();
        let environment = self.environment();
        let (mut out, results, _) = Output::in_memory(cli.global.json);
        let system = ServiceManager::Systemd { folder: self.path(".config/systemd/user") };
        let mut commands = ServiceCommands { system, runner: &mut self.runner, out: &mut out };
        let exit = match &cli.command {
            Command::Service(Service::Install(args)) => {
                ServiceSpec::from_args(&cli.global, args, &environment)
                    .and_then(|spec| commands.install(&spec, args))
            }
            Command::Service(Service::Status) => commands.status(),
            _ => commands.uninstall(),
        };
        (exit, results)
    }

    fn run_ok(&mut self, words: &[&str]) -> String {
        let (exit, page) = self.typed(words);
        assert_eq!(exit.unwrap(), Exit::Done);
        page.text().replace(self.home.path().to_str().unwrap(), "~")
    }
}

#[test]
fn every_change_and_command_is_printed() {
    let mut fixture = Fixture::new();
    let printed = fixture.run_ok(&["install", "--now"]);
    assert_eq!(
        printed,
        "\
wrote ~/.config/systemd/user/satchel.service
wrote ~/.config/systemd/user/satchel.socket
ran systemctl --user daemon-reload
ran systemctl --user enable satchel.service satchel.socket
ran systemctl --user stop satchel.service satchel.socket
ran systemctl --user start satchel.socket satchel.service
"
    );
    let service = fs::read_to_string(fixture.unit("satchel.service")).unwrap();
    assert!(service.contains("\nExecStart=\"/usr/bin/satchel\" \"serve\"\n"), "{service}");
}

#[test]
fn installing_again_changes_nothing_and_stops_nothing() {
    let mut fixture = Fixture::new();
    fixture.run_ok(&["install"]);
    assert!(!fixture.runner.calls.iter().any(|call| call.contains("start")), "{:?}", fixture.runner.calls);
    fixture.runner.calls.clear();
    let printed = fixture.run_ok(&["install", "--now"]);
    assert!(printed.starts_with("unchanged ~/.config/systemd/user/satchel.service\n"), "{printed}");
    assert!(!fixture.runner.calls.iter().any(|call| call.contains("stop")), "{:?}", fixture.runner.calls);
}

#[test]
fn a_file_of_another_program_is_not_touched() {
    let mut fixture = Fixture::new();
    fs::create_dir_all(fixture.unit("")).unwrap();
    fs::write(fixture.unit("satchel.socket"), "[Socket]\n").unwrap();
    for words in [&["install"][..], &["uninstall"]] {
        let (refused, _) = fixture.typed(words);
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("satchel.socket") && error.to_string().contains("--force"));
        assert_eq!(error.exit(), Exit::Usage);
    }
    assert!(!fixture.unit("satchel.service").exists() && fixture.runner.calls.is_empty());
    fixture.run_ok(&["install", "--force"]);
    assert!(fs::read_to_string(fixture.unit("satchel.socket")).unwrap().contains("ListenStream="));
}

#[test]
fn without_a_service_manager_the_commands_are_printed() {
    let mut fixture = Fixture::new();
    fixture.runner.missing = true;
    let (exit, page) = fixture.typed(&["install", "--now"]);
    assert_eq!(exit.unwrap(), Exit::Failed);
    let printed = page.text();
    assert!(printed.contains("cannot control the service manager: systemctl was not found\n"), "{printed}");
    assert!(printed.contains("run this manually: systemctl --user daemon-reload\n"), "{printed}");
    assert!(printed.contains("run this manually: systemctl --user start satchel.socket satchel.service\n"));
    assert!(fixture.unit("satchel.service").exists());
}

#[test]
fn after_a_failed_command_the_remaining_ones_are_printed() {
    let mut fixture = Fixture::new();
    fixture.runner.failing = Some("enable");
    let (exit, page) = fixture.typed(&["install", "--json"]);
    assert_eq!(exit.unwrap(), Exit::Failed);
    let report: serde_json::Value = serde_json::from_str(&page.text()).unwrap();
    assert_eq!(report["ran"], serde_json::json!(["systemctl --user daemon-reload"]));
    assert_eq!(
        report["to_run"],
        serde_json::json!(["systemctl --user enable satchel.service satchel.socket"])
    );
    assert_eq!(report["problem"], "Failed to connect to bus");
}

#[test]
fn uninstalling_removes_only_what_was_installed() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.run_ok(&["uninstall"]), "the service is not installed\n");
    fixture.run_ok(&["install"]);
    fs::write(fixture.unit("other.service"), "[Unit]\n").unwrap();
    fixture.runner.calls.clear();
    let printed = fixture.run_ok(&["uninstall"]);
    assert_eq!(
        printed,
        "\
removed ~/.config/systemd/user/satchel.service
removed ~/.config/systemd/user/satchel.socket
ran systemctl --user disable --now satchel.service satchel.socket
ran systemctl --user daemon-reload
"
    );
    assert!(!fixture.unit("satchel.service").exists() && !fixture.unit("satchel.socket").exists());
    assert!(fixture.unit("other.service").exists());
}

#[test]
fn the_status_shows_the_files_and_the_state_of_the_service_manager() {
    let mut fixture = Fixture::new();
    let printed = fixture.run_ok(&["status"]);
    assert!(printed.starts_with("installed        no;"), "{printed}");
    fixture.run_ok(&["install"]);
    let state: serde_json::Value = serde_json::from_str(&fixture.run_ok(&["status", "--json"])).unwrap();
    assert_eq!((&state["installed"], &state["enabled"]), (&true.into(), &"enabled".into()));
    assert_eq!((&state["running"], state["files"].as_array().unwrap().len()), (&"active".into(), 2));
}

#[test]
fn settings_other_than_the_defaults_are_passed_on() {
    let mut fixture = Fixture::new();
    let folder = fixture.path("my data");
    fixture.run_ok(&[
        "install",
        "--data-dir",
        folder.to_str().unwrap(),
        "--config",
        "/etc/satchel 100%.toml",
    ]);
    let service = fs::read_to_string(fixture.unit("satchel.service")).unwrap();
    let start = format!(
        "ExecStart=\"/usr/bin/satchel\" \"serve\" \"--data-dir\" \"{}\" \"--config\" \"/etc/satchel 100%%.toml\"\n",
        folder.display()
    );
    assert!(service.contains(&start), "{service}");
    let socket = fs::read_to_string(fixture.unit("satchel.socket")).unwrap();
    assert!(socket.contains(&format!("\nListenStream={}/satchel.sock\n", folder.display())), "{socket}");
}

#[test]
fn folders_to_watch_are_passed_on() {
    let mut fixture = Fixture::new();
    fixture.run_ok(&["install", "--watch", "/home/ana/My Downloads", "--watch", "/srv/exports"]);
    let service = fs::read_to_string(fixture.unit("satchel.service")).unwrap();
    let start = "\"serve\" \"--watch\" \"/home/ana/My Downloads\" \"--watch\" \"/srv/exports\"\n";
    assert!(service.contains(start), "{service}");
}

#[test]
fn a_path_with_a_line_break_is_rejected() {
    let mut fixture = Fixture::new();
    let (refused, _) = fixture.typed(&["install", "--data-dir", "/d\nExecStartPre=/bin/evil"]);
    assert!(refused.unwrap_err().to_string().contains("a line break"));
    assert!(!fixture.unit("satchel.service").exists());
    assert!(fixture.typed(&["install", "--server", "unix:/s"]).0.is_err());
}
