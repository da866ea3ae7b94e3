//! Hostile components that do everything an importer must not do: each is contained, and the error says why it was
//! stopped.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    io::{self, Read},
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::Duration,
};

use satchel_host::{
    CodeCache, Emitted, ErrorKind, Host, HostError, HostOptions, Limits, MAX_COMPONENT_BYTES, Plugin,
    RunError, Summary, Verdict,
};
use satchel_pam::record::{RecordKind, Skip};
use satchel_source::{CancelToken, Entry, Files};
use satchel_tests::guests;

/// One host for all tests: the actions of one guest must not affect the others.
static HOST: LazyLock<Host> = LazyLock::new(|| Host::new(HostOptions::default()).unwrap());

const EXPORT_BYTES: u64 = 12;

struct OneFile(Vec<Entry>);

impl Files for OneFile {
    fn list(&self) -> &[Entry] {
        &self.0
    }

    fn open(&self, _: &str, _: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(b"hello, world")))
    }
}

fn files() -> Arc<dyn Files> {
    Arc::new(OneFile(vec![Entry { path: "a.json".to_owned(), size: EXPORT_BYTES }]))
}

fn load(guest: &str) -> Plugin {
    HOST.load(&guests::component(guest).unwrap()).unwrap_or_else(|error| panic!("{guest}: {error}"))
}

/// Runs a guest until it ends.
fn run_within(guest: &str, limits: &Limits) -> (Result<Summary, RunError>, Vec<Emitted>) {
    let mut emitted = Vec::new();
    let ended = load(guest).run(files(), "hostile", limits, &CancelToken::new(), &mut |one| {
        emitted.push(one);
        Verdict::Proceed
    });
    (ended, emitted)
}

fn run(guest: &str) -> (Result<Summary, RunError>, Vec<Emitted>) {
    run_within(guest, &Limits::default())
}

fn ended(guest: &str, limits: &Limits) -> RunError {
    let error = run_within(guest, limits).0.unwrap_err();
    a_good_run_still_works();
    error
}

fn a_good_run_still_works() {
    let (summary, emitted) = run("good");
    let summary = summary.unwrap();
    assert_eq!((summary.conversations, summary.messages, summary.warnings), (1, 2, 1));
    assert_eq!(emitted.len(), 3);
}

fn skips(emitted: &[Emitted]) -> Vec<&Skip> {
    emitted.iter().filter_map(|one| if let Emitted::Skip(skip) = one { Some(skip) } else { None }).collect()
}

fn warnings(emitted: &[Emitted]) -> Vec<String> {
    let text = |one: &Emitted| match one {
        Emitted::Warning(warning) => Some(format!("{}: {}", warning.locator, warning.message)),
        _ => None,
    };
    emitted.iter().filter_map(text).collect()
}

/// The id of a conversation, and the id and parent of each of its messages.
type Tree<'a> = (&'a str, Vec<(&'a str, Option<&'a str>)>);

/// Returns the conversations among the emitted records.
fn trees(emitted: &[Emitted]) -> Vec<Tree<'_>> {
    let mut trees = Vec::new();
    for one in emitted {
        if let Emitted::Conversation(record) = one {
            let nodes =
                record.messages.iter().map(|message| (message.id.as_str(), message.parent.as_deref()));
            trees.push((record.id.as_str(), nodes.collect()));
        }
    }
    trees
}

#[test]
fn an_endless_loop_ends_for_lack_of_progress() {
    let idle = Duration::from_millis(50);
    let error = ended("endless_loop", &Limits { idle, ..Limits::default() });
    assert_eq!(error, RunError::NoProgress(idle));
    assert_eq!(error.to_string(), "the plugin made no progress for 0.05 s of work");
}

#[test]
fn endless_progress_ends_too() {
    let total = Duration::from_millis(50);
    let error = ended("busy", &Limits { total, emitted_bytes: Some(u64::MAX), ..Limits::default() });
    assert_eq!(error, RunError::TooLong(total));
    assert_eq!(error.to_string(), "the plugin worked for more than 0.05 s");
}

#[test]
fn endless_recursion_overflows_its_own_stack_only() {
    let error = ended("recursion", &Limits::default());
    assert_eq!(error, RunError::StackOverflow);
    assert!(error.to_string().contains("calls itself without end"));
}

#[test]
fn a_memory_bomb_is_told_as_what_it_is() {
    let error = ended("memory_bomb", &Limits::default());
    assert_eq!(error.to_string(), "the plugin needs more than 128 MiB of memory");
}

#[test]
fn a_component_that_starts_too_large_is_told_the_same() {
    let wasm = guests::from_text("(func $run (result i32) (global.get $ok))", 4_096).unwrap();
    let Err(HostError::Describe(error)) = HOST.load(&wasm) else { panic!("256 MiB were granted") };
    assert_eq!(error.to_string(), "the plugin needs more than 128 MiB of memory");
}

#[test]
fn a_panic_keeps_its_message_and_loses_its_control_characters() {
    let error = ended("panic", &Limits::default());
    assert_eq!(error.to_string(), "the plugin panicked: panicked at src/lib.rs:7:1: [31mindex 3 of 2");
}

#[test]
fn an_address_outside_its_memory_is_a_trap() {
    let error = ended("out_of_bounds", &Limits::default());
    assert_eq!(error.to_string(), "the plugin reached outside its memory");
}

#[test]
fn a_flood_of_records_meets_its_budget() {
    let error = ended("record_flood", &Limits { emitted_bytes: Some(1_000_000), ..Limits::default() });
    assert_eq!(error, RunError::TooMuchEmitted(1_000_000));
    assert!(error.to_string().contains("emitted more than 1000000 bytes"));
}

#[test]
fn the_budget_of_a_small_export_is_64_mib() {
    let (ended, emitted) = run("record_flood");
    assert_eq!(ended.unwrap_err(), RunError::TooMuchEmitted(64 << 20));
    assert!(emitted.len() < 2_000_000);
}

#[test]
fn a_flood_of_warnings_is_counted_and_cut() {
    let (ended, emitted) = run("warning_flood");
    assert_eq!(ended.unwrap().warnings, 5_000);
    assert_eq!(warnings(&emitted).len(), 1_000);
}

#[test]
fn one_string_named_a_thousand_times_is_not_copied_a_thousand_times() {
    let error = ended("amplification", &Limits::default());
    assert_eq!(error.to_string(), "the plugin handed over more than 64 MiB in one call");
}

#[test]
fn of_two_messages_with_one_id_the_first_stays() {
    let (ended, emitted) = run("duplicate_ids");
    assert_eq!(trees(&emitted), [("c1", vec![("m1", None), ("m2", Some("m1"))])]);
    let skips = skips(&emitted);
    assert_eq!(
        (skips.len(), skips[0].kind, skips[0].locator.as_str()),
        (1, RecordKind::Message, "a.json[0]#m1")
    );
    assert!(skips[0].reason.contains("same id"));
    let summary = ended.unwrap();
    assert_eq!((summary.messages, summary.skipped.get(&RecordKind::Message)), (2, Some(&1)));
}

#[test]
fn cycles_and_self_parents_become_roots() {
    let (ended, emitted) = run("invalid_structure");
    let nodes = vec![("self", None), ("a", None), ("b", Some("c")), ("c", Some("a"))];
    assert_eq!(trees(&emitted), [("c1", nodes), ("c4", Vec::new())]);
    let warnings = warnings(&emitted);
    assert!(
        warnings
            .iter()
            .any(|text| text.starts_with("a.json[0]#self: ") && text.contains("itself as its parent"))
    );
    assert!(
        warnings.iter().any(|text| text.starts_with("a.json[0]#a: ") && text.contains("its own ancestor"))
    );
    ended.unwrap();
}

#[test]
fn invalid_records_are_skipped_with_their_reason() {
    let (ended, emitted) = run("invalid_structure");
    let reasons: Vec<String> = skips(&emitted)
        .iter()
        .map(|skip| format!("{:?} {}: {}", skip.kind, skip.locator, skip.reason))
        .collect();
    let has = |kind: &str, part: &str| {
        reasons.iter().any(|reason| reason.starts_with(kind) && reason.contains(part))
    };
    assert!(has("Message a.json[0]#", "id is empty"), "{reasons:#?}");
    assert!(has("Conversation a.json[1]", "id is empty; its 1 messages"), "{reasons:#?}");
    assert!(has("Conversation emitted line 3", "king"), "{reasons:#?}");
    assert!(has("Memory a.json[4]", "content is empty"), "{reasons:#?}");
    assert!(has("File emitted line 7", "cannot be read"), "{reasons:#?}");
    let warnings = warnings(&emitted).join("\n");
    assert!(warnings.contains("a.json[3]: created_at lies outside"), "{warnings}");
    assert!(warnings.contains("(\"Not ok\")"), "{warnings}");
    assert!(warnings.contains("confidence does not lie between 0 and 1"), "{warnings}");
    let summary = ended.unwrap();
    assert_eq!((summary.conversations, summary.relations, summary.evidence), (2, 1, 0));
    assert_eq!(summary.skipped.get(&RecordKind::Message), Some(&2));
}

#[test]
fn what_a_plugin_says_of_its_own_counts_is_not_believed() {
    let (ended, emitted) = run("lying_counts");
    assert_eq!(emitted[0], Emitted::Progress { done: 0, total: EXPORT_BYTES });
    let summary = ended.unwrap();
    assert_eq!((summary.bytes_read, summary.conversations), (0, 1));
}

#[test]
fn a_crash_leaves_whole_conversations_only() {
    let (ended, emitted) = run("trap_with_pending");
    assert_eq!(trees(&emitted), [("c1", Vec::new())]);
    assert_eq!(ended.unwrap_err().to_string(), "the plugin crashed: it gave up without a word (unreachable)");
}

#[test]
fn a_plugin_that_ignores_stop_is_ended() {
    let mut calls = 0;
    let limits = Limits { emitted_bytes: Some(u64::MAX), ..Limits::default() };
    let ended = load("deaf").run(files(), "hostile", &limits, &CancelToken::new(), &mut |_| {
        calls += 1;
        Verdict::Stop
    });
    assert_eq!(ended, Err(RunError::Cancelled));
    assert_eq!(calls, 1);
}

#[test]
fn a_cancelled_run_ends_though_the_plugin_does_not_call() {
    let cancel = CancelToken::new();
    let ended = load("deaf_loop").run(files(), "hostile", &Limits::default(), &cancel, &mut |_| {
        cancel.cancel();
        Verdict::Proceed
    });
    assert_eq!(ended, Err(RunError::Cancelled));
    a_good_run_still_works();
}

#[test]
fn a_plugins_own_error_is_cleaned() {
    let (ended, _) = run("reports_error");
    let error = ended.unwrap_err();
    assert!(matches!(error, RunError::Reported { kind: ErrorKind::Malformed, .. }));
    assert_eq!(error.to_string(), "cut off.! at a.json@123 (malformed)");
}

#[test]
fn open_files_are_bounded_and_other_files_are_out_of_reach() {
    run("hoarder").0.unwrap();
    run("other_files").0.unwrap();
}

#[test]
fn looking_for_ever_ends() {
    let error = load("endless_detect").detect(files()).unwrap_err();
    assert_eq!(error, RunError::NoProgress(Duration::from_secs(1)));
}

#[test]
fn a_detection_names_only_what_exists() {
    let found = load("good").detect(files()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].format.as_str(), found[0].confidence), ("hostile", 100));
    assert_eq!(found[0].files, ["a.json"]);
}

#[test]
fn an_undeclared_format_is_not_run() {
    let plugin = load("good");
    let ended =
        plugin.run(files(), "other", &Limits::default(), &CancelToken::new(), &mut |_| Verdict::Proceed);
    assert_eq!(ended, Err(RunError::UnknownFormat("other".to_owned())));
}

fn refusal(wasm: &[u8]) -> String {
    HOST.load(wasm).err().unwrap().to_string()
}

#[test]
fn wasi_is_refused_by_name() {
    let message = refusal(&guests::importing("wasi:cli/environment@0.2.0").unwrap());
    assert!(message.contains("imports \"wasi:cli/environment@0.2.0\", a WASI interface"), "{message}");
}

#[test]
fn any_other_import_is_refused_by_name() {
    let message = refusal(&guests::importing("evil:net/socket@1.0.0").unwrap());
    assert!(
        message.contains("imports \"evil:net/socket@1.0.0\", which is not part of satchel:importer"),
        "{message}"
    );
}

#[test]
fn another_api_version_is_told_with_both_numbers() {
    let stale = refusal(&guests::importing("satchel:importer/files@0.9.0").unwrap());
    assert!(stale.contains("built for satchel:importer 0.9.0, this program offers 1.0.0"), "{stale}");
    assert!(stale.contains("newer version of the plugin"), "{stale}");
    let newer = refusal(&guests::importing("satchel:importer/files@2.0.0").unwrap());
    assert!(newer.contains("2.0.0") && newer.contains("upgrade Satchel"), "{newer}");
}

#[test]
fn an_oversized_component_is_not_even_read() {
    let message = refusal(&vec![0; MAX_COMPONENT_BYTES + 1]);
    assert!(message.contains("33554433 bytes, more than the 33554432"), "{message}");
}

#[test]
fn what_is_no_importer_is_refused() {
    assert!(refusal(b"PK\x03\x04").contains("not a valid WebAssembly component"));
    let empty = refusal(b"\0asm\x0d\0\x01\0");
    assert!(empty.contains("no interface satchel:importer/plugin"), "{empty}");
}

#[test]
fn a_cached_component_is_the_same_component() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let cache = CodeCache { folder: at("compiled"), key_file: at("state/satchel/code-cache.key") };
    let wasm = guests::component("good").unwrap();
    for _ in 0..2 {
        let host = Host::new(HostOptions { cache: Some(cache.clone()), ..HostOptions::default() }).unwrap();
        let plugin = host.load(&wasm).unwrap();
        drop(host);
        let summary = plugin
            .run(files(), "hostile", &Limits::default(), &CancelToken::new(), &mut |_| Verdict::Proceed);
        assert_eq!(summary.unwrap().conversations, 1);
        assert_eq!(plugin.info().name, "hostile");
        assert_eq!(plugin.sha256_hex().len(), 64);
        assert!(plugin.imports().iter().all(|import| import.starts_with("satchel:importer/")));
    }
    let mode = |path: PathBuf| {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
    };
    assert_eq!([at("compiled"), at("state/satchel"), cache.key_file].map(mode), [0o700, 0o700, 0o600]);
}
