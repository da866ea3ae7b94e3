//! `satchel mcp` as the program of an agent uses it: JSON-RPC on standard input and output.

#![expect(clippy::unwrap_used, reason = "tests")]

mod agent;
#[expect(dead_code, reason = "other tests use the rest of it")]
#[path = "../home/mod.rs"]
mod home;
mod install;

use std::{collections::BTreeSet, path::Path};

use agent::Agent;
use home::{TestHome, code, ended, stderr, stop};
use serde_json::{Value, json};

/// A home with two imported exports, a memory, and the devices `reader` and `bot`, an agent.
fn home() -> TestHome {
    let home = TestHome::new();
    let exports = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    run(&home, &["import", exports.to_str().unwrap()]);
    run(&home, &["devices", "token", "--as", "reader", "--role", "reader", "--for", "1d"]);
    run(&home, &["devices", "token", "--as", "bot", "--role", "agent", "--for", "1d"]);
    home
}

fn run(home: &TestHome, words: &[&str]) -> String {
    let output = home.run(words);
    assert_eq!(code(&output), Some(0), "{words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that a record says where it comes from.
fn assert_cited(record: &Value) {
    for field in ["id", "date", "source"] {
        assert!(record[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {record}");
    }
}

#[test]
fn every_answer_cites_id_date_and_source() {
    let home = home();
    let mut agent = Agent::connected(&home, "reader");
    let listed = agent.request("tools/list", &json!({}));
    let tools: BTreeSet<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let expected = [
        "add_memory",
        "build_context",
        "list_changes",
        "read_conversation",
        "read_memory",
        "search",
        "update_memory",
    ];
    assert_eq!(tools, BTreeSet::from(expected));

    let found = agent.call("search", &json!({"query": "honey OR bees", "limit": 5}));
    let hits = found["hits"].as_array().unwrap();
    assert!(!hits.is_empty(), "{found}");
    hits.iter().for_each(assert_cited);
    let conversation = hits.iter().find_map(|hit| hit["conversation_id"].as_str()).unwrap();
    let read = agent.call("read_conversation", &json!({"id": conversation, "limit": 1}));
    assert_cited(&read);
    assert_eq!(read["messages"].as_array().unwrap().len(), 1);
    let next = json!({"id": conversation, "limit": 1, "cursor": read["next"]});
    let second = agent.call("read_conversation", &next);
    assert_ne!(read["messages"][0]["id"], second["messages"][0]["id"]);

    let changes = agent.call("list_changes", &json!({"after_revision": 0, "limit": 100}));
    let memories: Vec<&Value> =
        changes["changes"].as_array().unwrap().iter().filter(|change| change["kind"] == "memory").collect();
    let id = memories[0]["record"]["id"].as_str().unwrap();
    let memory = agent.call("read_memory", &json!({"id": id}));
    assert_cited(&memory);
    assert!(!memory["content"].as_str().unwrap().is_empty());
    let context = agent.call("build_context", &json!({"query": "honey"}));
    assert!(context["quoted"].is_string(), "{context}");

    let uri = format!("satchel://memory/{id}");
    let resource = agent.request("resources/read", &json!({"uri": uri}));
    let text = resource["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), memory);
    let prompt = agent.request("prompts/get", &json!({"name": "recall", "arguments": {"topic": "honey"}}));
    assert!(
        prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("honey"),
        "{prompt}"
    );
    agent.close();
    assert!(run(&home, &["devices", "log", "reader"]).contains("Search"));
}

#[test]
fn resources_are_listed_page_by_page() {
    let home = home();
    let mut agent = Agent::connected(&home, "reader");
    let (mut uris, mut cursor) = (BTreeSet::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = agent.request("resources/list", &params);
        for resource in page["result"]["resources"].as_array().unwrap() {
            assert!(uris.insert(resource["uri"].as_str().unwrap().to_owned()), "{resource}");
        }
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let counts = ["satchel://memory/", "satchel://conversation/"]
        .map(|prefix| uris.iter().filter(|uri| uri.starts_with(prefix)).count());
    let listed: Value = serde_json::from_str(&run(&home, &["conversations", "list", "--json"])).unwrap();
    assert_eq!(counts[1], listed["conversations"].as_array().unwrap().len(), "{listed}");
    assert!(counts[0] > 0);
    for cursor in ["", "x", "m!", "c\u{0}", "ümlaut"] {
        let answer = agent.request("resources/list", &json!({ "cursor": cursor }));
        assert_eq!(answer["error"]["code"], -32_602, "{cursor:?}: {answer}");
    }
    for uri in ["satchel://memory/", "satchel://memory/nothing", "file:///etc/passwd", ""] {
        let answer = agent.request("resources/read", &json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -32_002, "{uri:?}: {answer}");
    }
    agent.close();
}

#[test]
fn what_an_agent_writes_waits_for_review_and_a_reader_writes_nothing() {
    let home = home();
    let mut agent = Agent::connected(&home, "bot");
    let added = agent.call("add_memory", &json!({"content": "Mara bakes on Sundays", "tags": ["baking"]}));
    assert_eq!(added["memory"]["waits_for_review"], true, "{added}");
    let own = agent.call("read_memory", &json!({"id": added["memory"]["id"]}));
    assert_eq!(own["content"], "Mara bakes on Sundays");
    assert!(agent.fail("update_memory", &json!({"id": own["id"], "etag": ""})).contains("etag"));
    assert!(agent.fail("update_memory", &json!({"id": own["id"], "etag": "x"})).contains("neither"));
    let changed = json!({"id": own["id"], "etag": "x", "content": "Mara bakes on Mondays"});
    let refused = agent.fail("update_memory", &changed);
    assert!(refused.contains("bot"), "{refused}");
    agent.close();
    assert!(run(&home, &["memories", "review"]).contains("Mara bakes on Sundays"));
    assert!(!run(&home, &["memories", "list"]).contains("Mara bakes"));

    let mut reader = Agent::connected(&home, "reader");
    let refused = reader.fail("add_memory", &json!({"content": "x"}));
    assert!(refused.contains("reader"), "{refused}");
    reader.close();
}

#[test]
fn a_trusted_agent_changes_memories_without_losing_their_text() {
    let home = home();
    run(&home, &["devices", "update", "bot", "--trusted-writes"]);
    let mut agent = Agent::connected(&home, "bot");
    let long = format!("Mara bakes {} on Sundays", "and bakes ".repeat(100));
    let added = agent.call("add_memory", &json!({"content": long, "type": "preference"}));
    assert_eq!(added["memory"]["waits_for_review"], Value::Null, "{added}");
    let id = &added["memory"]["id"];
    let read = agent.call("read_memory", &json!({"id": id}));
    assert_eq!(read["content"], long, "the whole text");
    let changes = agent.call("list_changes", &json!({"after_revision": 0, "limit": 100}));
    let listed =
        changes["changes"].as_array().unwrap().iter().find(|change| change["record"]["id"] == *id).unwrap();
    assert_eq!((&listed["record"]["shortened"], &listed["record"]["etag"]), (&json!(true), &Value::Null));
    let tags = json!({"id": id, "etag": read["etag"], "tags": ["baking"]});
    let updated = agent.call("update_memory", &tags);
    assert_eq!(
        (&updated["memory"]["tags"][0], &updated["memory"]["content"]),
        (&json!("baking"), &json!(long))
    );
    // The memory has another etag now.
    assert!(!agent.fail("update_memory", &tags).is_empty());
    agent.close();
}

#[test]
fn calls_are_logged_by_a_daemon_that_started_before_there_were_devices() {
    let home = TestHome::new();
    let daemon = home.serve();
    run(&home, &["devices", "token", "--as", "reader", "--role", "reader", "--for", "1d"]);
    let mut agent = Agent::connected(&home, "reader");
    agent.call("search", &json!({"query": "bees"}));
    agent.close();
    assert!(run(&home, &["devices", "log", "reader"]).contains("Search"));
    stop(daemon);
}

#[test]
fn an_agent_opens_the_archive_when_the_one_that_had_it_open_ends() {
    let home = home();
    let first = Agent::connected(&home, "reader");
    let mut others = ["reader", "bot"].map(|device| Agent::connected(&home, device));
    let search = json!({"query": "bees"});
    others.iter_mut().for_each(|agent| drop(agent.call("search", &search)));
    first.close();
    others.iter_mut().for_each(|agent| drop(agent.call("search", &search)));
    let [second, mut third] = others;
    second.close();
    third.call("add_memory", &json!({"content": "Mara bakes on Sundays"}));
    assert!(run(&home, &["memories", "review"]).contains("Mara bakes on Sundays"));
    third.close();
    assert!(run(&home, &["memories", "review"]).contains("Mara bakes on Sundays"));
}

#[test]
fn an_agent_outlives_the_daemon_and_uses_the_next_one() {
    let home = home();
    let mut daemon = home.serve();
    let mut agents = [Agent::connected(&home, "reader"), Agent::connected(&home, "reader")];
    let search = json!({"query": "bees"});
    // A daemon that is started again meanwhile.
    stop(daemon);
    daemon = home.serve();
    agents.iter_mut().for_each(|agent| drop(agent.call("search", &search)));
    // One that leaves its socket and its lock behind, while both ask.
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let asked = agents.each_mut().map(|agent| {
        agent.ask("tools/call", &json!({"name": "search", "arguments": search}));
        agent
    });
    for agent in asked {
        let answer = agent.receive();
        assert!(answer["result"]["structuredContent"]["hits"].is_array(), "{answer}");
    }
    let [first, mut second] = agents;
    first.close();
    second.call("search", &search);
    second.close();
}

#[test]
fn a_signal_ends_it_although_standard_input_is_open() {
    let home = home();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut agent = Agent::connected(&home, "reader");
        let pid = rustix::process::Pid::from_child(&agent.server);
        rustix::process::kill_process(pid, signal).unwrap();
        assert!(ended(&mut agent.server).success());
    }
}

#[test]
fn hostile_requests_get_an_answer_and_cost_nothing_else() {
    let home = home();
    let mut agent = Agent::connected(&home, "reader");
    for (tool, arguments) in [
        ("search", json!({})),
        ("search", json!({"query": 5})),
        ("search", json!({"query": "bees", "limit": 0})),
        ("search", json!({"query": "bees", "limit": 1_000_000_000_000_u64})),
        ("search", json!({"query": "bees", "kinds": ["everything"]})),
        ("search", json!({"query": "bees", "unknown": true})),
        ("search", json!({"query": "bees", "cursor": "not a cursor"})),
        ("read_memory", json!({"id": "\u{0}\u{1b}[2J"})),
        ("read_conversation", json!({"id": "../../etc/passwd"})),
        ("build_context", json!({"query": "bees", "token_budget": -1})),
        ("list_changes", json!({"after_revision": -5})),
        ("add_memory", json!({"content": "x", "type": "custom"})),
    ] {
        let problem = agent.fail(tool, &arguments);
        assert!(!problem.is_empty(), "{tool} {arguments}");
    }
    let long = agent.fail("search", &json!({"query": "x".repeat(10 << 20)}));
    assert!(long.contains("bytes"), "{long}");
    let answer = agent.request("tools/call", &json!({"name": "erase_everything", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    let answer = agent.request("tools/call", &json!({"arguments": [1]}));
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    let answer = agent.request("no/such/method", &json!({}));
    assert_eq!(answer["error"]["code"], -32_601, "{answer}");
    agent.ask("tools/list", &json!([1]));
    let answer = agent.receive();
    assert_eq!(answer["error"]["code"], -32_600, "{answer}");
    // These get no answer, and the connection stays.
    for line in ["not json", "\u{1}", "{", &"[".repeat(100_000)] {
        agent.send(line);
    }
    agent.call("search", &json!({"query": "bees"}));
    agent.close();
}

#[test]
fn a_hundred_calls_at_once_are_all_answered() {
    let home = home();
    let daemon = home.serve();
    let mut agent = Agent::connected(&home, "reader");
    let search = json!({"name": "search", "arguments": {"query": "honey"}});
    let mut waiting: BTreeSet<u64> = (0..100).map(|_| agent.ask("tools/call", &search)).collect();
    // A cancelled call gets no answer, or has got it already.
    let cancelled = agent.ask("tools/call", &search);
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}});
    agent.send(&note.to_string());
    while !waiting.is_empty() {
        let answer = agent.receive();
        let id = answer["id"].as_u64().unwrap();
        assert!(answer["result"]["structuredContent"]["hits"].is_array(), "{answer}");
        assert!(waiting.remove(&id) || id == cancelled, "{id}");
    }
    // A client that goes away with calls in flight ends the server too.
    for _ in 0..20 {
        agent.ask("tools/call", &search);
    }
    agent.close();
    stop(daemon);
}

#[test]
fn all_versions_of_the_protocol_are_spoken() {
    let home = home();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut agent = Agent::start(&home, "reader");
        let answer = agent.initialize(version);
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        assert!(answer["result"]["instructions"].as_str().unwrap().contains("quoted data"));
        agent.call("search", &json!({"query": "bees"}));
        agent.close();
    }
    let mut agent = Agent::start(&home, "reader");
    assert!(agent.initialize("1.0")["result"]["protocolVersion"].is_string());
    agent.close();
}

#[test]
fn it_says_what_is_wrong_with_its_device_or_its_client() {
    let home = home();
    let nobody = home.run(&["mcp", "--as", "nobody"]);
    assert_eq!(code(&nobody), Some(2));
    assert!(stderr(&nobody).contains("satchel devices token --as nobody"), "{}", stderr(&nobody));
    assert!(nobody.stdout.is_empty(), "standard output belongs to the protocol");
    let unnamed = home.run(&["mcp"]);
    assert_eq!(code(&unnamed), Some(2));
    assert!(stderr(&unnamed).contains("--as NAME is missing"), "{}", stderr(&unnamed));
    // Standard input is closed at once.
    assert_eq!(code(&home.run(&["mcp", "--as", "reader"])), Some(0));

    run(&home, &["devices", "token", "--as", "everything", "--role", "owner", "--for", "1d"]);
    let owner = home.run(&["mcp", "--as", "everything"]);
    assert!(stderr(&owner).contains("has the role owner"), "{}", stderr(&owner));

    run(&home, &["devices", "revoke", "reader"]);
    let revoked = home.run(&["mcp", "--as", "reader"]);
    assert_ne!(code(&revoked), Some(0));
    assert!(stderr(&revoked).contains("reader"), "{}", stderr(&revoked));
}

#[test]
fn a_revoked_device_gets_nothing_from_that_moment() {
    let home = home();
    let daemon = home.serve();
    let mut agent = Agent::connected(&home, "reader");
    agent.call("search", &json!({"query": "bees"}));
    run(&home, &["devices", "revoke", "reader"]);
    assert!(agent.fail("search", &json!({"query": "bees"})).contains("revoked"));
    agent.close();
    stop(daemon);
}
