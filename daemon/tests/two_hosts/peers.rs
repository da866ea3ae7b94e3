//! Daemons on two machines that keep their stores in step over a network that breaks.

use std::{collections::BTreeSet, time::Instant};

use serde_json::Value;

use crate::{
    home::LONG,
    network::{DESK, Host, Network, address},
};

fn pair(network: &Network) {
    let opened = network.desk.json(&["devices", "pair", "--as", "laptop", "--role", "peer"]);
    let code = opened["code"].as_str().unwrap();
    network.laptop.ok(&["peers", "add", code, "--address", &address(DESK), "--as", "desk"]);
}

fn add(host: &Host, text: &str) -> String {
    host.json(&["memories", "add", text])["memory"]["id"].as_str().unwrap().to_owned()
}

fn memories(host: &Host) -> BTreeSet<String> {
    let listed = host.json(&["memories", "list", "--all"]);
    let ids = listed["memories"].as_array().unwrap().iter();
    ids.map(|memory| memory["id"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the daemon of `host` says this of its peer.
fn wait_for_peer(host: &Host, what: &str, holds: impl Fn(&Value) -> bool) {
    let begun = Instant::now();
    loop {
        let listed = host.json(&["peers", "list"]);
        if holds(&listed["peers"][0]) {
            return;
        }
        assert!(begun.elapsed() < LONG, "{what}: {listed}");
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
}

fn same(network: &Network, ids: &BTreeSet<String>) {
    let Network { desk, laptop } = network;
    laptop.ok(&["sync", "--wait"]);
    for host in [desk, laptop] {
        let found = memories(host);
        let missing: Vec<&String> = ids.difference(&found).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
    let digest = |host: &Host| host.json(&["sync", "status"])["digest"].clone();
    assert_eq!(digest(desk), digest(laptop));
}

#[test]
fn stores_come_in_step_whenever_the_link_is_there() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let (at_desk, at_laptop) = (desk.serve(), laptop.serve());
    pair(&network);
    let mut ids: BTreeSet<String> = [add(desk, "With a link")].into();
    same(&network, &ids);
    network.cut();
    ids.extend([add(desk, "Apart, on the desk"), add(laptop, "Apart, on the laptop")]);
    // Pings find out that the link is cut, though no packet tells it.
    wait_for_peer(laptop, "the laptop notices", |peer| {
        peer["state"] == "failed" && peer["last_error"] == "the connection to the peer was lost"
    });
    network.join();
    wait_for_peer(laptop, "they find each other again", |peer| peer["in_step"] == true);
    same(&network, &ids);
    at_desk.stop();
    at_laptop.stop();
}

#[test]
fn a_power_cut_during_an_exchange_loses_nothing() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let (mut at_desk, mut at_laptop) = (desk.serve(), laptop.serve());
    pair(&network);
    let mut ids = BTreeSet::new();
    let export = crate::home::large_export(&desk.home, 300);
    desk.ok(&["import", &export]);
    for round in 0..3 {
        ids.insert(add(desk, &format!("On the desk, {round}")));
        ids.insert(add(laptop, &format!("On the laptop, {round}")));
        // What is on the way now is lost.
        network.cut();
        if round % 2 == 0 {
            at_desk.kill();
            at_desk = desk.serve();
        } else {
            at_laptop.kill();
            at_laptop = laptop.serve();
        }
        network.join();
    }
    same(&network, &ids);
    let titles = |host: &Host| host.ok(&["conversations", "list", "--all"]);
    assert_eq!(titles(desk), titles(laptop));
    at_desk.stop();
    at_laptop.stop();
}
