//! `mcp install` and `mcp uninstall`: what they write, that programs can start the server with it, and what they refuse.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    agent::Agent,
    home::{TestHome, code, stderr},
    run,
};

/// A home with a data directory, and a folder of each program.
fn home() -> TestHome {
    let home = TestHome::new();
    for folder in [".claude", ".codex", ".cursor", ".gemini"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    for folder in [home.path().join(".config/zed"), applications(&home).join("Claude"), vscode(&home)] {
        fs::create_dir_all(folder).unwrap();
    }
    run(&home, &["memories", "add", "Ana keeps bees"]);
    home
}

fn applications(home: &TestHome) -> std::path::PathBuf {
    let folder = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    home.path().join(folder)
}

fn vscode(home: &TestHome) -> std::path::PathBuf {
    applications(home).join("Code/User")
}

fn refused(home: &TestHome, words: &[&str], expected: i32, why: &str) {
    let output = home.run(words);
    assert_eq!(code(&output), Some(expected), "{words:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(why), "{words:?}: {}", stderr(&output));
}

/// Starts the server as a configuration says, and searches.
fn search_with(home: &TestHome, command: &Value, args: &Value) {
    let args = args.as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let mut program = std::process::Command::new(command.as_str().unwrap());
    home.set_environment(program.args(args));
    let mut agent = Agent::spawn(program);
    agent.initialize("2025-06-18");
    let found = agent.call("search", &json!({"query": "bees"}));
    assert!(found["hits"].is_array(), "{found}");
    agent.close();
}

#[test]
fn every_program_can_start_the_server_with_its_configuration() {
    let home = home();
    for (program, file, key) in [
        ("claude-code", home.path().join(".claude.json"), "mcpServers"),
        ("claude-desktop", applications(&home).join("Claude/claude_desktop_config.json"), "mcpServers"),
        ("cursor", home.path().join(".cursor/mcp.json"), "mcpServers"),
        ("vscode", vscode(&home).join("mcp.json"), "servers"),
        ("gemini-cli", home.path().join(".gemini/settings.json"), "mcpServers"),
        ("zed", home.path().join(".config/zed/settings.json"), "context_servers"),
    ] {
        let printed = run(&home, &["mcp", "install", program, "--yes"]);
        assert!(
            printed.contains("+ satchel: ") && printed.contains(&format!(" mcp --as {program}")),
            "{printed}"
        );
        let config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let entry = &config[key]["satchel"];
        search_with(&home, &entry["command"], &entry["args"]);
        assert!(run(&home, &["devices", "show", program]).contains("agent"));

        let again = run(&home, &["mcp", "install", program, "--yes"]);
        assert!(again.contains("nothing was changed"), "{again}");
        run(&home, &["mcp", "uninstall", program, "--yes"]);
        let config: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(config, json!({ key: {} }), "{program}");
        let nothing = run(&home, &["mcp", "uninstall", program, "--yes"]);
        assert!(nothing.contains("nothing was changed"), "{nothing}");
    }
    let file = home.file(".codex/config.toml", "model = \"x\" # mine\n");
    run(&home, &["mcp", "install", "codex", "--role", "reader", "--yes"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("model = \"x\" # mine\n"), "{text}");
    let config: Value = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let entry = &config["mcp_servers"]["satchel"];
    search_with(&home, &entry["command"], &entry["args"]);
    assert!(run(&home, &["devices", "show", "codex"]).contains("reader"));
    run(&home, &["mcp", "uninstall", "codex", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "model = \"x\" # mine\n");
}

#[test]
fn the_entry_leads_to_the_same_data_directory() {
    let home = home();
    let data = home.path().join("elsewhere");
    let data = data.to_str().unwrap();
    run(&home, &["--data-dir", data, "memories", "add", "Ana bakes bread"]);
    let file = home.path().join("other/mcp.json");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let file = file.to_str().unwrap();
    let words = ["mcp", "install", "cursor", "--as", "work", "--name", "memory", "--file", file, "--yes"];
    let report = run(&home, &[&["--data-dir", data, "--json"], words.as_slice()].concat());
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report,
        json!({"program": "cursor", "file": file, "server": "memory", "changed": true, "device": "work"})
    );
    let config: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let entry = &config["mcpServers"]["memory"];
    assert_eq!(entry["args"], json!(["--data-dir", data, "mcp", "--as", "work"]));
    search_with(&home, &entry["command"], &entry["args"]);
}

#[test]
fn nothing_is_changed_that_is_not_ours_or_not_understood_and_nothing_without_asking() {
    let home = home();
    let foreign = "{\"mcpServers\": {\"satchel\": {\"command\": \"npx\"}}}";
    for (text, why) in [(foreign, "--name"), ("{\"a\": ", "not valid"), ("[]", "not an object")] {
        let file = home.file(".cursor/mcp.json", text);
        refused(&home, &["mcp", "install", "cursor", "--yes"], 4, why);
        refused(&home, &["mcp", "uninstall", "cursor", "--yes"], 4, &file);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    refused(&home, &["mcp", "install", "gemini-cli"], 2, "--yes");
    refused(&home, &["mcp", "install", "gemini-cli", "--json"], 2, "--yes");
    assert!(!home.path().join(".gemini/settings.json").exists());
    assert!(!run(&home, &["devices", "list"]).contains("gemini"), "no device either");
    refused(&home, &["mcp", "install", "word", "--yes"], 2, "claude-code");
    refused(&home, &["mcp", "install", "zed", "--name", "my server", "--yes"], 2, "digits");
    let nowhere = home.path().join("nowhere/mcp.json");
    refused(&home, &["mcp", "install", "zed", "--file", nowhere.to_str().unwrap(), "--yes"], 2, "no folder");
    let other = TestHome::new();
    refused(&other, &["mcp", "install", "cursor", "--yes"], 2, "--file");
    fs::create_dir(other.path().join(".cursor")).unwrap();
    refused(&other, &["mcp", "install", "cursor", "--yes"], 4, "no data directory");
    assert!(!other.path().join(".cursor/mcp.json").exists());
}

#[test]
fn a_device_that_exists_is_used_if_it_fits() {
    let home = home();
    for (name, role) in [("reads", "reader"), ("all", "owner")] {
        run(&home, &["devices", "token", "--as", name, "--role", role, "--for", "1d"]);
    }
    let install = |words: &[&'static str]| [&["mcp", "install", "cursor", "--yes"], words].concat();
    refused(&home, &install(&["--as", "all"]), 2, "has the role owner");
    refused(&home, &install(&["--as", "reads", "--role", "agent"]), 4, "devices update");
    refused(&home, &install(&["--as", "Reads"]), 4, "--as reads");
    assert!(!home.path().join(".cursor/mcp.json").exists());
    run(&home, &install(&["--as", "reads"]));
    // Another device later: the entry is updated.
    let printed = run(&home, &install(&[]));
    assert!(printed.contains("- ") && printed.contains("+ "), "{printed}");
    let text = fs::read_to_string(Path::new(&home.path().join(".cursor/mcp.json"))).unwrap();
    assert!(text.contains("\"cursor\"") && !text.contains("reads"), "{text}");
}
