//! Daemons on three machines, of which each exchanges changes with both others, over a network that is slow and loses packets. Links are cut
//! in the middle of an exchange, daemons are killed, and a disk is full: in the end all three stores have everything that was acknowledged.

use std::{
    collections::BTreeSet,
    io::Write as _,
    net::Ipv4Addr,
    path::Path,
    time::{Duration, Instant},
};

use satchel_tests::{generate::Rng, small_disk::SmallDisk};
use serde_json::Value;

use crate::{
    home::{self, LONG, code, stderr},
    network::{Daemon, Host, address, not_run, skip},
    relay::{DELAY, Link, Relay, Then},
    tunnel::Tunnel,
};

const DESK: usize = 0;
const LAPTOP: usize = 1;
const SERVER: usize = 2;
const NAMES: [&str; 3] = ["desk", "laptop", "server"];
/// Which machine connects to which.
const PEERS: [(usize, usize); 3] = [(LAPTOP, DESK), (SERVER, DESK), (LAPTOP, SERVER)];
/// Conversations of an export of which the exchange takes some hundred packets.
const CONVERSATIONS: usize = 40;
/// Size of the disk that is filled, in megabytes.
const DISK: u64 = 160;
/// The last lines of a log that are printed if the test fails.
const LOG_LINES: usize = 15;
/// Pause between two looks at a daemon.
const LOOK: Duration = Duration::from_millis(200);
/// Set by a person who looks for a failure: another order of random numbers.
const SEED: &str = "SATCHEL_NETWORK_SEED";

/// A machine, and what runs on it. What runs is ended first.
struct Machine {
    daemon: Option<Daemon>,
    _tunnel: Tunnel,
    host: Host,
    address: Ipv4Addr,
}

/// The machines and the network between them.
struct Machines {
    all: Vec<Machine>,
    /// The disk of the server.
    disk: SmallDisk,
    relay: Relay,
    seed: u64,
    random: Rng,
    /// The ids of the memories that a daemon said it had stored.
    acknowledged: BTreeSet<String>,
}

#[test]
fn three_stores_come_in_step_over_a_network_that_loses_packets() {
    let Some(mut machines) = Machines::create() else { return };
    machines.pair();
    machines.changes_travel_through_the_third_machine();
    machines.a_daemon_is_killed_during_an_exchange();
    machines.connections_to_a_daemon_that_is_gone_are_given_up();
    machines.a_disk_is_full_for_a_while();
    machines.all_have_everything();
}

impl Machines {
    /// Returns `None` if this process may not create such a network, or mount a disk.
    fn create() -> Option<Self> {
        let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let relay = Relay::start(seed);
        let Some(disk) = SmallDisk::mount(DISK).unwrap() else {
            not_run("no disk can be mounted");
            return None;
        };
        let hosts: Result<Vec<Host>, String> = NAMES.iter().map(|name| Host::create(name)).collect();
        let hosts = hosts.map_err(|reason| skip(&reason)).ok()?;
        let machines = hosts.into_iter().enumerate();
        let all =
            machines.map(|(at, host)| Machine::start(at, host, &relay, &disk)).collect::<Result<_, _>>();
        // The system may have no TUN devices.
        let all = all.map_err(|reason| not_run(&reason)).ok()?;
        let random = Rng::new(!seed);
        Some(Self { all, disk, relay, seed, random, acknowledged: BTreeSet::new() })
    }

    fn host(&self, at: usize) -> &Host {
        &self.all[at].host
    }

    fn link(&self, a: usize, b: usize) -> Link {
        Link::between(self.all[a].address, self.all[b].address)
    }

    fn kill(&mut self, at: usize) {
        self.all[at].daemon.take().map(Daemon::kill).unwrap();
    }

    fn start_again(&mut self, at: usize) {
        let machine = &mut self.all[at];
        machine.daemon = Some(machine.host.serve());
    }

    /// Lets something happen on a link in the middle of the exchange that comes next, sooner or later.
    fn during_the_next_exchange(&mut self, a: usize, b: usize, then: Then) {
        let packets = 2 + self.random.below(6);
        self.relay.after(self.link(a, b), packets, then);
    }

    fn add(&mut self, at: usize, text: &str) -> String {
        let added = self.host(at).json(&["memories", "add", text]);
        let id = added["memory"]["id"].as_str().unwrap().to_owned();
        self.acknowledged.insert(id.clone());
        id
    }

    /// Adds a memory on each machine.
    fn add_everywhere(&mut self, when: &str) {
        for (at, name) in NAMES.iter().enumerate() {
            self.add(at, &format!("On the {name}, {when}"));
        }
    }

    fn import(&self, at: usize, name: &str) {
        let export = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
        self.host(at).ok(&["import", export.to_str().unwrap()]);
    }

    fn pair(&mut self) {
        self.import(DESK, "chatgpt-export");
        self.add_everywhere("before the machines know each other");
        for (from, to) in PEERS {
            let begun = Instant::now();
            add_peer(&self.all[from], &self.all[to], (NAMES[from], NAMES[to]));
            // TCP and TLS need one answer each before anything is sent.
            assert!(begun.elapsed() > 4 * DELAY, "the network is too fast: {:?}", begun.elapsed());
        }
        self.wait_until_in_step();
    }

    /// A link is cut in the middle of an exchange, and stays so: what the machines have for each other comes through the third one.
    fn changes_travel_through_the_third_machine(&mut self) {
        let link = self.link(DESK, LAPTOP);
        self.during_the_next_exchange(DESK, LAPTOP, Then::Cut);
        let export = home::large_export(&self.host(DESK).home, CONVERSATIONS);
        self.host(DESK).ok(&["import", &export]);
        self.relay.wait(link);
        self.add_everywhere("while two of them cannot reach each other");
        self.wait_until_in_step();
        assert!(self.relay.is_cut(link));
        self.relay.join(link);
    }

    fn a_daemon_is_killed_during_an_exchange(&mut self) {
        for (victim, other) in [(SERVER, DESK), (DESK, SERVER)] {
            self.during_the_next_exchange(SERVER, DESK, Then::Continue);
            self.add(other, &format!("Before the {} is killed", NAMES[victim]));
            self.relay.wait(self.link(SERVER, DESK));
            self.kill(victim);
            self.add(LAPTOP, &format!("While the {} is down", NAMES[victim]));
            self.start_again(victim);
        }
        self.add_everywhere("after daemons were killed");
        self.wait_until_in_step();
    }

    /// The daemon of the desk is killed when nobody can hear of it, and another one has taken its place when the links are back.
    fn connections_to_a_daemon_that_is_gone_are_given_up(&mut self) {
        self.during_the_next_exchange(DESK, LAPTOP, Then::Cut);
        self.add(LAPTOP, "On the way to the desk");
        self.relay.wait(self.link(DESK, LAPTOP));
        self.relay.cut(self.link(DESK, SERVER));
        self.add(DESK, "Before the power cut");
        self.kill(DESK);
        self.start_again(DESK);
        self.add(DESK, "After the power cut");
        self.relay.join(self.link(DESK, LAPTOP));
        self.relay.join(self.link(DESK, SERVER));
        self.add_everywhere("after the power cut");
        self.wait_until_in_step();
    }

    /// The server takes nothing while its disk is full, which keeps the others from nothing, and catches up by itself.
    fn a_disk_is_full_for_a_while(&mut self) {
        self.disk.fill().unwrap();
        let refused = self.host(SERVER).run(&["memories", "add", "Is not stored"]);
        assert_ne!(code(&refused), Some(0), "{}", stderr(&refused));
        self.import(DESK, "claude-export");
        self.add(DESK, "While the disk of the server is full");
        let last = self.add(LAPTOP, "On the laptop, meanwhile");
        wait_until("the server says that its disk is full", || {
            let listed = self.host(SERVER).json(&["peers", "list"]);
            let full =
                peers(&listed).iter().any(|peer| peer["last_error"].to_string().contains("no space left"));
            (full, listed)
        });
        wait_until("the others go on", || {
            let found = self.all[DESK].memories();
            (found.contains(&last), found)
        });
        self.disk.free().unwrap();
        self.wait_until_in_step();
    }

    /// Waits until all stores show the same. No command asks for an exchange meanwhile.
    fn wait_until_in_step(&self) {
        wait_until("the stores come in step", || {
            let digests: Vec<Value> =
                self.all.iter().map(|machine| machine.status()["digest"].clone()).collect();
            (digests.iter().all(|digest| digest == &digests[0]), digests)
        });
        for (machine, name) in self.all.iter().zip(NAMES) {
            let found = machine.memories();
            let missing: Vec<&String> = self.acknowledged.difference(&found).collect();
            assert!(missing.is_empty(), "the {name} lacks {missing:?}");
        }
    }

    /// Checks the end: all links work again, and no store has a fault.
    fn all_have_everything(&mut self) {
        self.add_everywhere("at the end");
        wait_until("each machine is in step with both others", || {
            let all: Vec<Value> = self.all.iter().map(Machine::status).collect();
            let good = |peer: &Value| {
                peer["in_step"] == true && peer["state"] == "ok" && peer["last_error"].is_null()
            };
            (all.iter().all(|status| peers(status).len() == 2 && peers(status).iter().all(good)), all)
        });
        self.wait_until_in_step();
        let titles = |at: usize| self.host(at).ok(&["conversations", "list", "--all"]);
        assert_eq!([titles(LAPTOP), titles(SERVER)], [titles(DESK), titles(DESK)]);
        let counts = self.relay.counts();
        let percent = counts.lost * 100 / (counts.lost + counts.delivered);
        assert!((3..8).contains(&percent), "{counts:?}");
        for machine in &mut self.all {
            machine.daemon.take().map(Daemon::stop).unwrap();
            machine.host.ok(&["doctor"]);
            let log = machine.host.log();
            assert!(!log.contains("different histories"), "a change that came another way is no fork: {log}");
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut report = format!("the network of {SEED}={}\n", self.seed);
        for (machine, name) in self.all.iter().zip(NAMES) {
            let log = machine.host.log();
            let lines: Vec<&str> = log.lines().rev().take(LOG_LINES).collect();
            report += &format!("the {name} logged, the last first:\n{}\n", lines.join("\n"));
        }
        // The test has failed already.
        drop(std::io::stderr().write_all(report.as_bytes()));
    }
}

impl Machine {
    fn start(at: usize, mut host: Host, relay: &Relay, disk: &SmallDisk) -> Result<Self, String> {
        if at == SERVER {
            host.data_home = Some(disk.path().to_owned());
        }
        let address = Ipv4Addr::new(10, 78, 0, u8::try_from(at + 1).unwrap());
        let tunnel = Tunnel::open(&host, relay, address)?;
        Ok(Self { daemon: Some(host.serve()), _tunnel: tunnel, host, address })
    }

    fn status(&self) -> Value {
        self.host.json(&["sync", "status"])
    }

    fn memories(&self) -> BTreeSet<String> {
        let listed = self.host.json(&["memories", "list", "--all"]);
        let ids = listed["memories"].as_array().unwrap().iter();
        ids.map(|memory| memory["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// Lets a machine connect to another one. On this network, an address may need more than the time that it is given.
fn add_peer(from: &Machine, to: &Machine, (name, peer): (&str, &str)) {
    let opened = to.host.json(&["devices", "pair", "--as", name, "--role", "peer"]);
    let (code_of_peer, address) = (opened["code"].as_str().unwrap(), address(&to.address.to_string()));
    wait_until("the machines are paired", || {
        let added = from.host.run(&["peers", "add", code_of_peer, "--address", &address, "--as", peer]);
        let (done, said) = (code(&added) == Some(0), stderr(&added));
        assert!(done || said.contains("no answer within"), "{said}");
        (done, said)
    });
}

fn peers(document: &Value) -> &[Value] {
    document["peers"].as_array().unwrap()
}

/// Looks until `look` returns true; what else it returns is shown if that takes too long.
fn wait_until<T: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> (bool, T)) {
    let begun = Instant::now();
    loop {
        let (holds, seen) = look();
        if holds {
            return;
        }
        assert!(begun.elapsed() < LONG, "not so within {LONG:?}: {what}: {seen:?}");
        std::thread::park_timeout(LOOK);
    }
}
