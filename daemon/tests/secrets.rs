//! Private data stays out of logs, errors and receipts: the output of a whole run at the most verbose level is
//! searched for planted strings.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest")]
mod home;

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use age::{secrecy::ExposeSecret as _, x25519::Identity};
use home::{LONG, TestHome, ended};
use rustix::process::{Pid, Signal, kill_process};

/// Everything that any component logs, except for the compiler of the importers: it writes gigabytes, and is done
/// before a file is read.
const MOST_VERBOSE: &str = "trace,cranelift=info,regalloc2=info,wasmtime=info,pulley=info";
/// Strings in the person's files that must not appear in any output: texts, identities, and credentials.
const PLANTED: [&str; 10] = [
    "canary-message-text-1",
    "canary-memory-text-2",
    "canary-title-3",
    "canary-4@example.org",
    "+4790000005",
    "https://exports.example.org/?token=canary-6",
    "canary-login-from-192.0.2.7",
    "sk-canary-api-key-8",
    "canary-cut-text-9",
    PASSPHRASE,
];
const PASSPHRASE: &str = "canary passphrase 10";

/// Returns a ChatGPT export that contains them all, including the files that providers add to conversations.
fn export(home: &TestHome, name: &str) -> String {
    let message = |id: &str, role: &str, text: &str| {
        format!(
            r#"{{"id": "{name}-{id}", "author": {{"role": "{role}"}}, "create_time": 1746180000, "recipient": "all",
            "metadata": {{"user_email": "canary-4@example.org", "api_key": "sk-canary-api-key-8"}},
            "content": {{"content_type": "text", "parts": ["{text}"]}}}}"#
        )
    };
    let memories = r#"{"id": "mem", "author": {"role": "assistant"}, "create_time": 1746180000, "recipient": "all",
        "metadata": {}, "content": {"content_type": "model_editable_context",
        "model_set_context": "1. [2025-05-01]. canary-memory-text-2."}}"#;
    let conversation = format!(
        r#"{{"title": "canary-title-3", "create_time": 1746180000, "conversation_id": "{name}", "current_node": "a",
        "mapping": {{"m": {{"id": "m", "parent": null, "children": ["q"], "message": {memories}}},
        "q": {{"id": "q", "parent": "m", "children": ["a"], "message": {}}},
        "a": {{"id": "a", "parent": "q", "children": [], "message": {}}}}}}}"#,
        message("q", "user", "canary-message-text-1"),
        message("a", "assistant", "sk-canary-api-key-8"),
    );
    home.file(&format!("{name}/conversations.json"), format!("[{conversation}]"));
    home.file(
        &format!("{name}/user.json"),
        r#"{"id": "user-1", "email": "canary-4@example.org", "phone_number": "+4790000005",
        "export_url": "https://exports.example.org/?token=canary-6"}"#,
    );
    home.file(&format!("{name}/login_history.json"), r#"[{"event": "canary-login-from-192.0.2.7"}]"#);
    home.path().join(name).to_str().unwrap().to_owned()
}

/// Returns damaged files: the output says what is wrong with them, but not what they contain.
fn broken(home: &TestHome) -> Vec<String> {
    vec![
        home.file(
            "cut/conversations.json",
            r#"[{"title": "canary-title-3", "mapping": {"a": "canary-cut-text-9"#,
        ),
        home.file(
            "odd/conversations.json",
            r#"[{"title": 7, "mapping": "canary-cut-text-9"}, "canary-cut-text-9"]"#,
        ),
        home.file("no-zip.zip", "PK\u{3}\u{4}canary-cut-text-9"),
        home.file(
            "memory-store.json",
            r#"{"schema": "portable-ai-memory", "memories": [{"content": "canary-cut-text-9"#,
        ),
        home.file("notes.json", r#"{"export_url": "https://exports.example.org/?token=canary-6"}"#),
    ]
}

struct LoggedRun<'h> {
    home: &'h TestHome,
    outputs: Vec<(String, Vec<u8>)>,
}

impl LoggedRun<'_> {
    /// Runs a command at the highest verbosity, and keeps its output.
    fn run(&mut self, words: &[&str]) {
        let mut command = self.home.command(&[&["-vv"], words].concat());
        let output = command.env("SATCHEL_LOG", MOST_VERBOSE).output().unwrap();
        self.outputs.push((format!("stdout of {words:?}"), output.stdout));
        self.outputs.push((format!("stderr of {words:?}"), output.stderr));
    }

    /// Checks that none of the output contains any of `secrets`.
    fn check(&self, secrets: &[String]) {
        let lengths: usize = self.outputs.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(lengths > 10_000, "too little output to prove anything: {lengths} bytes");
        for (what, bytes) in &self.outputs {
            let text = String::from_utf8_lossy(bytes);
            for secret in secrets {
                let around = text.find(secret.as_str()).map(|at| {
                    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
                    text[line..].chars().take(400).collect::<String>()
                });
                assert_eq!(around, None, "{secret:?} is in the {what}");
            }
        }
    }
}

/// Returns the seed of the signing key, as its file contains it.
fn seeds(data: &Path) -> Vec<String> {
    let text = fs::read_to_string(data.join("keys/signing.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    vec![file["seed"].as_str().unwrap().to_owned()]
}

fn run_everything(run: &mut LoggedRun<'_>, name: &str, secrets: &mut Vec<String>) {
    let home = run.home;
    let out = |file: &str| home.path().join(format!("{name}-{file}")).to_str().unwrap().to_owned();
    let input = export(home, name);
    run.run(&["import", &input]);
    run.run(&["import", "--again", "--json", &input]);
    for path in broken(home) {
        run.run(&["import", &path]);
        run.run(&["verify", &path]);
        run.run(&["apply", &path]);
    }
    run.run(&["imports", "list"]);
    run.run(&["export", "--output", &out("full")]);
    run.run(&["export", "--output", &out("full")]);
    run.run(&["export", "--incremental", "--output", &out("delta.zip")]);
    run.run(&["export", "--format", "markdown", "--output", &out("notes")]);
    run.run(&["export", "--format", "memu", "--output", &out("memu")]);
    run.run(&["export", "--strip-identifiers", "--type", "fact", "--output", &out("part.zip")]);
    let data = home.path().join(".local/share/satchel");
    secrets.extend(seeds(&data));
    run.run(&["keys", "rotate"]);
    secrets.extend(seeds(&data));
    let store = home.path().join(format!("{name}-full/memory-store.json"));
    let changed =
        fs::read_to_string(&store).unwrap().replace("canary-memory-text-2", "canary-memory-text-2 and more");
    fs::write(&store, changed).unwrap();
    for words in [
        ["verify", &out("full")],
        ["apply", &out("full")],
        ["verify", &out("delta.zip")],
        ["apply", &out("part.zip")],
    ] {
        run.run(&words);
    }
    encrypted(run, name, secrets);
    run.run(&["exports", "list"]);
    run.run(&["keys", "list"]);
    run.run(&["sources", "list"]);
    run.run(&["status"]);
    run.run(&["backup", &out("backup")]);
    run.run(&["no-such-command", "--passphrase"]);
}

/// Makes encrypted exports, and opens them with the right and the wrong keys.
fn encrypted(run: &mut LoggedRun<'_>, name: &str, secrets: &mut Vec<String>) {
    let home = run.home;
    let out = |file: &str| home.path().join(format!("{name}-{file}")).to_str().unwrap().to_owned();
    let [own, other] = [Identity::generate(), Identity::generate()];
    let [key, wrong] = [("key.txt", &own), ("wrong.txt", &other)].map(|(file, identity)| {
        let secret = identity.to_string().expose_secret().to_owned();
        secrets.push(secret["AGE-SECRET-KEY-1".len()..].to_owned());
        home.file(&format!("{name}-{file}"), secret)
    });
    let phrase = home.file(&format!("{name}-spoken.txt"), PASSPHRASE);
    let (to, by) = (out("to.zip.age"), out("by.zip.age"));
    run.run(&["export", "--output", &to, "--encrypt-to", &own.to_public().to_string()]);
    run.run(&["export", "--output", &by, "--passphrase-file", &phrase]);
    assert!(Path::new(&to).exists() && Path::new(&by).exists(), "{:?}", run.outputs.last());
    for command in ["verify", "apply", "import"] {
        run.run(&[command, &to, "--identity", &key]);
        run.run(&[command, &to, "--identity", &wrong]);
        run.run(&[command, &by, "--passphrase-file", &phrase]);
        run.run(&[command, &by, "--passphrase-file", &wrong]);
    }
    // A mix-up: an identity in place of a recipient.
    let secret = fs::read_to_string(&key).unwrap();
    run.run(&["export", "--output", &out("mixed.zip.age"), "--encrypt-to", &secret]);
}

#[test]
fn no_private_data_is_printed_or_logged() {
    let home = TestHome::new();
    let mut run = LoggedRun { home: &home, outputs: Vec::new() };
    let mut secrets: Vec<String> = PLANTED.iter().map(|&text| text.to_owned()).collect();
    run_everything(&mut run, "alone", &mut secrets);
    let shown = home.run(&["conversations", "list"]).stdout;
    assert!(String::from_utf8_lossy(&shown).contains("canary-title-3"), "what was planted was stored");
    let watched = home.path().join("watched");
    fs::create_dir(&watched).unwrap();
    let log = home.path().join("satchel.log");
    let words = ["-vv", "serve", "--log-file", log.to_str().unwrap(), "--watch", watched.to_str().unwrap()];
    let mut serve = home.command(&words);
    serve.env("SATCHEL_LOG", MOST_VERBOSE).stdout(Stdio::piped()).stderr(Stdio::piped());
    let daemon = Daemon(serve.spawn().unwrap());
    let socket = home.path().join(".local/share/satchel/satchel.sock");
    wait(|| socket.exists());
    fs::rename(export(&home, "dropped"), watched.join("dropped")).unwrap();
    run_everything(&mut run, "served", &mut secrets);
    wait(|| {
        let listed = home.run(&["imports", "list", "--json"]);
        String::from_utf8_lossy(&listed.stdout).contains("\"dropped\"")
    });
    let output = daemon.stop();
    run.outputs.push(("stdout of the daemon".to_owned(), output.stdout));
    run.outputs.push(("stderr of the daemon".to_owned(), output.stderr));
    run.outputs.push(("log of the daemon".to_owned(), fs::read(&log).unwrap()));
    for secret in seeds(&home.path().join(".local/share/satchel")) {
        secrets.push(secret);
    }
    run.check(&secrets);
}

fn wait(there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < LONG, "it run not come");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// A daemon that ends with its test.
struct Daemon(Child);

impl Daemon {
    fn stop(mut self) -> std::process::Output {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        std::io::Read::read_to_end(&mut self.0.stdout.take().unwrap(), &mut stdout).unwrap();
        std::io::Read::read_to_end(&mut self.0.stderr.take().unwrap(), &mut stderr).unwrap();
        std::process::Output { status: ended(&mut self.0), stdout, stderr }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Either it has ended, or the test has failed already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
