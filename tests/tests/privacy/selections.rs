//! Filters: an export contains exactly the selected records and never passes for a full one.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::{
    export::{ExportRequest, Extent, Format, Selection},
    ingest::receipt::ImportStatus,
};
use satchel_pam::memory::MemoryType;
use satchel_store::{MemoryQuery, TimeRange};
use satchel_tests::archive::{Archive, State, demo, whole};
use serde_json::Value;

use super::canaries::{commit, memory};

fn archive(folder: &Path) -> Result<Archive> {
    let archive = Archive::open(&folder.join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    archive.import(&demo().join("claude-export"))?;
    Ok(archive)
}

fn chosen(output: &Path, memories: MemoryQuery) -> ExportRequest {
    ExportRequest { selection: Selection { memories, strip: false }, ..whole(output.to_owned()) }
}

/// Returns the ids of the memories and of the conversations that pass, judged by the documents themselves.
fn expected(
    all: &State,
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
fn a_selection_holds_what_was_chosen_and_is_a_valid_bundle() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    archive.export(&folder.path().join("all"))?;
    let all = State::of(&folder.path().join("all"))?;
    let instruction = MemoryQuery { types: vec![MemoryType::Instruction], ..MemoryQuery::default() };
    let claude = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let middle = all.memories.iter().filter_map(changed).max().context("a time")?;
    let late = TimeRange { from: Some(micros(&middle)?), until: None };
    let late = MemoryQuery { updated: late, ..MemoryQuery::default() };
    let of_claude = |one: &Value| one["provenance"]["platform"] == "claude";
    let cases: [(&str, MemoryQuery, [BTreeSet<String>; 2]); 3] = [
        ("type", instruction, expected(&all, |one| one["type"] == "instruction", |_| false)),
        ("platform", claude, expected(&all, of_claude, |one| one["provider"]["name"] == "claude")),
        (
            "time",
            late,
            expected(
                &all,
                |one| changed(one) == Some(middle.clone()),
                |one| changed(one) >= Some(middle.clone()),
            ),
        ),
    ];
    for (by, query, [memories, conversations]) in cases {
        ensure!(!memories.is_empty() && memories.len() < all.memories.len(), "{by}: {memories:?}");
        let out = folder.path().join(by);
        let made = archive.export_by(&chosen(&out, query))?;
        let state = State::of(&out)?;
        assert_eq!(expected(&state, |_| true, |_| true), [memories, conversations], "{by}");
        assert_eq!(made.selection.map(|selection| selection.by), Some(vec![by.to_owned()]));
        let report = verify::path(&out, &verify::Options::default())?;
        ensure!(report.valid && report.selection.is_some(), "{by}: {:?}", report.issues);
        let text = fs::read_to_string(out.join("satchel-manifest.json"))?;
        ensure!(text.contains(&format!("\"selection\":{{\"by\":[\"{by}\"],\"stripped\":false}}")), "{text}");
    }
    Ok(())
}

fn changed(document: &Value) -> Option<String> {
    let times = &document["temporal"];
    times["updated_at"].as_str().or(times["created_at"].as_str()).map(str::to_owned)
}

fn micros(text: &str) -> Result<i64> {
    Ok(satchel_pam::time::Timestamp::parse(text).ok().context("a time")?.micros())
}

#[test]
fn nothing_is_built_on_a_selection_here() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = archive(folder.path())?;
    let query = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let part = archive.export_by(&chosen(&folder.path().join("part"), query.clone()))?;
    let named = archive.export_changes(Some(&part.export_id), &folder.path().join("named"));
    let told = format!("{:#}", named.err().context("a selection is no base")?);
    ensure!(told.contains("is a selection"), "{told}");
    let latest = archive.export_changes(None, &folder.path().join("latest"))?;
    assert_eq!((latest.export_type.as_str(), latest.selection), ("full", None), "{:?}", latest.reason);
    for request in [
        ExportRequest {
            extent: Extent::Incremental { base: None },
            ..chosen(&folder.path().join("delta"), query.clone())
        },
        ExportRequest { format: Format::Memu, ..chosen(&folder.path().join("memu"), query) },
    ] {
        ensure!(archive.export_by(&request).is_err(), "{request:?}");
        ensure!(!request.output.exists());
    }
    Ok(())
}

#[test]
fn nothing_is_built_on_a_selection_elsewhere() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = archive(folder.path())?;
    let part = folder.path().join("part");
    let query = MemoryQuery { platforms: vec!["claude".into()], ..MemoryQuery::default() };
    let made = here.export_by(&chosen(&part, query))?;
    let full = here.export(&folder.path().join("full"))?;
    commit(&here, vec![satchel_store::Change::Memory(Box::new(memory("new", "Learns to sail")))])?;
    let delta = folder.path().join("delta");
    here.export_changes(Some(&full.export_id), &delta)?;
    // Somebody forges changes that claim to build on the selection.
    let path = delta.join("memory-store.json");
    let text = fs::read_to_string(&path)?.replace(&full.export_id, &made.export_id);
    fs::write(&path, text)?;
    let there = Archive::open(&folder.path().join("there"))?;
    let applied = there.apply(&part)?;
    ensure!(applied.status == ImportStatus::Completed, "{applied:?}");
    ensure!(
        applied.warnings.iter().any(|warning| warning.message.contains("a selection by platform")),
        "{applied:?}"
    );
    let refused = there.apply(&delta)?;
    ensure!(refused.status == ImportStatus::Failed, "{refused:?}");
    let listed = there.exports.get(&made.export_id)?.context("it is in the ledger")?;
    ensure!(listed.selection.is_some() && listed.applied, "{listed:?}");
    let report =
        verify::path(&delta, &verify::Options { base: Some(part.clone()), ..verify::Options::default() })?;
    ensure!(
        report.issues.iter().any(|issue| issue.message.contains("nothing builds on it")),
        "{:?}",
        report.issues
    );
    // The store file still says that it is a selection if its manifest is missing.
    let lone = folder.path().join("lone.json");
    fs::copy(part.join("memory-store.json"), &lone)?;
    ensure!(verify::path(&lone, &verify::Options::default())?.selection.is_some());
    Ok(())
}

#[test]
fn a_stripped_export_takes_nothing_away_where_it_comes_home() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let first = archive(folder.path())?;
    let full = folder.path().join("full");
    first.export(&full)?;
    // The only evidence of memories that came with a document is the document itself.
    let there = Archive::open(&folder.path().join("there"))?;
    there.apply(&full)?;
    let stripped = folder.path().join("stripped");
    let selection = Selection { strip: true, ..Selection::default() };
    first.export_by(&ExportRequest { selection, ..whole(stripped.clone()) })?;
    for archive in [&first, &there] {
        let before = archive.state()?;
        let applied = archive.apply(&stripped)?;
        ensure!(applied.status == ImportStatus::Completed, "{applied:?}");
        let after = archive.state()?;
        for (one, other) in before.memories.iter().zip(&after.memories) {
            ensure!(one == other, "{one} became {other}");
        }
        for (name, one) in &before.conversations {
            let other = after.conversations.get(name).context("it is still there")?;
            for (key, value) in one.as_object().context("an object")? {
                ensure!(other[key] == *value, "{name} {key}: {value} became {}", other[key]);
            }
        }
        ensure!(before == after);
    }
    Ok(())
}
