//! Runs the command lines of README and manual, page by page, as a reader would type them.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod packages;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use age::{secrecy::ExposeSecret as _, x25519::Identity};
use home::{TestHome, code, stderr, stop};
use serde_json::Value;

/// Ids that the pages use as examples, the list that has real ones, and the row that stands for the example.
const EXAMPLE_IDS: [(&str, &str, usize); 5] = [
    ("5f3a", "conversations", 0),
    ("51d0", "conversations", 1),
    ("9c41", "memories", 0),
    ("71aa", "memories", 1),
    ("3f2a", "imports", 0),
];
const EXAMPLE_RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
/// The name of an importer, and the key of its author, that the pages use as examples.
const EXAMPLE_IMPORTER: &str = "example-notes";
const EXAMPLE_AUTHOR: &str = "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
/// Where the pages let the daemon listen, and where devices find it.
const EXAMPLE_LISTEN: &str = "--listen 0.0.0.0:7443";
/// Where a page writes files that are carried to another machine.
const EXAMPLE_STICK: &str = "/media/stick";
const EXAMPLE_ADDRESS: &str = "192.168.1.7:7443";
const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGs79rhHKgxX1GbmIHBB0fCVKzgn5Y/yISQVcQ4l+NSh noor@example.org\n";
const PASSPHRASE: &str = "correct horse battery staple";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Packs an export of the demo, as the provider would send it.
fn archive(export: &str, path: &Path) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    for entry in fs::read_dir(root().join("daemon/demo").join(export)).unwrap() {
        let entry = entry.unwrap();
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(entry.file_name().to_str().unwrap(), options).unwrap();
        archive.write_all(&fs::read(entry.path()).unwrap()).unwrap();
    }
    archive.finish().unwrap();
}

/// Fixtures of importers, and the folders in which agents keep such sessions.
const AGENTS: [(&str, &str); 7] = [
    ("claude-code/fixtures/tools-and-branches", ".claude/projects"),
    ("codex/fixtures/session-with-tools-and-reasoning", ".codex/sessions"),
    ("gemini-cli/fixtures/session-with-tools-and-thoughts", ".gemini/tmp"),
    ("goose/fixtures/a-session-with-tools-and-thoughts", ".local/share/goose"),
    ("goose/fixtures/sessions-in-a-database", ".local/share/goose"),
    ("opencode/fixtures/subagents-and-archived-sessions", ".local/share/opencode/storage"),
    ("opencode/fixtures/sessions-in-a-database", ".local/share/opencode"),
];

/// Copies everything below a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Returns the command lines of a page, without comments.
fn command_lines(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0));
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("satchel "));
    lines.map(|line| line.split(" #").next().unwrap().trim_end().to_owned()).collect()
}

/// A reader of one page: a home directory, and the daemon that the page starts.
struct Reader {
    home: TestHome,
    recipient: String,
    /// The ids that stand for examples of the page, from their first use on.
    ids: BTreeMap<&'static str, String>,
    recovery_phrase: String,
    matched: String,
    daemon: Option<Child>,
    /// Where the daemon listens for devices.
    address: String,
    /// The code that was shown last.
    code: String,
}

impl Reader {
    /// Returns a reader who has downloaded two exports.
    fn new() -> Self {
        let home = TestHome::new();
        for folder in ["Downloads", "Documents/exports", "backup"] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        for export in ["chatgpt-export", "claude-export"] {
            archive(export, &home.path().join("Downloads").join(export).with_extension("zip"));
        }
        home.file(".ssh/id_ed25519.pub", SSH_KEY);
        home.file("Downloads/a.json", "[1]");
        for (fixture, folder) in AGENTS {
            copy(&root().join("plugins").join(fixture).join("input"), &home.path().join(folder));
        }
        // No service manager runs here; the tests of `service` check which commands it is given.
        let systemctl = home.file("bin/systemctl", "#!/bin/sh\nexit 0\n");
        fs::set_permissions(systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        let identity = Identity::generate();
        home.file("key.txt", identity.to_string().expose_secret());
        let recipient = identity.to_public().to_string();
        Self {
            home,
            recipient,
            ids: BTreeMap::new(),
            recovery_phrase: String::new(),
            matched: String::new(),
            daemon: None,
            address: String::new(),
            code: String::new(),
        }
    }

    /// Prepares a shell with this line. With `terminal`, the line runs at a terminal of its own.
    fn shell(&self, line: &str, terminal: bool) -> Command {
        let mut shell = Command::new(if terminal { "/usr/bin/script" } else { "/bin/sh" });
        shell.args(if terminal { vec!["-qec", line, "/dev/null"] } else { vec!["-c", line] });
        self.home.set_environment(&mut shell);
        let program = Path::new(env!("CARGO_BIN_EXE_satchel")).parent().unwrap();
        let bin = self.home.path().join("bin");
        shell.env("PATH", format!("{}:{}:/usr/bin:/bin", bin.display(), program.display()));
        shell.env("SATCHEL_PASSPHRASE", PASSPHRASE).env("SATCHEL_DATA_PASSPHRASE", PASSPHRASE);
        shell
            .current_dir(self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        shell
    }

    /// Runs a line and returns what it printed; `input` is what the reader types.
    fn run(&self, line: &str, input: Option<&str>) -> String {
        let mut child = self.shell(line, input.is_some_and(|text| text.ends_with('\n'))).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
        let output: Output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(code(&output), Some(0), "{line}\n{printed}{}", stderr(&output));
        printed + &stderr(&output)
    }

    /// Returns the full id that stands for an example.
    fn id(&self, list: &str, row: usize) -> String {
        let listed: Value =
            serde_json::from_str(&self.run(&format!("satchel {list} list --json"), None)).unwrap();
        let rows = listed.as_array().or_else(|| listed[list].as_array()).unwrap();
        rows[row]["id"].as_str().unwrap().to_owned()
    }

    /// Replaces the ids, the key and the count of the page by those of this reader.
    fn adapt(&mut self, line: &str) -> String {
        let mut line = line.replace(EXAMPLE_RECIPIENT, &self.recipient);
        line = line.replace(EXAMPLE_IMPORTER, packages::NAME).replace(EXAMPLE_AUTHOR, &packages::author());
        // The importer of the tests reads files of this name.
        line = line.replace("notes.json", "a.json");
        for (example, list, row) in EXAMPLE_IDS {
            if line.split(' ').any(|word| word == example) {
                if !self.ids.contains_key(example) {
                    let id = self.id(list, row);
                    self.ids.insert(example, id);
                }
                line = line.replace(example, &self.ids[example]);
            }
        }
        match line.split_once("--expect ") {
            Some((command, _)) => format!("{command}--expect {}", self.matched),
            None => line,
        }
    }

    fn follow(&mut self, line: &str) {
        let command = self.adapt(line);
        // Pages show alternatives that write the same file.
        if let Some((_, output)) = line.split_once("--output bundle") {
            let name = format!("bundle{}", output.split(' ').next().unwrap());
            drop(fs::remove_file(self.home.path().join(name)));
        }
        if line.starts_with("satchel serve") {
            self.serve(&command);
        } else if let Some(file) = command.split(' ').find(|word| word.ends_with(".satchel")) {
            let version = file.trim_end_matches(".satchel").rsplit('-').next().unwrap();
            packages::write_signed(self.home.path(), version);
            self.run(&command, Some(if line.contains("--dry-run") { "" } else { "y\n" }));
        } else if line.contains(" purge ") && !line.contains("--dry-run") {
            let id = command.split(' ').nth(3).unwrap().to_owned();
            self.run(&command, Some(&format!("{id}\n")));
        } else if line.contains("imports undo") && !line.contains("--dry-run")
            || line.contains("imports redo")
            || line.starts_with("satchel mcp install")
        {
            self.run(&command, Some("y\n"));
        } else if line.starts_with("satchel keys change --passphrase") {
            self.run(&command, Some(&format!("{PASSPHRASE}\n{PASSPHRASE}\n")));
        } else if line.contains("--recovery") {
            self.run(&command, Some(&self.recovery_phrase.clone()));
        } else if line.starts_with("satchel devices pair") {
            // With `--json` the command does not wait for the device.
            let opened: Value = serde_json::from_str(&self.run(&format!("{command} --json"), None)).unwrap();
            opened["code"].as_str().unwrap().clone_into(&mut self.code);
        } else if ["satchel pair", "satchel peers", "satchel sync", "satchel conflicts"]
            .iter()
            .any(|begin| line.starts_with(begin))
        {
            let command = command.replace("CODE", &self.code).replace(EXAMPLE_ADDRESS, &self.address);
            let command = command.replace(EXAMPLE_STICK, self.home.path().to_str().unwrap());
            // A file of changes is carried to the machine of the daemon.
            let machine =
                if line.starts_with("satchel sync import") { "" } else { " --data-dir other-machine" };
            self.run(&format!("{command}{machine}"), None);
        } else if line.starts_with("satchel --server") || line.starts_with("satchel apply") {
            self.run(&format!("{command} --data-dir other-machine"), None);
        } else {
            let printed = self.run(&command, None);
            self.remember(&command, &printed);
        }
    }

    /// Keeps what later lines of a page need from the output of this one.
    fn remember(&mut self, command: &str, printed: &str) {
        if let Some((_, rest)) = printed.split_once("--expect ") {
            self.matched = String::from(rest.split_whitespace().next().unwrap());
        }
        if command.starts_with("satchel keys encrypt") {
            let words = |line: &&str| {
                line.split_whitespace().filter(|word| word.chars().all(char::is_lowercase)).count() == 12
            };
            self.recovery_phrase = String::from(printed.lines().find(words).unwrap().trim());
        }
        if command.contains("--output ~/backup/full.zip") {
            self.run("satchel apply ~/backup/full.zip --data-dir other-machine", None);
        }
    }

    /// Starts the daemon of the page and waits until it answers.
    fn serve(&mut self, line: &str) {
        self.stop();
        let line = line.replace(EXAMPLE_LISTEN, "--listen 127.0.0.1:0 --json");
        let mut child = self.shell(&format!("exec {line}"), false).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        if line.ends_with("--json") {
            let ready: Value =
                serde_json::Deserializer::from_reader(stdout).into_iter().next().unwrap().unwrap();
            ready["listening"].as_str().unwrap().clone_into(&mut self.address);
        } else {
            let mut printed = String::new();
            stdout.read_line(&mut printed).unwrap();
            assert!(printed.contains("serving"), "{line}\n{printed}");
        }
        self.daemon = Some(child);
    }

    fn stop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            stop(daemon);
        }
    }
}

/// Follows a page from its first command line to its last.
fn follow(page: &str, imported: bool) {
    let mut reader = Reader::new();
    if imported {
        reader.run("satchel import ~/Downloads/claude-export.zip ~/Downloads/chatgpt-export.zip", None);
    }
    let lines = command_lines(page);
    assert!(!lines.is_empty(), "{page} has no command line");
    for line in &lines {
        reader.follow(line);
    }
    reader.stop();
}

/// The pages with command lines, and whether their reader has imported something already.
const PAGES: [(&str, bool); 14] = [
    ("README.md", false),
    ("daemon/docs/agents.md", true),
    ("daemon/docs/devices.md", true),
    ("daemon/docs/encryption.md", true),
    ("daemon/docs/erase.md", true),
    ("daemon/docs/exports.md", true),
    ("daemon/docs/importers.md", false),
    ("daemon/docs/imports.md", false),
    ("daemon/docs/memories.md", true),
    ("daemon/docs/search.md", true),
    ("daemon/docs/service.md", true),
    ("daemon/docs/signatures.md", true),
    ("daemon/docs/sync.md", true),
    ("daemon/docs/watched-folders.md", true),
];

#[test]
fn every_command_line_of_readme_and_manual_runs() {
    let manual = fs::read_dir(root().join("daemon/docs")).unwrap();
    let manual = manual.map(|entry| format!("daemon/docs/{}", entry.unwrap().file_name().display()));
    for page in manual.filter(|page| !command_lines(page).is_empty()) {
        assert!(PAGES.iter().any(|(known, _)| *known == page), "{page} is not followed");
    }
    std::thread::scope(|scope| {
        for (page, imported) in PAGES {
            scope.spawn(move || follow(page, imported));
        }
    });
}
