//! The official clients of the Model Context Protocol work with `satchel mcp` and with the daemon over HTTP: those for
//! Python and TypeScript, and the command line of the inspector.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests; a skipped one prints the reason")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use home::{TestHome, code, stderr, stop};
use serde_json::{Value, json};

/// The folder of the client programs.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_clients");
/// The program of the inspector, relative to a folder of Node modules.
const INSPECTOR: &str = ".bin/mcp-inspector";

/// A home with an imported export and the device `reader`, and its token.
fn home() -> (TestHome, String) {
    let home = TestHome::new();
    let mut printed = Vec::new();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    for words in [
        ["import", demo.to_str().unwrap()].as_slice(),
        &["devices", "token", "--as", "reader", "--role", "reader", "--for", "1d"],
    ] {
        let output = home.run(words);
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        printed = output.stdout;
    }
    (home, String::from_utf8(printed).unwrap().trim().to_owned())
}

/// Starts a daemon, and returns the address at which agents reach it.
fn serve(home: &TestHome) -> (Child, String) {
    let mut serve = home.command(&["serve", "--web", "127.0.0.1:0", "--json"]);
    let mut daemon = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = serde_json::Deserializer::from_reader(daemon.stdout.take().unwrap());
    let serving = output.into_iter::<Value>().next().unwrap().unwrap();
    let address = serving["web"].as_str().unwrap();
    (daemon, format!("http://{address}/mcp"))
}

/// Says that a test is skipped. If the environment requires these tests, it fails.
fn missing<T>(what: &str) -> Option<T> {
    assert!(env::var_os("SATCHEL_INTEROP").is_none(), "{what}, and this run requires it");
    eprintln!("skipped: {what}");
    None
}

fn python() -> Option<PathBuf> {
    let python = env::var_os("SATCHEL_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let probe = Command::new(&python).args(["-c", "import mcp"]).output();
    if probe.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    missing(&format!("{python:?} lacks the module mcp (set SATCHEL_PYTHON)"))
}

fn node_modules() -> Option<PathBuf> {
    let modules = env::var_os("SATCHEL_NODE_MODULES").map(PathBuf::from);
    let complete = |modules: &PathBuf| {
        modules.join("@modelcontextprotocol/sdk").is_dir() && modules.join(INSPECTOR).exists()
    };
    modules.filter(complete).or_else(|| {
        missing("SATCHEL_NODE_MODULES names no folder with @modelcontextprotocol/sdk and @modelcontextprotocol/inspector")
    })
}

/// The words with which a client starts the server.
fn server() -> [&'static str; 4] {
    [env!("CARGO_BIN_EXE_satchel"), "mcp", "--as", "reader"]
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks what a client program printed.
fn check(output: &Output) {
    let answer = answer(output);
    assert_eq!(answer["server"], "satchel");
    assert_eq!(answer["tools"].as_array().unwrap().len(), 7, "{answer}");
    let hits = answer["hits"].as_array().unwrap();
    assert!(!hits.is_empty());
    for hit in hits {
        assert!(hit["id"].is_string() && hit["date"].is_string() && hit["source"].is_string(), "{hit}");
    }
    assert!(answer["resource"]["source"].is_string(), "{answer}");
    assert_eq!((&answer["templates"], &answer["prompts"][0]), (&2.into(), &"recall".into()));
    assert!(answer["prompt"].as_str().unwrap().contains("quoted data"));
    assert_eq!((&answer["refused"], &answer["parallel"]), (&true.into(), &100.into()));
}

#[test]
fn the_python_client_works() {
    let Some(python) = python() else { return };
    let (home, _) = home();
    let program = Path::new(CLIENTS).join("client.py");
    check(&Command::new(python).arg(program).arg(home.path()).args(server()).output().unwrap());
}

#[test]
fn the_typescript_client_works() {
    let Some(modules) = node_modules() else { return };
    let (home, _) = home();
    let program = Path::new(CLIENTS).join("client.mjs");
    check(&Command::new("node").arg(program).arg(modules).arg(home.path()).args(server()).output().unwrap());
}

#[test]
fn the_python_client_works_over_http() {
    let Some(python) = python() else { return };
    let (home, token) = home();
    let (daemon, url) = serve(&home);
    let program = Path::new(CLIENTS).join("client.py");
    check(&Command::new(python).arg(program).args([url, token]).output().unwrap());
    stop(daemon);
}

#[test]
fn the_typescript_client_works_over_http() {
    let Some(modules) = node_modules() else { return };
    let (home, token) = home();
    let (daemon, url) = serve(&home);
    let program = Path::new(CLIENTS).join("client.mjs");
    check(&Command::new("node").arg(program).arg(modules).args([url, token]).output().unwrap());
    stop(daemon);
}

#[test]
fn the_inspector_works() {
    let Some(modules) = node_modules() else { return };
    let (home, _) = home();
    let [program, arguments @ ..] = server();
    let environment = json!({"HOME": home.path()});
    let server = json!({"command": program, "args": arguments, "env": environment});
    let config = home.file("config.json", json!({"mcpServers": {"satchel": server}}).to_string());
    check_inspector(&modules, &["--cli", "--config", &config, "--server", "satchel"]);
}

#[test]
fn the_inspector_works_over_http() {
    let Some(modules) = node_modules() else { return };
    let (home, token) = home();
    let (daemon, url) = serve(&home);
    let header = format!("Authorization: Bearer {token}");
    let server = ["--cli", &url, "--transport", "http", "--header"];
    check_inspector(&modules, &[&server, [header.as_str()].as_slice()].concat());
    let mut wrong = Command::new(modules.join(INSPECTOR));
    wrong.args(server).args(["Authorization: Bearer no", "--method", "tools/list"]);
    assert!(!wrong.output().unwrap().status.success(), "a wrong token is refused");
    stop(daemon);
}

/// Calls the server that `server` names by the command line of the inspector.
fn check_inspector(modules: &Path, server: &[&str]) {
    let inspect = |words: &[&str]| {
        answer(&Command::new(modules.join(INSPECTOR)).args(server).args(words).output().unwrap())
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 7, "{tools}");
    let called = inspect(&["--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=honey"]);
    assert!(called["structuredContent"]["hits"].is_array(), "{called}");
    assert_eq!(inspect(&["--method", "prompts/list"])["prompts"][0]["name"], "recall");
    assert!(!inspect(&["--method", "resources/list"])["resources"].as_array().unwrap().is_empty());
}
