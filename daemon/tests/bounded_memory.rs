//! How much memory documents take that are read outside of the sandbox: no more than a bound, whatever they are and however long.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    process::{Command, Output, Stdio},
    thread,
};

use home::{Home, code, stderr};

/// Private memory that may be written, in KiB, beside the stacks of threads.
const BOUND: usize = 256 << 10;
/// Of the stacks of the threads that there are for each processor, in KiB.
const STACKS: usize = 8 << 10;
/// Entries of a hostile list: to hold them all takes more than the bound.
const ENTRIES: usize = 1_500_000;

/// The program with so much memory and no more: what it asks for beyond is not there, and it ends.
fn within(home: &Home, bound: usize, words: &[&str]) -> Output {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let program = home.command(words);
    let mut shell = Command::new("/bin/sh");
    let limited = format!("ulimit -d {} && exec \"$@\"", bound + processors * STACKS);
    shell.args(["-c", &limited, "sh"]).arg(program.get_program()).args(program.get_args());
    shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).output().unwrap()
}

fn store(list: &str, entries: &str) -> String {
    let memories = if list == "memories" { String::new() } else { r#""memories":[],"#.to_owned() };
    format!(
        r#"{{"schema":"portable-ai-memory","schema_version":"1.0","owner":{{"id":"someone"}},{memories}"{list}":[{entries}]}}"#
    )
}

/// Verifies and imports a document of nothing but empty entries, which are the cheapest to write.
fn nothing_but_braces(name: &str, text: impl Fn(&str) -> String) {
    let home = Home::new();
    let braces = vec!["{}"; ENTRIES].join(",");
    let path = home.file(&format!("export/{name}"), text(&braces));
    let folder = path.trim_end_matches(name).to_owned();
    for command in ["verify", "import"] {
        let done = within(&home, BOUND, &[command, &folder]);
        assert!(
            matches!(code(&done), Some(0 | 1 | 3)),
            "{command} of {name}: {:?} {}",
            code(&done),
            stderr(&done)
        );
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), stderr(&done));
        assert!(
            said.contains("is missing") || said.contains("warnings"),
            "{command} of {name} says why: {said}"
        );
    }
}

#[test]
fn a_list_of_empty_memories_takes_no_more_than_the_bound() {
    nothing_but_braces("memory-store.json", |braces| store("memories", braces));
}

#[test]
fn a_list_of_empty_relations_takes_no_more_than_the_bound() {
    nothing_but_braces("memory-store.json", |braces| store("relations", braces));
}

#[test]
fn an_index_of_empty_entries_takes_no_more_than_the_bound() {
    nothing_but_braces("memory-store.json", |braces| store("conversations_index", braces));
}

#[test]
fn a_list_of_empty_embeddings_takes_no_more_than_the_bound() {
    nothing_but_braces("embeddings.json", |braces| {
        format!(
            r#"{{"schema":"portable-ai-memory-embeddings","schema_version":"1.0","embeddings":[{braces}]}}"#
        )
    });
}

#[test]
fn a_conversation_of_empty_messages_takes_no_more_than_the_bound() {
    nothing_but_braces("conversation.json", |braces| {
        format!(
            r#"{{"schema":"portable-ai-memory-conversation","schema_version":"1.0","id":"c","provider":{{"name":"x"}},
            "temporal":{{"created_at":"2026-01-01T00:00:00Z"}},"messages":[{braces}]}}"#
        )
    });
}

/// An archive whose directory names so many empty files, of which none is there.
fn archive_of_names(files: u32) -> Vec<u8> {
    // The header of a file, by which an archive is known.
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
fn an_archive_of_a_million_names_is_refused_within_the_bound() {
    let home = Home::new();
    let many = home.file("many.zip", archive_of_names(1_500_000));
    for command in ["verify", "import"] {
        let done = within(&home, BOUND, &[command, &many]);
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), stderr(&done));
        assert!(code(&done).is_some_and(|code| code > 0), "{command}: {said}");
        assert!(said.contains("more than 100000 files"), "{command}: {said}");
    }
}
