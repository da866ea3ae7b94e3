#![expect(clippy::unwrap_used, reason = "tests")]

use clap::Parser;

use super::*;
use crate::cli::{
    args::{Cli, Command},
    out::memory::Page,
};

/// Records the commands to run, and answers as configured.
#[derive(Default)]
struct Noted {
    calls: Vec<String>,
    /// True if the program does not exist.
    missing: bool,
    /// A command with this word fails.
    failing: Option<&'static str>,
}

impl Runner for Noted {
    fn run(&mut self, call: &Call) -> io::Result<system::Outcome> {
        if self.missing {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.calls.push(call.typed());
        let success = !self.failing.is_some_and(|word| call.words.iter().any(|one| one == word));
        let stdout = if call.words.iter().any(|word| word == "is-active") { "active" } else { "enabled" };
        let stderr = if success { "" } else { "Failed to connect to bus" };
        Ok(system::Outcome { success, stdout: stdout.to_owned(), stderr: stderr.to_owned() })
    }
}

struct World {
    home: tempfile::TempDir,
    runner: Noted,
}

impl World {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), runner: Noted::default() }
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
    fn typed(&mut self, words: &[&str]) -> (Result<Exit, CliError>, Page) {
        let cli = Cli::try_parse_from([&["satchel", "service"], words].concat()).unwrap();
        let environment = self.environment();
        let (mut out, results, _) = Out::in_memory(cli.global.json);
        let system = System::Systemd { folder: self.path(".config/systemd/user") };
        let mut desk = Desk { system, runner: &mut self.runner, out: &mut out };
        let exit = match &cli.command {
            Command::Service(Service::Install(args)) => Description::of(&cli.global, args, &environment)
                .and_then(|description| desk.install(&description, args)),
            Command::Service(Service::Status) => desk.status(),
            _ => desk.uninstall(),
        };
        (exit, results)
    }

    fn done(&mut self, words: &[&str]) -> String {
        let (exit, page) = self.typed(words);
        assert_eq!(exit.unwrap(), Exit::Done);
        page.text().replace(self.home.path().to_str().unwrap(), "~")
    }
}

#[test]
fn what_is_done_is_told_exactly() {
    let mut world = World::new();
    let told = world.done(&["install", "--now"]);
    assert_eq!(
        told,
        "\
wrote ~/.config/systemd/user/satchel.service
wrote ~/.config/systemd/user/satchel.socket
ran systemctl --user daemon-reload
ran systemctl --user enable satchel.service satchel.socket
ran systemctl --user stop satchel.service satchel.socket
ran systemctl --user start satchel.socket satchel.service
"
    );
    let service = fs::read_to_string(world.unit("satchel.service")).unwrap();
    assert!(service.contains("\nExecStart=\"/usr/bin/satchel\" \"serve\"\n"), "{service}");
}

#[test]
fn installing_again_changes_nothing_and_stops_nothing() {
    let mut world = World::new();
    world.done(&["install"]);
    assert!(!world.runner.calls.iter().any(|call| call.contains("start")), "{:?}", world.runner.calls);
    world.runner.calls.clear();
    let told = world.done(&["install", "--now"]);
    assert!(told.starts_with("unchanged ~/.config/systemd/user/satchel.service\n"), "{told}");
    assert!(!world.runner.calls.iter().any(|call| call.contains("stop")), "{:?}", world.runner.calls);
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    let mut world = World::new();
    fs::create_dir_all(world.unit("")).unwrap();
    fs::write(world.unit("satchel.socket"), "[Socket]\n").unwrap();
    for words in [&["install"][..], &["uninstall"]] {
        let (refused, _) = world.typed(words);
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("satchel.socket") && error.to_string().contains("--force"));
        assert_eq!(error.exit(), Exit::Usage);
    }
    assert!(!world.unit("satchel.service").exists() && world.runner.calls.is_empty());
    world.done(&["install", "--force"]);
    assert!(fs::read_to_string(world.unit("satchel.socket")).unwrap().contains("ListenStream="));
}

#[test]
fn without_a_service_manager_the_commands_are_left_to_the_person() {
    let mut world = World::new();
    world.runner.missing = true;
    let (exit, page) = world.typed(&["install", "--now"]);
    assert_eq!(exit.unwrap(), Exit::Failed);
    let told = page.text();
    assert!(told.contains("the service manager cannot be asked: systemctl is not there\n"), "{told}");
    assert!(told.contains("run this yourself: systemctl --user daemon-reload\n"), "{told}");
    assert!(told.contains("run this yourself: systemctl --user start satchel.socket satchel.service\n"));
    assert!(world.unit("satchel.service").exists());
}

#[test]
fn after_a_command_that_fails_the_rest_is_left_to_the_person() {
    let mut world = World::new();
    world.runner.failing = Some("enable");
    let (exit, page) = world.typed(&["install", "--json"]);
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
fn uninstalling_takes_away_what_was_installed_and_nothing_else() {
    let mut world = World::new();
    assert_eq!(world.done(&["uninstall"]), "no service is installed\n");
    world.done(&["install"]);
    fs::write(world.unit("other.service"), "[Unit]\n").unwrap();
    world.runner.calls.clear();
    let told = world.done(&["uninstall"]);
    assert_eq!(
        told,
        "\
removed ~/.config/systemd/user/satchel.service
removed ~/.config/systemd/user/satchel.socket
ran systemctl --user disable --now satchel.service satchel.socket
ran systemctl --user daemon-reload
"
    );
    assert!(!world.unit("satchel.service").exists() && !world.unit("satchel.socket").exists());
    assert!(world.unit("other.service").exists());
}

#[test]
fn the_status_says_what_is_there_and_what_the_manager_says() {
    let mut world = World::new();
    let told = world.done(&["status"]);
    assert!(told.starts_with("installed        no;"), "{told}");
    world.done(&["install"]);
    let state: serde_json::Value = serde_json::from_str(&world.done(&["status", "--json"])).unwrap();
    assert_eq!((&state["installed"], &state["enabled"]), (&true.into(), &"enabled".into()));
    assert_eq!((&state["running"], state["files"].as_array().unwrap().len()), (&"active".into(), 2));
}

#[test]
fn what_differs_from_the_defaults_is_carried_over() {
    let mut world = World::new();
    let folder = world.path("my data");
    world.done(&["install", "--data-dir", folder.to_str().unwrap(), "--config", "/etc/satchel 100%.toml"]);
    let service = fs::read_to_string(world.unit("satchel.service")).unwrap();
    let start = format!(
        "ExecStart=\"/usr/bin/satchel\" \"serve\" \"--data-dir\" \"{}\" \"--config\" \"/etc/satchel 100%%.toml\"\n",
        folder.display()
    );
    assert!(service.contains(&start), "{service}");
    let socket = fs::read_to_string(world.unit("satchel.socket")).unwrap();
    assert!(socket.contains(&format!("\nListenStream={}/satchel.sock\n", folder.display())), "{socket}");
}

#[test]
fn folders_to_watch_are_handed_on() {
    let mut world = World::new();
    world.done(&["install", "--watch", "/home/ana/My Downloads", "--watch", "/srv/exports"]);
    let service = fs::read_to_string(world.unit("satchel.service")).unwrap();
    let start = "\"serve\" \"--watch\" \"/home/ana/My Downloads\" \"--watch\" \"/srv/exports\"\n";
    assert!(service.contains(start), "{service}");
}

#[test]
fn a_path_that_could_add_a_line_is_refused() {
    let mut world = World::new();
    let (refused, _) = world.typed(&["install", "--data-dir", "/d\nExecStartPre=/bin/evil"]);
    assert!(refused.unwrap_err().to_string().contains("a line's end"));
    assert!(!world.unit("satchel.service").exists());
    assert!(world.typed(&["install", "--server", "unix:/s"]).0.is_err());
}
