//! Machines with a network between them: pairing and use across it, a link that is cut, addresses that change, clocks
//! that differ, certificates that end, and three stores on a network that is slow and loses packets. The machines are network namespaces, so
//! these tests need root.

#![expect(clippy::unwrap_used, reason = "tests")]

mod certificates;
mod follower;
#[expect(dead_code, reason = "other tests use the rest of it")]
#[path = "../home/mod.rs"]
mod home;
mod network;
mod peers;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod three_hosts;
#[cfg(target_os = "linux")]
mod tunnel;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use follower::Follower;
use home::{code, ended, stderr};
use network::{DESK, LAPTOP, Network, address, wait_for};

/// Within this time a command ends if the daemon cannot be reached: an address may take 5 s.
const UNREACHABLE: Duration = Duration::from_secs(15);
/// Within this time a command ends that was under way when the link was cut: pings find that out.
const CUT: Duration = Duration::from_mins(1);
/// Conversations of an export that takes some seconds.
const CONVERSATIONS: usize = 6_000;
/// The address of the daemon after a move.
const MOVED: &str = "10.77.0.9";
const UNREACHABLE_CODE: Option<i32> = Some(6);
const FAILED_CODE: Option<i32> = Some(4);

#[test]
fn a_paired_machine_works_across_the_network_until_it_is_revoked() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let daemon = desk.serve();
    network.pair(&[]);
    laptop.ok(&["--server", "desk", "memories", "add", "Keeps bees", "--type", "fact"]);
    assert!(desk.ok(&["memories", "list"]).contains("Keeps bees"));
    let export = home::large_export(&laptop.home, 3);
    laptop.ok(&["--server", "desk", "import", &export]);
    assert_eq!(
        desk.json(&["conversations", "list"])["conversations"].as_array().map(Vec::len),
        Some(3),
        "what the laptop sent is imported"
    );
    let log = desk.ok(&["devices", "log", "laptop"]);
    assert!(log.contains(LAPTOP) && !log.contains("bees"), "{log}");
    desk.ok(&["devices", "revoke", "laptop"]);
    let refused = laptop.fails_within(UNREACHABLE, &["--server", "desk", "memories", "list"]);
    assert!(refused.contains("revoked"), "{refused}");
    daemon.stop();
}

#[test]
fn a_cut_link_ends_commands_with_a_clear_error() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let daemon = desk.serve();
    network.pair(&[]);
    // This command asks again and again whether a device has paired.
    let (stdout, words) = (laptop.home.path().join("stdout"), ["--server", "desk", "devices", "pair"]);
    let mut waiting = laptop.command(&[&words[..], &["--as", "phone", "--wait"]].concat());
    let mut waiting =
        waiting.stdout(std::fs::File::create(&stdout).unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&stdout, |text| text.contains("addresses"));
    network.cut();
    let cut = Instant::now();
    let refused = laptop.run(&["--server", "desk", "status"]);
    assert_eq!(code(&refused), UNREACHABLE_CODE, "{}", stderr(&refused));
    let reasons =
        ["no answer within 5 s", "host unreachable"].map(|reason| format!("{}: {reason}", address(DESK)));
    assert!(reasons.iter().any(|reason| stderr(&refused).contains(reason)), "{}", stderr(&refused));
    assert!(cut.elapsed() < UNREACHABLE, "it took {:?}", cut.elapsed());
    let status = ended(&mut waiting);
    let (took, said) = (cut.elapsed(), std::io::read_to_string(waiting.stderr.take().unwrap()).unwrap());
    assert_eq!(status.code(), FAILED_CODE, "{said}");
    assert!(took < CUT, "it took {took:?}: {said}");
    assert!(said.contains("connection to the daemon was lost"), "{said}");
    network.join();
    assert!(laptop.ok(&["--server", "desk", "status"]).contains("memories"));
    daemon.stop();
}

#[test]
fn an_interrupted_import_is_continued_when_the_link_is_back() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let daemon = desk.serve();
    network.pair(&[]);
    // The file itself: a folder would be packed, and be small.
    let export = home::large_export(&laptop.home, CONVERSATIONS) + "/conversations.json";
    let import = ["--server", "desk", "import", &export];
    let mut sending = laptop.command(&import).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let uploads = desk.data().join("uploads");
    let begun = Instant::now();
    while !std::fs::read_dir(&uploads).is_ok_and(|mut files| files.next().is_some()) {
        assert!(begun.elapsed() < home::LONG && sending.try_wait().unwrap().is_none(), "nothing is sent");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    network.cut();
    let status = ended(&mut sending);
    let said = std::io::read_to_string(sending.stderr.take().unwrap()).unwrap();
    assert_eq!(status.code(), FAILED_CODE, "{said}");
    assert!(said.contains("connection to the daemon was lost"), "{said}");
    network.join();
    laptop.ok(&import);
    let found = desk.json(&["conversations", "list", "--all"]);
    assert_eq!(found["conversations"].as_array().map(Vec::len), Some(CONVERSATIONS));
    daemon.stop();
}

#[test]
fn a_watch_continues_without_a_gap_after_a_cut_and_a_power_cut() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let daemon = desk.serve();
    network.pair(&["--role", "reader"]);
    let add = |content: &str| desk.ok(&["memories", "add", content]);
    let follower = Follower::start(laptop);
    add("before");
    assert_eq!(follower.told_of("before"), ["before"]);
    network.cut();
    add("while the link was cut");
    network.join();
    follower.told_of("while the link was cut");
    network.cut();
    // Nothing tells the laptop that the daemon ended.
    daemon.kill();
    add("while the daemon was gone");
    let daemon = desk.serve();
    add("after a power cut");
    network.join();
    let told = follower.told_of("after a power cut");
    let expected = ["before", "while the link was cut", "while the daemon was gone", "after a power cut"];
    assert_eq!(told, expected, "each change once, and in order");
    assert!(!follower.ended().is_empty(), "the stream of the first daemon ended");
    drop(follower);
    daemon.stop();
}

#[test]
fn a_daemon_with_another_address_is_found_again() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let daemon = desk.serve();
    network.pair(&[]);
    desk.remove_address(DESK);
    desk.add_address(MOVED);
    let status = ["--server", "desk", "status"];
    let unreachable = laptop.fails_within(UNREACHABLE, &status);
    assert!(unreachable.contains(DESK) && unreachable.contains("set-address"), "{unreachable}");
    laptop.ok(&["servers", "set-address", "desk", &address(MOVED)]);
    assert!(laptop.ok(&status).contains("memories"), "the daemon listens on all its addresses");
    let code = desk.json(&["devices", "pair", "--as", "phone"]);
    let addresses = code["addresses"].as_array().unwrap();
    assert!(addresses.contains(&address(MOVED).into()), "codes name the new address: {addresses:?}");
    assert!(!addresses.contains(&address(DESK).into()), "and not the old one: {addresses:?}");
    daemon.stop();
}
