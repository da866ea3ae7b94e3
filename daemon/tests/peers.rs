//! Machines of one person that keep their stores in step, as the person sets that up. Each home directory stands for a machine.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
mod paired;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use home::{TestHome, code, stderr, stop};
use paired::{Listening, fails, json, ok};

fn demo(name: &str) -> String {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
    folder.to_str().unwrap().to_owned()
}

/// Lets the machine `from` connect to the daemon of `to`.
fn add_peer(from: &TestHome, name: &str, to: &Listening) {
    let code = to.code(&["--as", name, "--role", "peer"]);
    ok(from, &["peers", "add", &code, "--address", &to.address, "--as", "desk"]);
}

fn digest(home: &TestHome) -> String {
    let status = json(home, &["sync", "status"]);
    status["digest"].as_str().unwrap().to_owned()
}

fn add(home: &TestHome, text: &str) -> String {
    json(home, &["memories", "add", text])["memory"]["id"].as_str().unwrap().to_owned()
}

fn memories(home: &TestHome) -> BTreeSet<String> {
    let listed = json(home, &["memories", "list", "--all"]);
    let ids = listed["memories"].as_array().unwrap().iter();
    ids.map(|memory| memory["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn two_machines_come_in_step_and_stay_so() {
    let desk = Listening::start();
    let laptop = TestHome::new();
    let daemon = laptop.serve();
    ok(&desk.home, &["import", &demo("chatgpt-export")]);
    let note = add(&laptop, "Keeps bees");
    add_peer(&laptop, "laptop", &desk);
    ok(&laptop, &["sync", "--wait"]);
    ok(&desk.home, &["sync", "--wait"]);
    assert_eq!(digest(&laptop), digest(&desk.home));
    assert!(memories(&desk.home).contains(&note));
    let titles = |home: &TestHome| ok(home, &["conversations", "list", "--all"]);
    assert_eq!(titles(&laptop), titles(&desk.home));

    let status = json(&laptop, &["sync", "status"]);
    let peer = &status["peers"][0];
    assert_eq!((peer["name"].as_str(), peer["in_step"].as_bool()), (Some("desk"), Some(true)), "{status}");
    assert_eq!((peer["behind"].as_i64(), peer["conflicts"].as_i64()), (Some(0), Some(0)), "{status}");
    assert!(peer["last_contact"].is_string() && peer["last_error"].is_null(), "{status}");
    let shown = ok(&laptop, &["peers", "show", "desk"]);
    assert!(shown.contains("in step") && shown.contains(&desk.address), "{shown}");
    assert!(ok(&desk.home, &["peers", "list"]).contains("incoming"));

    // Another machine's edit is the owner's, and an undo there undoes it everywhere.
    ok(&desk.home, &["memories", "edit", &note, "--content", "Keeps bees and hens"]);
    ok(&desk.home, &["sync", "--wait"]);
    assert!(ok(&laptop, &["memories", "show", &note]).contains("hens"));

    ok(&laptop, &["peers", "pause", "desk"]);
    ok(&desk.home, &["memories", "edit", &note, "--content", "Keeps hens"]);
    ok(&laptop, &["memories", "edit", &note, "--content", "Keeps bees only"]);
    ok(&laptop, &["peers", "resume", "desk"]);
    ok(&laptop, &["sync", "--wait"]);
    ok(&desk.home, &["sync", "--wait"]);
    for home in [&laptop, &desk.home] {
        let conflicts = ok(home, &["conflicts"]);
        assert!(conflicts.contains("Keeps hens") && conflicts.contains("Keeps bees only"), "{conflicts}");
    }
    ok(&laptop, &["memories", "edit", &note, "--content", "Keeps both"]);
    ok(&laptop, &["sync", "--wait"]);
    assert_eq!(json(&laptop, &["conflicts"])["conflicts"].as_array().unwrap().len(), 0);
    assert_eq!(digest(&laptop), digest(&desk.home));

    let refused = fails(&laptop, &["sync", "nobody"]);
    assert!(refused.contains("peers list"), "{refused}");
    ok(&laptop, &["peers", "remove", "desk"]);
    let left = memories(&laptop);
    assert!(left.contains(&note), "what it has, it keeps");
    stop(daemon);
    desk.stop();
}

#[test]
fn changes_are_exchanged_once_without_a_daemon_on_one_side() {
    let desk = Listening::start();
    let laptop = TestHome::new();
    let note = add(&laptop, "Plays the oboe");
    let code_of_a_peer = desk.code(&["--as", "nobody", "--role", "peer"]);
    let refused = fails(&laptop, &["pair", &code_of_a_peer, "--address", &desk.address]);
    assert!(refused.contains("peers add"), "{refused}");
    ok(&desk.home, &["peers", "remove", "nobody"]);
    add_peer(&laptop, "laptop", &desk);
    assert!(!memories(&desk.home).contains(&note));
    ok(&laptop, &["sync"]);
    assert!(memories(&desk.home).contains(&note));
    let home = desk.stop();
    let away = laptop.run(&["sync"]);
    assert_eq!(code(&away), Some(4), "{}", stderr(&away));
    assert!(String::from_utf8_lossy(&away.stdout).contains("connection refused"), "{away:?}");
    drop(home);
}

#[test]
fn a_backup_that_is_restored_loses_nothing_and_forks_nothing() {
    let desk = Listening::start();
    let laptop = TestHome::new();
    let first = add(&laptop, "Before the backup");
    add_peer(&laptop, "laptop", &desk);
    ok(&laptop, &["sync"]);
    let backup = laptop.path().join("backup.zip");
    ok(&laptop, &["backup", backup.to_str().unwrap()]);
    let second = add(&laptop, "After the backup");
    ok(&laptop, &["sync"]);
    // The machine is lost. Another one gets the backup, and pairs anew.
    let restored = TestHome::new();
    ok(&restored, &["restore", backup.to_str().unwrap()]);
    let third = add(&restored, "After the restore");
    ok(&desk.home, &["peers", "remove", "laptop"]);
    add_peer(&restored, "new laptop", &desk);
    ok(&restored, &["sync", "--wait"]);
    for home in [&restored, &desk.home] {
        let found = memories(home);
        for id in [&first, &second, &third] {
            assert!(found.contains(id), "{id}");
        }
    }
    assert_eq!(digest(&restored), digest(&desk.home));
    desk.stop();
}

/// Every acknowledged change is in both stores in the end, wherever the daemons were killed.
#[test]
fn daemons_that_are_killed_lose_nothing() {
    let rounds: u64 =
        std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let mut desk = Listening::start();
    let laptop = TestHome::new();
    add_peer(&laptop, "laptop", &desk);
    let mut acknowledged = BTreeSet::new();
    ok(&desk.home, &["import", &demo("claude-export")]);
    for round in 0..rounds {
        let mut daemon = laptop.serve();
        acknowledged.insert(add(&desk.home, &format!("On the desk, round {round}")));
        acknowledged.insert(add(&laptop, &format!("On the laptop, round {round}")));
        // Somewhere in the exchange.
        thread::sleep(Duration::from_millis(round * 37 % 150));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        if round % 2 == 1 {
            let address = desk.address.clone();
            desk = Listening::start_in(desk.kill(), &address);
        }
    }
    let daemon = laptop.serve();
    ok(&laptop, &["sync", "--wait"]);
    stop(daemon);
    for home in [&laptop, &desk.home] {
        let found = memories(home);
        let missing: Vec<&String> = acknowledged.difference(&found).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
    assert_eq!(digest(&laptop), digest(&desk.home));
    let checked = laptop.run(&["doctor"]);
    assert_eq!(code(&checked), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
    desk.stop();
}

/// Returns whether a file below a folder contains a text.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_on_disk(&path, text);
        }
        path.is_file() && fs::read(&path).unwrap().windows(text.len()).any(|some| some == text.as_bytes())
    })
}

/// A machine that gets a part has exactly that in the end, wherever its daemon was killed.
#[test]
fn a_daemon_that_is_killed_while_it_takes_out_a_record_goes_on() {
    let rounds: u64 =
        std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let desk = Listening::start();
    let laptop = TestHome::new();
    let pairing = desk.code(&["--as", "laptop", "--role", "peer", "--tag", "work"]);
    ok(&laptop, &["peers", "add", &pairing, "--address", &desk.address, "--as", "desk"]);
    let texts: Vec<String> = (0..4).map(|number| format!("xylophone-{number}-of-the-desk")).collect();
    let ids: Vec<String> = texts.iter().map(|text| add(&desk.home, text)).collect();
    let own = add(&laptop, "Was written here");
    let retag = |id: &str, tag: &str| drop(ok(&desk.home, &["memories", "edit", id, "--tag", tag]));
    ids.iter().for_each(|id| retag(id, "work"));
    ok(&laptop, &["sync"]);
    for round in 0..rounds {
        let mut daemon = laptop.serve();
        for (number, id) in (0..).zip(&ids) {
            retag(id, if (round + number) % 2 == 0 { "home" } else { "work" });
        }
        // Somewhere while records are hidden, the store is closed, or written anew.
        thread::sleep(Duration::from_millis(round * 53 % 400));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }
    for (number, id) in ids.iter().enumerate() {
        retag(id, if number == 0 { "work" } else { "home" });
    }
    // Each start clears the disk of what an exchange has hidden.
    for _ in 0..3 {
        ok(&laptop, &["sync"]);
    }
    assert_eq!(memories(&laptop), BTreeSet::from([own, ids[0].clone()]));
    assert!(is_on_disk(laptop.path(), &texts[0]));
    for text in &texts[1..] {
        assert!(!is_on_disk(laptop.path(), text), "{text}");
    }
    assert_eq!(memories(&desk.home).len(), 5);
    let checked = laptop.run(&["doctor"]);
    assert_eq!(code(&checked), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
    desk.stop();
}

/// Two machines that can no longer reach each other. Importing a file may be interrupted at any time, and repeated.
#[test]
fn changes_travel_on_a_stick_also_if_reading_them_is_killed() {
    let desk = Listening::start();
    let laptop = TestHome::new();
    add_peer(&laptop, "laptop", &desk);
    let stick = laptop.path().join("for-laptop.age");
    let stick = stick.to_str().unwrap();
    let refused = fails(&desk.home, &["sync", "export", stick, "--for", "laptop"]);
    assert!(refused.contains("satchel sync"), "{refused}");
    ok(&laptop, &["sync"]);
    ok(&desk.home, &["import", &demo("chatgpt-export")]);
    ok(&desk.home, &["import", &demo("claude-export")]);
    let written = json(&desk.home, &["sync", "export", stick, "--for", "laptop"]);
    assert!(written["changes"].as_u64().unwrap() > 3 && written["files"] == 2, "{written}");
    let refused = fails(&desk.home, &["sync", "export", stick, "--for", "laptop"]);
    assert!(refused.contains("exists"), "{refused}");
    for delay in [0, 10, 30, 60, 100] {
        let mut reading = laptop.command(&["sync", "import", stick]).spawn().unwrap();
        thread::sleep(Duration::from_millis(delay));
        // It may have ended by itself.
        drop(reading.kill());
        reading.wait().unwrap();
    }
    let read = json(&laptop, &["sync", "import", stick]);
    assert_eq!((&read["peer"], &read["problem"]), (&"desk".into(), &serde_json::Value::Null), "{read}");
    assert_eq!(digest(&laptop), digest(&desk.home));
    let checked = laptop.run(&["doctor"]);
    assert_eq!(code(&checked), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));

    let note = add(&laptop, "Written on the train");
    let back = laptop.path().join("for-desk.age");
    let back = back.to_str().unwrap();
    let printed = ok(&laptop, &["sync", "export", back, "--for", "desk"]);
    assert!(printed.contains("1 change") && printed.contains("0 attachments"), "{printed}");
    let printed = ok(&desk.home, &["sync", "import", back]);
    assert!(printed.contains("1 new change") && printed.contains("laptop"), "{printed}");
    assert!(memories(&desk.home).contains(&note));
    let refused = fails(&laptop, &["sync", "import", back]);
    assert!(
        refused.contains("for-desk.age") && refused.contains("not encrypted for this store"),
        "{refused}"
    );
    let refused = fails(&laptop, &["sync", "import", &demo("chatgpt-export/user.json")]);
    assert!(refused.contains("user.json") && refused.contains("no file of changes"), "{refused}");
    desk.stop();
}

#[test]
fn the_keys_of_peers_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Listening::start();
    let laptop = TestHome::new();
    add_peer(&laptop, "laptop", &desk);
    ok(&laptop, &["sync"]);
    let folder = laptop.path().join(".local/share/satchel/peers");
    for folder in [folder.clone(), folder.join("servers")] {
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(
                entry.metadata().unwrap().permissions().mode() & 0o077,
                0,
                "{}",
                entry.path().display()
            );
        }
    }
    assert!(folder.join("series.json").is_file());
    desk.stop();
}
