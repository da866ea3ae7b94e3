//! Tests the memory use for documents that are read outside of the sandbox: it stays below a bound, whatever they
//! contain and however long they are.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use home::{TestHome, code, stderr};

/// Private writable memory, in KiB, not counting the stacks of threads.
const MEMORY_LIMIT_KIB: usize = 256 << 10;
/// Stacks of the threads per processor, in KiB.
const STACKS_KIB: usize = 8 << 10;
/// Entries of a hostile list; holding all of them, or a finding for each, takes more than the bound.
const ENTRIES: usize = 1_500_000;
/// The same for memories, which are larger.
const MEMORIES: usize = 600_000;
const _: () =
    assert!(MEMORIES * size_of::<satchel_pam::memory::Memory>() > (MEMORY_LIMIT_KIB + 2 * STACKS_KIB) << 10);

/// Runs the program with a memory limit. An allocation beyond it fails and ends the program.
fn run_limited(home: &TestHome, bound: usize, words: &[&str]) -> Output {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let program = home.command(words);
    let mut shell = Command::new("/bin/sh");
    let limited = format!("ulimit -d {} && exec \"$@\"", bound + processors * STACKS_KIB);
    shell.args(["-c", &limited, "sh"]).arg(program.get_program()).args(program.get_args());
    shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).output().unwrap()
}

/// Runs the program, and returns the peak of its private memory in KiB, sampled a hundred times a second.
fn run_measured(home: &TestHome, words: &[&str]) -> (Output, usize) {
    let mut command = home.command(words);
    let mut running =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", running.id());
    let private = || -> Option<usize> {
        let status = fs::read_to_string(&status).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let mut peak = 0;
    while running.try_wait().unwrap().is_none() {
        peak = peak.max(private().unwrap_or(0));
        thread::sleep(Duration::from_millis(10));
    }
    (running.wait_with_output().unwrap(), peak)
}

fn store(list: &str, entries: &str) -> String {
    let memories = if list == "memories" { String::new() } else { r#""memories":[],"#.to_owned() };
    format!(
        r#"{{"schema":"portable-ai-memory","schema_version":"1.0","owner":{{"id":"someone"}},{memories}"{list}":[{entries}]}}"#
    )
}

/// Verifies and imports a document that consists of empty entries, which are the cheapest to write.
fn check_empty_entries(name: &str, entries: usize, text: impl Fn(&str) -> String) {
    let home = TestHome::new();
    let braces = vec!["{}"; entries].join(",");
    let path = home.file(&format!("export/{name}"), text(&braces));
    let folder = path.trim_end_matches(name).to_owned();
    for command in ["verify", "import"] {
        let done = run_limited(&home, MEMORY_LIMIT_KIB, &[command, &folder]);
        assert!(
            matches!(code(&done), Some(0 | 1 | 3)),
            "{command} of {name}: {:?} {}",
            code(&done),
            stderr(&done)
        );
        let printed = format!("{}{}", String::from_utf8_lossy(&done.stdout), stderr(&done));
        assert!(
            printed.contains("is missing") || printed.contains("warnings"),
            "{command} of {name} says why: {printed}"
        );
    }
}

#[test]
fn a_list_of_empty_memories_takes_no_more_than_the_bound() {
    check_empty_entries("memory-store.json", MEMORIES, |braces| store("memories", braces));
}

#[test]
fn a_list_of_empty_relations_takes_no_more_than_the_bound() {
    check_empty_entries("memory-store.json", ENTRIES, |braces| store("relations", braces));
}

#[test]
fn an_index_of_empty_entries_takes_no_more_than_the_bound() {
    check_empty_entries("memory-store.json", ENTRIES, |braces| store("conversations_index", braces));
}

#[test]
fn a_list_of_empty_embeddings_takes_no_more_than_the_bound() {
    check_empty_entries("embeddings.json", ENTRIES, |braces| {
        format!(
            r#"{{"schema":"portable-ai-memory-embeddings","schema_version":"1.0","embeddings":[{braces}]}}"#
        )
    });
}

#[test]
fn a_conversation_of_empty_messages_takes_no_more_than_the_bound() {
    check_empty_entries("conversation.json", ENTRIES, |braces| {
        format!(
            r#"{{"schema":"portable-ai-memory-conversation","schema_version":"1.0","id":"c","provider":{{"name":"x"}},
            "temporal":{{"created_at":"2026-01-01T00:00:00Z"}},"messages":[{braces}]}}"#
        )
    });
}

/// Returns a conversation of `messages` messages that say `text`.
fn conversation(messages: usize, text: &str) -> String {
    let message = |at| {
        format!(
            r#"{{"id":"m{at}","role":"user","created_at":"2026-01-01T00:00:00Z","content":{{"type":"text","text":"{text}"}}}}"#
        )
    };
    let messages: Vec<String> = (0..messages).map(message).collect();
    format!(
        r#"{{"schema":"portable-ai-memory-conversation","schema_version":"1.0","id":"c","provider":{{"name":"elsewhere"}},
        "temporal":{{"created_at":"2026-01-01T00:00:00Z"}},"messages":[{}]}}"#,
        messages.join(",")
    )
}

/// Returns a store of `count` memories, each with a text of its own and `metadata`.
fn memories(count: usize, metadata: &str) -> String {
    let memory = |at| {
        let content = format!("Memory number {at} of a long list");
        let hash = satchel_pam::hash::ContentHash::of(&content);
        format!(
            r#"{{"id":"{at:08x}-0000-4000-8000-000000000000","type":"fact","content":"{content}","content_hash":"{hash}",
            "temporal":{{"created_at":"2026-01-01T00:00:00Z"}},"provenance":{{"platform":"elsewhere"}},
            "metadata":{{"more":"{metadata}"}}}}"#
        )
    };
    let memories: Vec<String> = (0..count).map(memory).collect();
    store("memories", &memories.join(","))
}

/// Runs `command` on a folder with one document, within the bound, and returns its output.
fn bounded(command: &str, name: &str, text: String) -> Output {
    let home = TestHome::new();
    let path = home.file(&format!("export/{name}"), text);
    let (done, peak) = run_measured(&home, &[command, "--json", path.trim_end_matches(name)]);
    assert!(peak > 1 << 10, "{command} of {name} was not seen at work");
    assert!(peak < MEMORY_LIMIT_KIB, "{command} of {name} took {peak} KiB");
    done
}

fn all_output(done: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&done.stdout), stderr(done))
}

#[test]
fn the_longest_accepted_conversations_stay_within_the_bound() {
    for (messages, words) in [(50_000, 400), (200_000, 6)] {
        let text = || conversation(messages, &"word ".repeat(words));
        let done = bounded("import", "conversation.json", text());
        assert_eq!(code(&done), Some(0), "{}", all_output(&done));
        let receipt: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(receipt["imports"][0]["messages"]["new"], messages, "{receipt}");
        let verified = bounded("verify", "conversation.json", text());
        assert_eq!(code(&verified), Some(0), "{}", all_output(&verified));
    }
}

#[test]
fn a_longer_conversation_is_rejected_within_the_bound() {
    for (command, answer) in [("verify", 4), ("import", 0)] {
        let done = bounded(command, "conversation.json", conversation(300_000, ""));
        assert_eq!(code(&done), Some(answer), "{command}: {}", all_output(&done));
        assert!(
            all_output(&done).contains("divide it into several documents"),
            "{command}: {}",
            all_output(&done)
        );
    }
}

#[test]
fn long_memory_stores_stay_within_the_bound() {
    for (count, words, command) in [(12_000, 2_000, "import"), (200_000, 60, "verify")] {
        let done = bounded(command, "memory-store.json", memories(count, &"word ".repeat(words)));
        assert_eq!(code(&done), Some(0), "{command}: {}", all_output(&done));
    }
}

/// Returns an archive whose directory lists `files` empty files, none of which is there.
fn archive_of_names(files: u32) -> Vec<u8> {
    // The header of a file, by which an archive is recognised.
    let mut bytes = [b"PK\x03\x04".as_slice(), &[0; 22], &[8, 0, 0, 0], b"00000000"].concat();
    let begin = bytes.len() as u64;
    let mut put = |numbers: &[(u64, usize)]| {
        for (number, width) in numbers {
            bytes.extend_from_slice(&number.to_le_bytes()[..*width]);
        }
    };
    for name in 0..files {
        let name = u64::from_le_bytes(*format!("{name:08x}").as_bytes().first_chunk().unwrap());
        put(&[(0x0201_4b50, 4), (0, 8), (0, 8), (0, 8), (8, 2), (0, 8), (0, 8), (name, 8)]);
    }
    let (files, length) = (u64::from(files), u64::from(files) * 54);
    put(&[(0x0606_4b50, 4), (44, 8), (45, 2), (45, 2), (0, 8)]);
    put(&[(files, 8), (files, 8), (length, 8), (begin, 8)]);
    put(&[(0x0706_4b50, 4), (0, 4), (begin + length, 8), (1, 4)]);
    put(&[(0x0605_4b50, 4), (0, 4), (0xffff, 2), (0xffff, 2), (0xffff_ffff, 4), (0xffff_ffff, 4), (0, 2)]);
    bytes
}

#[test]
fn an_archive_of_a_million_names_is_rejected_within_the_bound() {
    let home = TestHome::new();
    let many = home.file("many.zip", archive_of_names(1_500_000));
    for command in ["verify", "import"] {
        let done = run_limited(&home, MEMORY_LIMIT_KIB, &[command, &many]);
        let printed = format!("{}{}", String::from_utf8_lossy(&done.stdout), stderr(&done));
        assert!(code(&done).is_some_and(|code| code > 0), "{command}: {printed}");
        assert!(printed.contains("more than 100000 files"), "{command}: {printed}");
    }
}
