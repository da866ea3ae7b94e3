//! Pairing a second machine and working with its daemon from there, as a person does it. Each home directory stands for
//! a machine.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
mod paired;

use home::{TestHome, code, stderr, stop};
use paired::{Listening, fails, json, ok};

#[test]
fn a_paired_machine_works_with_the_daemon_until_it_is_revoked() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    let added = json(&other, &["--server", "desk", "memories", "add", "Keeps bees", "--type", "fact"]);
    let id = added["memory"]["id"].as_str().unwrap();
    assert!(ok(&desk.home, &["memories", "show", id]).contains("Keeps bees"));
    let history = ok(&desk.home, &["memories", "history", id]);
    assert!(history.contains("laptop"), "the history names the device: {history}");
    assert!(ok(&other, &["--server", "desk", "status"]).contains("memories"));
    let listed = json(&desk.home, &["devices", "list"]);
    assert_eq!(listed["devices"][0]["name"], "laptop");
    ok(&desk.home, &["devices", "rename", "laptop", "old laptop"]);
    let log = ok(&desk.home, &["devices", "log", "old laptop"]);
    assert!(log.contains("MemoryService/CreateMemory") && !log.contains("bees"), "{log}");
    ok(&desk.home, &["devices", "revoke", "old laptop", "--reason", "sold"]);
    let refused = fails(&other, &["--server", "desk", "memories", "list"]);
    assert!(refused.contains("revoked"), "{refused}");
    assert!(fails(&desk.home, &["devices", "rename", "old laptop", "x"]).contains("was revoked"));
    assert_eq!(json(&desk.home, &["devices", "list"])["devices"].as_array().unwrap().len(), 0);
    desk.stop();
}

#[test]
fn a_reader_reads_its_part_and_changes_nothing() {
    let desk = Listening::start();
    ok(&desk.home, &["memories", "add", "Sails on Sundays", "--tag", "sport"]);
    ok(&desk.home, &["memories", "add", "Takes tablets", "--tag", "health"]);
    let other = desk.pair(&["--as", "tablet", "--role", "reader", "--deny-tag", "health"]);
    let listed = ok(&other, &["--server", "desk", "memories", "list"]);
    assert!(listed.contains("Sails") && !listed.contains("tablets"), "{listed}");
    let refused = fails(&other, &["--server", "desk", "memories", "add", "Likes tea"]);
    assert!(refused.contains("permission") && refused.contains("memories-write"), "{refused}");
    // A change of the policy holds from the next call on.
    ok(&desk.home, &["devices", "update", "tablet", "--clear", "deny-tag"]);
    assert!(ok(&other, &["--server", "desk", "memories", "list"]).contains("tablets"));
    desk.stop();
}

#[test]
fn codes_work_once_and_only_for_the_daemon_that_showed_them() {
    let (desk, stranger) = (Listening::start(), Listening::start());
    let first = desk.code(&["--as", "laptop"]);
    let other = TestHome::new();
    // Another daemon at that address: the fingerprint differs, and the token is not sent there.
    let refused = fails(&other, &["pair", &first, "--address", &stranger.address]);
    assert!(refused.contains("not the daemon"), "{refused}");
    let mistyped: String = first.chars().rev().collect();
    assert!(fails(&other, &["pair", &mistyped, "--address", &desk.address]).contains("code"));
    assert!(fails(&other, &["pair", &first]).contains("--address"));
    ok(&other, &["pair", &first, "--address", &desk.address, "--as", "desk"]);
    let third = TestHome::new();
    let used = fails(&third, &["pair", &first, "--address", &desk.address]);
    assert!(used.contains("used"), "{used}");
    // A window that is replaced is closed.
    let (old, new) = (desk.code(&["--as", "a"]), desk.code(&["--as", "b"]));
    fails(&third, &["pair", &old, "--address", &desk.address]);
    ok(&third, &["pair", &new, "--address", &desk.address, "--as", "desk"]);
    let names = ok(&desk.home, &["devices", "list", "--json"]);
    assert!(names.contains("\"b\"") && !names.contains("\"a\""), "{names}");
    stranger.stop();
    desk.stop();
}

#[test]
fn a_daemon_that_moves_or_is_away_is_found_again() {
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    let home = desk.stop();
    let away = other.run(&["--server", "desk", "status"]);
    assert_eq!(code(&away), Some(6), "{}", stderr(&away));
    assert!(stderr(&away).contains("connection refused"), "{}", stderr(&away));
    let desk = Listening::start_in(home, "127.0.0.2:0");
    ok(&other, &["servers", "set-address", "desk", &desk.address]);
    assert!(ok(&other, &["--server", "desk", "status"]).contains("memories"));
    assert!(ok(&other, &["servers", "show", "desk"]).contains(&desk.address));
    ok(&other, &["servers", "remove", "desk"]);
    assert!(fails(&other, &["--server", "desk", "status"]).contains("satchel pair"));
    desk.stop();
}

#[test]
fn keys_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Listening::start();
    let other = desk.pair(&["--as", "laptop"]);
    for (home, folder) in [(&other, "servers"), (&desk.home, "devices")] {
        let folder = home.path().join(".local/share/satchel").join(folder);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
        }
    }
    desk.stop();
}

#[test]
fn tokens_are_shown_once_and_backups_stay_on_their_machine() {
    let desk = Listening::start();
    let token = json(&desk.home, &["devices", "token", "--as", "script", "--role", "reader", "--for", "1d"]);
    let secret = token["token"].as_str().unwrap();
    assert!(!ok(&desk.home, &["devices", "show", "script", "--json"]).contains(secret));
    let refused = fails(&desk.home, &["devices", "token", "--as", "endless", "--for", "3000d"]);
    assert!(refused.contains("366"), "{refused}");
    let other = desk.pair(&["--as", "laptop"]);
    let backup = other.path().join("backup.zip");
    let refused = fails(&other, &["--server", "desk", "backup", backup.to_str().unwrap()]);
    assert!(refused.contains("machine"), "{refused}");
    desk.stop();
}

#[test]
fn a_daemon_without_a_port_pairs_nobody() {
    let home = TestHome::new();
    let daemon = home.serve();
    let refused = fails(&home, &["devices", "pair", "--as", "laptop"]);
    assert!(refused.contains("--listen"), "{refused}");
    stop(daemon);
}
