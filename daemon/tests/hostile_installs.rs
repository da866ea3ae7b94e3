//! Packages of importers that are broken, forged or made to do harm, given to the program as a person would give them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Output, Stdio},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use satchel_registry::package::{MAX_PACKAGE_BYTES, Package};
use satchel_tests::{
    guests,
    packages::{manifest, signed, unsigned},
};
use serde_json::Value;

use self::home::{LONG, TestHome, code, ended, stderr, stop};

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// Names and versions of the installed importers.
fn installed(home: &TestHome) -> Vec<String> {
    let listed = json(&home.run(&["plugins", "list", "--json"]));
    let plugins = listed["plugins"].as_array().unwrap().clone();
    let ours = plugins.iter().filter(|plugin| plugin["built_in"] == false);
    ours.map(|plugin| format!("{} {}", plugin["name"].as_str().unwrap(), plugin["version"].as_str().unwrap()))
        .collect()
}

/// The files that belong to installed importers.
fn stored(home: &TestHome) -> Vec<String> {
    let folder = home.path().join(".local/share/satchel/plugins");
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "registry.json");
    names.sort();
    names
}

fn package(home: &TestHome, name: &str, package: &Package) -> String {
    home.file(name, package.bytes())
}

/// Expects that a file is refused with these words, and that nothing is installed.
fn refused(home: &TestHome, file: &str, options: &[&str], words: &str) {
    let output = home.run(&[&["plugins", "install", file, "--yes"], options].concat());
    assert_eq!(code(&output), Some(4), "{file}: {}", stderr(&output));
    assert!(stderr(&output).contains(words), "{file}: {}", stderr(&output));
    assert_eq!(stored(home), [""; 0], "{file}");
}

#[test]
fn what_is_no_package_is_refused_and_named() {
    let home = TestHome::new();
    let good = signed("good", "journal", "1.2.3", 1).unwrap();
    let half = &good.bytes()[..good.bytes().len() / 2];
    let wasi = guests::component_importing("wasi:clocks/wall-clock@0.2.0").unwrap();
    let unknown = guests::component_importing("evil:net/socket").unwrap();
    let newer = guests::component_importing("satchel:importer/files@2.0.0").unwrap();
    let pack =
        |component: &[u8]| Package::pack(component, &manifest("journal", "1.2.3")).unwrap().bytes().to_vec();
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("empty", Vec::new(), "its first bytes are not those of WebAssembly"),
        ("text", b"hello".to_vec(), "not a WebAssembly component"),
        ("archive", b"PK\x03\x04".to_vec(), "its first bytes are not those of WebAssembly"),
        ("half", half.to_vec(), "not a WebAssembly component"),
        ("large", vec![0; MAX_PACKAGE_BYTES + 1], "MiB"),
        ("bare", guests::component("good").unwrap(), "plugins build"),
        ("wasi", pack(&wasi), "WASI"),
        ("unknown", pack(&unknown), "evil:net/socket"),
        ("newer", pack(&newer), "2.0.0"),
    ];
    for (name, bytes, words) in cases {
        let file = home.file(&format!("{name}.satchel"), bytes);
        refused(&home, &file, &["--unsigned"], words);
    }
    let missing = home.run(&["plugins", "install", "/no/such/file", "--yes"]);
    assert_eq!(code(&missing), Some(4), "{}", stderr(&missing));
}

#[test]
fn forged_packages_are_refused() {
    let home = TestHome::new();
    let one = signed("good", "journal", "1.2.3", 1).unwrap();
    // The code of another importer under the same signature, and a manifest that was changed.
    let mut code = one.bytes().to_vec();
    let at = code.windows(5).position(|window| window == b"Bread").unwrap();
    code[at] ^= 1;
    let mut text = one.bytes().to_vec();
    let at = text.windows(9).position(|window| window == b"Ana Silva").unwrap();
    text[at] = b'E';
    for (name, bytes) in [("code", code), ("manifest", text)] {
        let file = home.file(&format!("{name}.satchel"), bytes);
        refused(&home, &file, &["--unsigned"], "signature");
    }
    // The manifest promises another importer than the one in the package.
    let component = guests::component_called("good", "journal", "1.2.3").unwrap();
    let lying = Package::pack(&component, &manifest("diaries", "1.2.3")).unwrap();
    refused(&home, &package(&home, "lying.satchel", &lying), &["--unsigned"], "journal");
}

#[test]
fn nothing_is_installed_without_the_word_of_the_person() {
    let home = TestHome::new();
    let unsigned_file = package(&home, "unsigned.satchel", &unsigned("good", "journal", "1.2.3").unwrap());
    refused(&home, &unsigned_file, &[], "--unsigned");
    let signed_file = package(&home, "signed.satchel", &signed("good", "journal", "1.2.3", 1).unwrap());
    // Without a terminal nobody can answer the question.
    let output = home.run(&["plugins", "install", &signed_file]);
    assert_eq!(code(&output), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("--yes"), "{}", stderr(&output));
    let dry = home.run(&["plugins", "install", &signed_file, "--dry-run"]);
    assert_eq!(code(&dry), Some(0), "{}", stderr(&dry));
    assert_eq!(stored(&home), [""; 0]);
    // A built-in importer is replaced only if that is said.
    let component = guests::component_called("good", "chatgpt", "1.2.3").unwrap();
    let taking = Package::pack(&component, &manifest("chatgpt", "1.2.3")).unwrap();
    let taking_file = package(&home, "taking.satchel", &taking);
    refused(&home, &taking_file, &["--unsigned"], "--replace-built-in");
    let agreed = home.run(&["plugins", "install", &taking_file, "--yes", "--unsigned", "--replace-built-in"]);
    assert_eq!(code(&agreed), Some(0), "{}", stderr(&agreed));
    assert_eq!(installed(&home), ["chatgpt 1.2.3"]);
    assert_eq!(code(&home.run(&["plugins", "remove", "chatgpt"])), Some(0));
    assert_eq!(installed(&home), [""; 0]);
}

#[test]
fn another_key_under_the_same_name_is_refused_loudly() {
    let home = TestHome::new();
    let first = package(&home, "first.satchel", &signed("good", "journal", "1.2.3", 1).unwrap());
    assert_eq!(code(&home.run(&["plugins", "install", &first, "--yes"])), Some(0));
    for (name, other) in [
        ("other", signed("good", "journal", "1.3.0", 2).unwrap()),
        ("unsigned", unsigned("good", "journal", "1.3.0").unwrap()),
    ] {
        let file = package(&home, &format!("{name}.satchel"), &other);
        for command in ["install", "upgrade"] {
            let output = home.run(&["plugins", command, &file, "--yes", "--unsigned"]);
            assert_eq!(code(&output), Some(4), "{}", stderr(&output));
            assert!(stderr(&output).contains("REFUSED"), "{}", stderr(&output));
        }
    }
    // An older version that its author signed is not slipped in without a word.
    let newer = package(&home, "newer.satchel", &signed("good", "journal", "1.4.0", 1).unwrap());
    assert_eq!(code(&home.run(&["plugins", "upgrade", &newer, "--yes"])), Some(0));
    let replayed = home.run(&["plugins", "upgrade", &first]);
    assert_eq!(code(&replayed), Some(4), "{}", stderr(&replayed));
    assert_eq!(installed(&home), ["journal 1.4.0", "journal 1.2.3"]);
}

/// A component whose functions take a compiler long.
fn slow_component() -> Vec<u8> {
    let body = "(local.set $a (i64.add (i64.mul (local.get $a) (i64.rotl (local.get $a) (i64.const 7))) (i64.const 3)))";
    let function = format!("(func (param $a i64) (result i64) {} (local.get $a))\n", body.repeat(30));
    let text = format!("{}(func $run (result i32) (global.get $ok))", function.repeat(10_000));
    guests::component_from_wat(&text, 96).unwrap()
}

#[test]
fn a_package_that_compiles_slowly_does_not_stop_the_daemon() {
    let home = TestHome::new();
    let mut about = manifest("hostile", "1.2.3");
    about.description = "Compiles slowly".to_owned();
    let slow = package(&home, "slow.satchel", &Package::pack(&slow_component(), &about).unwrap());
    let daemon = home.serve();
    let mut install = home.command(&["plugins", "install", &slow, "--yes", "--unsigned"]);
    let mut install = install.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The daemon answers others while the package is compiled, whatever becomes of it.
    let mut answers = 0;
    let begun = Instant::now();
    while install.try_wait().unwrap().is_none() && begun.elapsed() < LONG {
        let output = home.run(&["memories", "list", "--json"]);
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        answers += 1;
    }
    let outcome = ended(&mut install).code();
    assert!(answers > 0);
    // How far it gets within its limits depends on the machine; it is installed or refused.
    match outcome {
        Some(0) => assert_eq!(installed(&home), ["hostile 1.2.3"]),
        _ => assert_eq!((outcome, stored(&home)), (Some(4), Vec::new())),
    }
    stop(daemon);
}

/// Returns the folders in `/proc` of the compilers that a daemon runs now.
fn compilers(daemon: &Child) -> Vec<PathBuf> {
    let daemon = daemon.id().to_string();
    let is_compiler = |folder: &PathBuf| {
        // After the name, which ends with a bracket, come the state and the parent.
        let stat = read(&folder.join("stat"));
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split(' ').nth(2));
        parent == Some(&daemon) && read(&folder.join("cmdline")).contains("compile-child")
    };
    fs::read_dir("/proc").unwrap().flatten().map(|process| process.path()).filter(is_compiler).collect()
}

/// Returns the text of a file; empty if its process has ended.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns whether a process may use only 1 GiB of memory, two minutes of processor time, and no core dump.
fn is_limited(process: &Path) -> bool {
    let limits = read(&process.join("limits"));
    let soft =
        |name: &str| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let expected = [("Max data size", "1073741824"), ("Max cpu time", "120"), ("Max core file size", "0")];
    expected.iter().all(|(name, limit)| soft(name) == Some(*limit))
}

#[test]
fn a_compiler_has_limits_and_an_interrupted_install_stops_it() {
    let home = TestHome::new();
    let slow = Package::pack(&slow_component(), &manifest("hostile", "1.2.3")).unwrap();
    let slow = package(&home, "slow.satchel", &slow);
    let daemon = home.serve();
    let mut install = home.command(&["plugins", "install", &slow, "--yes", "--unsigned"]);
    let mut install = install.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !compilers(&daemon).iter().any(|compiler| is_limited(compiler)) {
        assert!(
            install.try_wait().unwrap().is_none() && begun.elapsed() < LONG,
            "nothing is compiled within limits"
        );
    }
    kill_process(Pid::from_child(&install), Signal::INT).unwrap();
    assert_eq!(ended(&mut install).code(), Some(130));
    assert!(compilers(&daemon).is_empty());
    assert_eq!(stored(&home), [""; 0]);
    let good = package(&home, "good.satchel", &signed("good", "journal", "1.2.3", 1).unwrap());
    assert_eq!(code(&home.run(&["plugins", "install", &good, "--yes"])), Some(0));
    assert_eq!(installed(&home), ["journal 1.2.3"]);
    stop(daemon);
}

#[test]
fn two_installs_at_once_end_in_one_set() {
    let home = TestHome::new();
    let daemon = home.serve();
    let names = ["journal", "diaries", "letters", "journal"];
    let mut running: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let file = package(&home, &format!("{at}.satchel"), &signed("good", name, "1.2.3", 1).unwrap());
            let mut command = home.command(&["plugins", "install", &file, "--yes"]);
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in &mut running {
        assert!(ended(child).success());
    }
    assert_eq!(installed(&home), ["diaries 1.2.3", "journal 1.2.3", "letters 1.2.3"]);
    assert_eq!(stored(&home).len(), 3);
    stop(daemon);
    assert_eq!(installed(&home), ["diaries 1.2.3", "journal 1.2.3", "letters 1.2.3"]);
}

#[test]
fn a_killed_install_leaves_the_old_or_the_new_set() {
    let home = TestHome::new();
    let first = package(&home, "first.satchel", &signed("good", "journal", "1.2.3", 1).unwrap());
    let begun = Instant::now();
    assert_eq!(code(&home.run(&["plugins", "install", &first, "--yes"])), Some(0));
    let whole = begun.elapsed();
    let rounds: u32 = std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let steps = 12 * rounds;
    for step in 0..steps {
        let version = format!("1.{}.{}", 3 + step / 10 % 7, step % 10);
        let file = package(&home, "next.satchel", &signed("good", "journal", &version, 1).unwrap());
        let before = installed(&home);
        let mut child = home.command(&["plugins", "upgrade", &file, "--yes"]);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::park_timeout(whole * step / steps);
        drop(child.kill());
        child.wait().unwrap();
        let after = installed(&home);
        let added = after.iter().filter(|one| !before.contains(one)).count();
        assert!(added <= 1 && before.iter().all(|one| after.contains(one)), "{before:?} {after:?}");
        // Nothing is stored that is not listed, and what is listed can be used.
        assert_eq!(stored(&home).len(), after.len(), "{:?}", stored(&home));
        let folder = home.file(&format!("export{step}/a.json"), "{}");
        let import = json(&home.run(&["import", "--json", "--again", &folder]));
        assert_eq!(import["imports"][0]["status"], "completed_with_skips", "{import}");
        if added == 1 {
            assert_eq!(code(&home.run(&["plugins", "remove", "journal", "--version", &version])), Some(0));
        }
    }
}
