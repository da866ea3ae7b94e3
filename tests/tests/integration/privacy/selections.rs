//! Filters: an export contains exactly the selected records and never passes for a full one.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::{
    export::{ExportFormat, ExportRequest, Extent, Selection},
    ingest::receipt::ImportStatus,
};
use satchel_pam::memory::MemoryType;
use satchel_store::{MemoryQuery, TimeRange};
use satchel_tests::test_core::{ExportedState, TestCore, demo_folder, full_export};
use serde_json::Value;

use super::canaries::{commit, memory};

fn core_with_exports(folder: &Path) -> Result<TestCore> {
    let core = TestCore::open(&folder.join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.import(&demo_folder().join("claude-export"))?;
    Ok(core)
}

fn selection_request(output: &Path, memories: MemoryQuery) -> ExportRequest {
    ExportRequest { selection: Selection { memories, strip: false }, ..full_export(output.to_owned()) }
}

/// Returns the ids of the memories and of the conversations that pass, judged by the documents themselves.
fn selected_ids(
    all: &ExportedState,
    memory: impl Fn(&Value) -> bool,
    conversation: impl Fn(&Value) -> bool,
) -> [BTreeSet<String>; 2] {
    let id = |value: &Value| value["id"].to_string();
    [
        all.memories.iter().filter(|one| memory(one)).map(id).collect(),
        all.conversations.values().filter(|one| conversation(one)).map(id).collect(),
    ]
}

#[test]
fn a_selection_contains_what_was_selected_and_is_a_valid_bundle() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_exports(folder.path())?;
    core.export(&folder.path().join("all"))?;
    let all = ExportedState::read(&folder.path().join("all"))?;
    let instruction = MemoryQuery { types: vec![MemoryType::Instruction], ..MemoryQuery::default() };
    let claude = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let middle = all.memories.iter().filter_map(update_time).max().context("a time")?;
    let late = TimeRange { from: Some(parse_micros(&middle)?), until: None };
    let late = MemoryQuery { updated: late, ..MemoryQuery::default() };
    let of_claude = |one: &Value| one["provenance"]["platform"] == "claude";
    let cases: [(&str, MemoryQuery, [BTreeSet<String>; 2]); 3] = [
        ("type", instruction, selected_ids(&all, |one| one["type"] == "instruction", |_| false)),
        ("platform", claude, selected_ids(&all, of_claude, |one| one["provider"]["name"] == "claude")),
        (
            "time",
            late,
            selected_ids(
                &all,
                |one| update_time(one) == Some(middle.clone()),
                |one| update_time(one) >= Some(middle.clone()),
            ),
        ),
    ];
    for (by, query, [memories, conversations]) in cases {
        ensure!(!memories.is_empty() && memories.len() < all.memories.len(), "{by}: {memories:?}");
        let out = folder.path().join(by);
        let made = core.export_with(&selection_request(&out, query))?;
        let state = ExportedState::read(&out)?;
        assert_eq!(selected_ids(&state, |_| true, |_| true), [memories, conversations], "{by}");
        assert_eq!(made.selection.map(|selection| selection.by), Some(vec![by.to_owned()]));
        let report = verify::path(&out, &verify::VerifyOptions::default())?;
        ensure!(report.valid && report.selection.is_some(), "{by}: {:?}", report.issues);
        let text = fs::read_to_string(out.join("satchel-manifest.json"))?;
        ensure!(text.contains(&format!("\"selection\":{{\"by\":[\"{by}\"],\"stripped\":false}}")), "{text}");
    }
    Ok(())
}

fn update_time(document: &Value) -> Option<String> {
    let times = &document["temporal"];
    times["updated_at"].as_str().or(times["created_at"].as_str()).map(str::to_owned)
}

fn parse_micros(text: &str) -> Result<i64> {
    Ok(satchel_pam::time::Timestamp::parse(text).ok().context("a time")?.micros())
}

#[test]
fn a_selection_is_never_a_base_for_its_exporter() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = core_with_exports(folder.path())?;
    let query = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let part = core.export_with(&selection_request(&folder.path().join("part"), query.clone()))?;
    let named = core.export_changes(Some(&part.export_id), &folder.path().join("named"));
    let error = format!("{:#}", named.err().context("a selection is no base")?);
    ensure!(error.contains("is a selection"), "{error}");
    let latest = core.export_changes(None, &folder.path().join("latest"))?;
    assert_eq!((latest.export_type.as_str(), latest.selection), ("full", None), "{:?}", latest.reason);
    for request in [
        ExportRequest {
            extent: Extent::Incremental { base: None },
            ..selection_request(&folder.path().join("delta"), query.clone())
        },
        ExportRequest { format: ExportFormat::Memu, ..selection_request(&folder.path().join("memu"), query) },
    ] {
        ensure!(core.export_with(&request).is_err(), "{request:?}");
        ensure!(!request.output.exists());
    }
    Ok(())
}

#[test]
fn a_selection_is_never_a_base_where_it_was_applied() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = core_with_exports(folder.path())?;
    let part = folder.path().join("part");
    let query = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let made = here.export_with(&selection_request(&part, query))?;
    let full = here.export(&folder.path().join("full"))?;
    commit(&here, vec![satchel_store::Change::Memory(Box::new(memory("new", "Learns to sail")))])?;
    let delta = folder.path().join("delta");
    here.export_changes(Some(&full.export_id), &delta)?;
    // Somebody forges changes that claim to build on the selection.
    let path = delta.join("memory-store.json");
    let text = fs::read_to_string(&path)?.replace(&full.export_id, &made.export_id);
    fs::write(&path, text)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    let applied = there.apply(&part)?;
    ensure!(applied.status == ImportStatus::Completed, "{applied:?}");
    ensure!(
        applied.warnings.iter().any(|warning| warning.message.contains("a selection by platform")),
        "{applied:?}"
    );
    let refused = there.apply(&delta)?;
    ensure!(refused.status == ImportStatus::Failed, "{refused:?}");
    let listed = there.exports.get(&made.export_id)?.context("the export is in the ledger")?;
    ensure!(listed.selection.is_some() && listed.applied, "{listed:?}");
    let report = verify::path(
        &delta,
        &verify::VerifyOptions { base: Some(part.clone()), ..verify::VerifyOptions::default() },
    )?;
    ensure!(
        report.issues.iter().any(|issue| issue.message.contains("nothing builds on it")),
        "{:?}",
        report.issues
    );
    // The store file still says that it is a selection if its manifest is missing.
    let lone = folder.path().join("lone.json");
    fs::copy(part.join("memory-store.json"), &lone)?;
    ensure!(verify::path(&lone, &verify::VerifyOptions::default())?.selection.is_some());
    Ok(())
}

#[test]
fn applying_a_stripped_export_to_its_origin_removes_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let first = core_with_exports(folder.path())?;
    let full = folder.path().join("full");
    first.export(&full)?;
    // The only evidence of memories that came with a document is the document itself.
    let there = TestCore::open(&folder.path().join("there"))?;
    there.apply(&full)?;
    let stripped = folder.path().join("stripped");
    let selection = Selection { strip: true, ..Selection::default() };
    first.export_with(&ExportRequest { selection, ..full_export(stripped.clone()) })?;
    for core in [&first, &there] {
        let before = core.state()?;
        let applied = core.apply(&stripped)?;
        ensure!(applied.status == ImportStatus::Completed, "{applied:?}");
        let after = core.state()?;
        for (one, other) in before.memories.iter().zip(&after.memories) {
            ensure!(one == other, "{one} became {other}");
        }
        for (name, one) in &before.conversations {
            let other = after.conversations.get(name).context("the conversation is still there")?;
            for (key, value) in one.as_object().context("an object")? {
                ensure!(other[key] == *value, "{name} {key}: {value} became {}", other[key]);
            }
        }
        ensure!(before == after);
    }
    Ok(())
}
