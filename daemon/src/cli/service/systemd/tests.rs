#![expect(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeMap, fs, process::Command};

use clap::Parser;

use super::*;
use crate::cli::args::Cli;

const PROGRAM: &str = "/home/ana/my programs/100% $HOME ü/satchel";
const HOSTILE: &str = r#"/home/ana/my "data" 100% $HOME \n 'x' ü;#"#;

fn spec(executable: &str, words: &[&str]) -> ServiceSpec {
    ServiceSpec {
        executable: executable.to_owned(),
        words: words.iter().map(|&word| word.to_owned()).collect(),
        socket: "/home/ana/100%/satchel.sock".to_owned(),
    }
}

/// Parses sections, keys and values as described in systemd.syntax(7).
fn read(text: &str) -> BTreeMap<(String, String), String> {
    let mut section = String::new();
    let mut read = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else {
            let (key, value) = line.split_once('=').unwrap();
            let before = read.insert((section.clone(), key.to_owned()), value.to_owned());
            assert_eq!(before, None, "{key} twice");
        }
    }
    read
}

/// Splits a command line into words as described in systemd.service(5).
fn words(line: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.chars().peekable());
    while rest.next_if_eq(&'"').is_some() {
        let mut word = String::new();
        loop {
            match rest.next().unwrap() {
                '"' => break,
                '\\' => word.push(rest.next().unwrap()),
                '%' => word.extend(rest.next_if_eq(&'%')),
                '$' if !words.is_empty() => word.extend(rest.next_if_eq(&'$')),
                c => word.push(c),
            }
        }
        words.push(word);
        rest.next_if_eq(&' ');
    }
    assert_eq!(rest.next(), None, "{line}");
    words
}

fn value<'a>(unit: &'a BTreeMap<(String, String), String>, section: &str, key: &str) -> &'a str {
    unit.get(&(section.to_owned(), key.to_owned())).map(String::as_str).unwrap_or_default()
}

#[test]
fn the_units_contain_the_expected_settings() {
    let [service, socket] =
        files(&spec("/usr/bin/satchel", &["serve"]), Path::new("/u")).unwrap().try_into().unwrap();
    assert_eq!((service.path, socket.path), ("/u/satchel.service".into(), "/u/satchel.socket".into()));
    let service = read(&service.text);
    for (key, expected) in [
        ("Type", "notify"),
        ("WatchdogSec", "60"),
        ("Restart", "on-failure"),
        ("TimeoutStopSec", "30"),
        ("NoNewPrivileges", "yes"),
        ("ExecReload", "/bin/kill -HUP $MAINPID"),
        ("UMask", "0077"),
        ("RestrictAddressFamilies", "AF_UNIX"),
        ("RestrictNamespaces", "yes"),
        ("SystemCallFilter", "@system-service"),
        ("SystemCallErrorNumber", "EPERM"),
        ("MemoryMax", "2G"),
        ("LimitCORE", "0"),
    ] {
        assert_eq!(value(&service, "Service", key), expected, "{key}");
    }
    assert_eq!(value(&service, "Unit", "Requires"), "satchel.socket");
    assert_eq!(value(&service, "Unit", "StartLimitBurst"), "5");
    assert_eq!(value(&service, "Install", "WantedBy"), "default.target");
    // Importers are compiled at run time, and exports may be anywhere.
    for key in ["MemoryDenyWriteExecute", "ProtectHome", "ProtectSystem", "PrivateTmp"] {
        assert_eq!(value(&service, "Service", key), "", "{key}");
    }
    let socket = read(&socket.text);
    assert_eq!(value(&socket, "Socket", "ListenStream"), "/home/ana/100%%/satchel.sock");
    assert_eq!(value(&socket, "Socket", "SocketMode"), "0600");
    assert_eq!(value(&socket, "Install", "WantedBy"), "sockets.target");
}

#[test]
fn any_path_stays_a_single_word() {
    let typed = ["serve", "--data-dir", HOSTILE];
    let [service, _] = files(&spec(PROGRAM, &typed), Path::new("/u")).unwrap().try_into().unwrap();
    let service = read(&service.text);
    let read = words(value(&service, "Service", "ExecStart"));
    assert_eq!(read, [&[PROGRAM], &typed[..]].concat());
    assert!(Cli::try_parse_from(&read).is_ok());
}

#[test]
fn a_program_that_systemd_cannot_start_is_rejected() {
    for program in ["/a\"b", "/a'b", "/a\\b"] {
        let error = files(&spec(program, &["serve"]), Path::new("/u")).unwrap_err();
        assert!(error.to_string().contains("move "), "{error}");
    }
}

/// If systemd is installed, lets it verify the units.
#[test]
fn systemd_accepts_the_units() {
    let folder = tempfile::Builder::new().prefix("100% $HOME ü ").tempdir().unwrap();
    let program = folder.path().join("satchel");
    fs::copy("/bin/true", &program).unwrap();
    let typed = ["serve", "--data-dir", HOSTILE];
    let files = files(&spec(program.to_str().unwrap(), &typed), folder.path()).unwrap();
    for file in &files {
        fs::write(&file.path, &file.text).unwrap();
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "--man=no", "verify"]).args(files.iter().map(|file| &file.path));
    let Ok(output) = verify.env("XDG_RUNTIME_DIR", folder.path()).env("HOME", folder.path()).output() else {
        // The tests above do not depend on it.
        return;
    };
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    assert!(!printed.contains("satchel."), "{printed}");
}

/// If systemd is installed, lets it rate the security of a unit without running it. Other versions may not print
/// JSON.
#[test]
fn systemd_confirms_the_sandboxing_options() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(&spec("/bin/true", &["serve"]), folder.path()).unwrap();
    for file in &files {
        fs::write(&file.path, &file.text).unwrap();
    }
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["--offline=true", "--no-pager", "--json=short", "security"]).arg(&files[0].path);
    let Ok(output) = analyze.env("XDG_RUNTIME_DIR", folder.path()).env("HOME", folder.path()).output() else {
        return;
    };
    let Ok(rows) = serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout) else { return };
    let closed = |field: &str| rows.iter().any(|row| row["json_field"] == field && row["set"] == true);
    for field in [
        "NoNewPrivileges",
        "LockPersonality",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "RestrictAddressFamilies_AF_INET_INET6",
        "RestrictAddressFamilies_AF_PACKET",
        "RestrictAddressFamilies_AF_NETLINK",
        "RestrictNamespaces_user",
        "RestrictNamespaces_net",
        "SystemCallArchitectures",
        "SystemCallFilter_module",
        "SystemCallFilter_mount",
        "SystemCallFilter_debug",
        "SystemCallFilter_raw_io",
        "SystemCallFilter_reboot",
        "SystemCallFilter_clock",
        "KeyringMode",
        "UMask",
    ] {
        assert!(closed(field), "{field} is open");
    }
}
