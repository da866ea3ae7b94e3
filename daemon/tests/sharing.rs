//! Tests data that leaves the store, as typed: selections, stripped exports, notes and signing keys.

#![expect(clippy::unwrap_used, reason = "tests")]

mod home;

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
    time::Instant,
};

use home::{LONG, TestHome, code, ended, large_export, stderr, stop};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn stored() -> TestHome {
    let home = TestHome::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export");
    assert_eq!(code(&home.run(&["import", sample.to_str().unwrap()])), Some(0));
    home
}

fn done(output: &Output) -> String {
    assert_eq!(code(output), Some(0), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&done(output)).unwrap()
}

#[test]
fn a_selection_is_always_marked_as_not_a_copy() {
    let home = stored();
    let out = home.path().join("part");
    let out = out.to_str().unwrap();
    let words = ["export", "--output", out, "--type", "instruction,identity", "--strip-identifiers"];
    let printed = done(&home.run(&words));
    let says = "a selection by type, without identifiers; not a copy of the store";
    assert!(printed.contains(says) && printed.contains("0 conversations"), "{printed}");
    assert!(done(&home.run(&["verify", out])).contains(says));
    let verdict = json(&home.run(&["verify", "--json", "--strict", out]));
    assert_eq!((&verdict["valid"], &verdict["selection"]["by"][0]), (&true.into(), &"type".into()));
    let listed = json(&home.run(&["exports", "list", "--json"]));
    assert_eq!(
        (&listed["exports"][0]["stripped"], &listed["exports"][0]["selected_by"][0]),
        (&true.into(), &"type".into())
    );
    let store: Value =
        serde_json::from_slice(&fs::read(Path::new(out).join("memory-store.json")).unwrap()).unwrap();
    let kinds: Vec<&str> =
        store["memories"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert!(
        !kinds.is_empty() && kinds.iter().all(|kind| ["instruction", "identity"].contains(kind)),
        "{kinds:?}"
    );
}

#[test]
fn invalid_selections_are_usage_errors() {
    let home = stored();
    let out = home.path().join("out");
    let out = out.to_str().unwrap();
    for words in [["--incremental", "--strip-identifiers"], ["--incremental", "--since=7d"]] {
        let output = home.run(&[&["export", "--output", out], words.as_slice()].concat());
        assert_eq!(code(&output), Some(2), "{}", stderr(&output));
    }
    let output = home.run(&["export", "--output", out, "--format", "memu", "--tag", "work"]);
    assert!(
        code(&output) == Some(2) && stderr(&output).contains("must be PAM or Markdown"),
        "{}",
        stderr(&output)
    );
    let output = home.run(&["export", "--output", out, "--format", "markdown", "--incremental"]);
    assert!(code(&output) == Some(2) && stderr(&output).contains("only PAM knows"), "{}", stderr(&output));
    assert!(!Path::new(out).exists());
}

#[test]
fn a_markdown_export_includes_attachments() {
    let home = stored();
    let out = home.path().join("notes");
    let output =
        home.run(&["export", "--output", out.to_str().unwrap(), "--format", "markdown", "--attachments"]);
    let printed = done(&output);
    assert!(printed.contains("format         markdown"), "{printed}");
    assert!(stderr(&output).contains("is not signed"), "{}", stderr(&output));
    for name in ["index.md", "memories/instruction.md", "conversations", "attachments"] {
        assert!(out.join(name).exists(), "{name}");
    }
}

/// Returns the names in a folder that belong neither to the test nor to the program.
fn written(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let folders = [".local", ".config", "large"];
    names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !folders.contains(&name.as_str()))
        .collect()
}

/// Interrupts an export as soon as its first bytes are on the disk: once without a daemon, and once in a daemon,
/// which must keep running.
#[test]
fn an_interrupted_export_leaves_no_files() {
    let home = TestHome::new();
    let export = large_export(&home, 6_000);
    assert_eq!(code(&home.run(&["import", &export])), Some(0));
    let out = home.path().join("out");
    let words = ["export", "--output", out.to_str().unwrap()];
    for with_daemon in [false, true] {
        let daemon = with_daemon.then(|| home.serve());
        let mut exporting = home.command(&words).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while written(home.path()).is_empty() {
            assert!(begun.elapsed() < LONG && exporting.try_wait().unwrap().is_none(), "nothing is written");
        }
        kill_process(Pid::from_child(&exporting), Signal::INT).unwrap();
        assert_eq!(ended(&mut exporting).code(), Some(130));
        assert_eq!(written(home.path()), Vec::<String>::new());
        let listed = json(&home.run(&["exports", "list", "--json"]));
        assert_eq!(listed["exports"].as_array().unwrap().len(), 0);
        if let Some(mut daemon) = daemon {
            assert!(daemon.try_wait().unwrap().is_none(), "the daemon ended");
            stop(daemon);
        }
    }
}

#[test]
fn a_rotated_key_is_accepted_through_its_predecessor() {
    let home = stored();
    let out = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let none = home.run(&["keys", "list"]);
    assert!(
        done(&none).is_empty() && stderr(&none).contains("the first export creates one"),
        "{}",
        stderr(&none)
    );
    let old = json(&home.run(&["export", "--json", "--output", &out("old.zip")]))["signer"]
        .as_str()
        .unwrap()
        .to_owned();
    let table = done(&home.run(&["keys", "rotate"]));
    assert!(table.contains(&old) && table.contains("active") && table.contains("retired"), "{table}");
    let new = json(&home.run(&["export", "--json", "--output", &out("new.zip")]))["signer"]
        .as_str()
        .unwrap()
        .to_owned();
    let public = json(&home.run(&["keys", "export-public"]));
    assert_eq!(
        (&public["keys"][0]["public_key"], &public["keys"][1]["public_key"]),
        (&new.as_str().into(), &old.as_str().into())
    );
    assert_eq!(public["keys"][1]["successor"]["public_key"], new);
    assert_eq!(public["did"], format!("did:key:{new}"));
    for (bundle, signer, exit) in
        [("old.zip", &old, 0), ("new.zip", &new, 0), ("new.zip", &old, 0), ("old.zip", &new, 1)]
    {
        let output = home.run(&["verify", "--strict", "--signer", signer, &out(bundle)]);
        assert_eq!(
            code(&output),
            Some(exit),
            "{bundle} by {signer}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}
