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
    CodeCache, Emitted, Host, HostError, HostOptions, MAX_COMPONENT_BYTES, Plugin, PluginError,
    PluginErrorKind, PluginLimits, RunSummary, SinkVerdict,
};
use satchel_pam::record::{RecordKind, Skip};
use satchel_source::{CancelToken, FileEntry, FileSet};
use satchel_tests::guests;

/// One host for all tests: the actions of one guest must not affect the others.
static HOST: LazyLock<Host> = LazyLock::new(|| Host::new(HostOptions::default()).unwrap());

const EXPORT_BYTES: u64 = 12;

struct OneFile(Vec<FileEntry>);

impl FileSet for OneFile {
    fn list(&self) -> &[FileEntry] {
        &self.0
    }

    fn open(&self, _: &str, _: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(b"hello, world")))
    }
}

fn files() -> Arc<dyn FileSet> {
    Arc::new(OneFile(vec![FileEntry { path: "a.json".to_owned(), size: EXPORT_BYTES }]))
}

fn load(guest: &str) -> Plugin {
    HOST.load(&guests::component(guest).unwrap()).unwrap_or_else(|error| panic!("{guest}: {error}"))
}

/// Runs a guest until it ends.
fn run_within(guest: &str, limits: &PluginLimits) -> (Result<RunSummary, PluginError>, Vec<Emitted>) {
    let mut emitted = Vec::new();
    let ended = load(guest).run(files(), "hostile", limits, &CancelToken::new(), &mut |one| {
        emitted.push(one);
        SinkVerdict::Proceed
    });
    (ended, emitted)
}

fn run(guest: &str) -> (Result<RunSummary, PluginError>, Vec<Emitted>) {
    run_within(guest, &PluginLimits::default())
}

fn run_error(guest: &str, limits: &PluginLimits) -> PluginError {
    let error = run_within(guest, limits).0.unwrap_err();
    assert_good_guest_runs();
    error
}

fn assert_good_guest_runs() {
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
type MessageTree<'a> = (&'a str, Vec<(&'a str, Option<&'a str>)>);

/// Returns the conversations among the emitted records.
fn message_trees(emitted: &[Emitted]) -> Vec<MessageTree<'_>> {
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
fn an_endless_loop_times_out_without_progress() {
    let idle = Duration::from_millis(50);
    let error = run_error("endless_loop", &PluginLimits { idle, ..PluginLimits::default() });
    assert_eq!(error, PluginError::NoProgress(idle));
    assert_eq!(error.to_string(), "the plugin made no progress in 0.05 s of processor time");
}

#[test]
fn endless_progress_times_out() {
    let total = Duration::from_millis(50);
    let error =
        run_error("busy", &PluginLimits { total, emitted_bytes: Some(u64::MAX), ..PluginLimits::default() });
    assert_eq!(error, PluginError::TooLong(total));
    assert_eq!(error.to_string(), "the plugin used more than 0.05 s of processor time");
}

#[test]
fn endless_recursion_overflows_its_own_stack_only() {
    let error = run_error("recursion", &PluginLimits::default());
    assert_eq!(error, PluginError::StackOverflow);
    assert!(error.to_string().contains("calls itself without end"));
}

#[test]
fn a_memory_bomb_is_reported_as_such() {
    let error = run_error("memory_bomb", &PluginLimits::default());
    assert_eq!(error.to_string(), "the plugin needs more than 128 MiB of memory");
}

#[test]
fn a_component_that_starts_too_large_is_reported_alike() {
    let wasm = guests::component_from_wat("(func $run (result i32) (global.get $ok))", 4_096).unwrap();
    let Err(HostError::Describe(error)) = HOST.load(&wasm) else { panic!("256 MiB were granted") };
    assert_eq!(error.to_string(), "the plugin needs more than 128 MiB of memory");
}

#[test]
fn a_panic_keeps_its_message_and_loses_its_control_characters() {
    let error = run_error("panic", &PluginLimits::default());
    assert_eq!(error.to_string(), "the plugin panicked: panicked at src/lib.rs:7:1: [31mindex 3 of 2");
}

#[test]
fn an_address_outside_its_memory_is_a_trap() {
    let error = run_error("out_of_bounds", &PluginLimits::default());
    assert_eq!(error.to_string(), "the plugin accessed memory out of bounds");
}

#[test]
fn a_flood_of_records_exceeds_its_budget() {
    let error = run_error(
        "record_flood",
        &PluginLimits { emitted_bytes: Some(1_000_000), ..PluginLimits::default() },
    );
    assert_eq!(error, PluginError::TooMuchEmitted(1_000_000));
    assert!(error.to_string().contains("emitted more than 1000000 bytes"));
}

#[test]
fn the_budget_of_a_small_export_is_64_mib() {
    let (ended, emitted) = run("record_flood");
    assert_eq!(ended.unwrap_err(), PluginError::TooMuchEmitted(64 << 20));
    assert!(emitted.len() < 2_000_000);
}

#[test]
fn a_flood_of_warnings_is_counted_and_truncated() {
    let (ended, emitted) = run("warning_flood");
    assert_eq!(ended.unwrap().warnings, 5_000);
    assert_eq!(warnings(&emitted).len(), 1_000);
}

#[test]
fn one_string_referenced_a_thousand_times_is_not_copied_a_thousand_times() {
    let error = run_error("amplification", &PluginLimits::default());
    assert_eq!(error.to_string(), "the plugin passed more than 64 MiB to the host in one call");
}

#[test]
fn the_first_of_two_messages_with_one_id_is_kept() {
    let (ended, emitted) = run("duplicate_ids");
    assert_eq!(message_trees(&emitted), [("c1", vec![("m1", None), ("m2", Some("m1"))])]);
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
    assert_eq!(message_trees(&emitted), [("c1", nodes), ("c4", Vec::new())]);
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
fn counts_reported_by_a_plugin_are_not_trusted() {
    let (ended, emitted) = run("lying_counts");
    assert_eq!(emitted[0], Emitted::Progress { done: 0, total: EXPORT_BYTES });
    let summary = ended.unwrap();
    assert_eq!((summary.bytes_read, summary.conversations), (0, 1));
}

#[test]
fn a_crash_leaves_only_complete_conversations() {
    let (ended, emitted) = run("trap_with_pending");
    assert_eq!(message_trees(&emitted), [("c1", Vec::new())]);
    assert_eq!(
        ended.unwrap_err().to_string(),
        "the plugin crashed: it aborted without a message (unreachable)"
    );
}

#[test]
fn a_plugin_that_ignores_a_stop_is_terminated() {
    let mut calls = 0;
    let limits = PluginLimits { emitted_bytes: Some(u64::MAX), ..PluginLimits::default() };
    let ended = load("ignores_stop").run(files(), "hostile", &limits, &CancelToken::new(), &mut |_| {
        calls += 1;
        SinkVerdict::Stop
    });
    assert_eq!(ended, Err(PluginError::Cancelled));
    assert_eq!(calls, 1);
}

#[test]
fn a_cancelled_run_ends_without_a_call_of_the_plugin() {
    let cancel = CancelToken::new();
    let ended = load("silent_loop").run(files(), "hostile", &PluginLimits::default(), &cancel, &mut |_| {
        cancel.cancel();
        SinkVerdict::Proceed
    });
    assert_eq!(ended, Err(PluginError::Cancelled));
    assert_good_guest_runs();
}

#[test]
fn an_error_reported_by_a_plugin_is_sanitised() {
    let (ended, _) = run("reports_error");
    let error = ended.unwrap_err();
    assert!(matches!(error, PluginError::Reported { kind: PluginErrorKind::Malformed, .. }));
    assert_eq!(error.to_string(), "cut off.! at a.json@123 (malformed)");
}

#[test]
fn open_files_are_bounded_and_other_files_are_out_of_reach() {
    run("hoarder").0.unwrap();
    run("other_files").0.unwrap();
}

#[test]
fn endless_detection_times_out() {
    let error = load("endless_detect").detect(files()).unwrap_err();
    assert_eq!(error, PluginError::NoProgress(Duration::from_secs(1)));
}

#[test]
fn a_detection_names_only_existing_files() {
    let found = load("good").detect(files()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].format.as_str(), found[0].confidence), ("hostile", 100));
    assert_eq!(found[0].files, ["a.json"]);
}

#[test]
fn an_undeclared_format_is_not_run() {
    let plugin = load("good");
    let ended = plugin
        .run(files(), "other", &PluginLimits::default(), &CancelToken::new(), &mut |_| SinkVerdict::Proceed);
    assert_eq!(ended, Err(PluginError::UnknownFormat("other".to_owned())));
}

fn load_error(wasm: &[u8]) -> String {
    HOST.load(wasm).err().unwrap().to_string()
}

#[test]
fn wasi_is_refused_by_name() {
    let message = load_error(&guests::component_importing("wasi:cli/environment@0.2.0").unwrap());
    assert!(message.contains("imports \"wasi:cli/environment@0.2.0\", a WASI interface"), "{message}");
}

#[test]
fn any_other_import_is_refused_by_name() {
    let message = load_error(&guests::component_importing("evil:net/socket@1.0.0").unwrap());
    assert!(
        message.contains("imports \"evil:net/socket@1.0.0\", which is not part of satchel:importer"),
        "{message}"
    );
}

#[test]
fn another_api_version_is_reported_with_both_numbers() {
    let stale = load_error(&guests::component_importing("satchel:importer/files@0.9.0").unwrap());
    assert!(stale.contains("built for satchel:importer 0.9.0, this program offers 1.0.0"), "{stale}");
    assert!(stale.contains("newer version of the plugin"), "{stale}");
    let newer = load_error(&guests::component_importing("satchel:importer/files@2.0.0").unwrap());
    assert!(newer.contains("2.0.0") && newer.contains("upgrade Satchel"), "{newer}");
}

#[test]
fn an_oversized_component_is_not_read() {
    let message = load_error(&vec![0; MAX_COMPONENT_BYTES + 1]);
    assert!(message.contains("33554433 bytes, more than the 33554432"), "{message}");
}

#[test]
fn files_that_are_no_importers_are_refused() {
    assert!(load_error(b"PK\x03\x04").contains("not a valid WebAssembly component"));
    let empty = load_error(b"\0asm\x0d\0\x01\0");
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
        let summary =
            plugin.run(files(), "hostile", &PluginLimits::default(), &CancelToken::new(), &mut |_| {
                SinkVerdict::Proceed
            });
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
