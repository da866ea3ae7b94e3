//! Every fixture of the importers gives the same result in the sandbox as natively.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_host::{Emitted, Host, HostOptions, Plugin, PluginError, PluginLimits, SinkVerdict};
use satchel_importer::testkit::{first_difference, fixtures};
use satchel_pam::record::Line;
use satchel_source::{CancelToken, Limits as IntakeLimits, Source};
use serde_json::{Value, json};

fn record_lines(emitted: Emitted) -> Vec<Line> {
    match emitted {
        Emitted::Conversation(conversation) => vec![Line::Conversation(conversation)],
        Emitted::Evidence(evidence) => evidence.into_iter().map(Line::Evidence).collect(),
        Emitted::Relations(relations) => relations.into_iter().map(Line::Relation).collect(),
        Emitted::Embeddings(embeddings) => embeddings.into_iter().map(Line::Embedding).collect(),
        Emitted::Account(account) => vec![Line::Account(account)],
        Emitted::Skip(skip) => vec![Line::Skip(skip)],
        Emitted::Warning(warning) => vec![Line::Warning(warning)],
        Emitted::Progress { .. }
        | Emitted::PieceStarted
        | Emitted::PieceUnchanged(_)
        | Emitted::PieceNoted { .. } => Vec::new(),
    }
}

fn run_plugin(plugin: &Plugin, input: &Path) -> Result<Vec<Value>> {
    let bundle = Source::at(input)?.open(&IntakeLimits::default())?;
    let mut exports = Vec::new();
    for detection in plugin.detect(Arc::new(bundle.clone()))? {
        let mut all = Vec::new();
        let files = Arc::new(bundle.subset(&detection.files));
        let ended = plugin.run(
            files,
            &detection.format,
            &PluginLimits::default(),
            &CancelToken::new(),
            &mut |emitted| {
                all.extend(record_lines(emitted));
                SinkVerdict::Proceed
            },
        );
        let broke = match ended {
            Ok(_) => false,
            Err(PluginError::Reported { .. }) => true,
            Err(error) => bail!("{input:?}: {error}"),
        };
        let lines: Vec<Value> = all.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        exports.push(json!({
            "format": detection.format, "confidence": detection.confidence, "files": detection.files,
            "account": detection.account, "lines": sorted(lines), "error": broke,
        }));
    }
    Ok(exports)
}

/// Returns the lines in a fixed order: the host emits a conversation once it is complete, so messages about it may come
/// first.
fn sorted(mut lines: Vec<Value>) -> Vec<Value> {
    lines.sort_by_key(Value::to_string);
    lines
}

fn expected(fixture: &Path) -> Result<Vec<Value>> {
    let exports: Vec<Value> = serde_json::from_slice(&fs::read(fixture.join("expected.json"))?)?;
    let mut expected = Vec::new();
    for mut export in exports {
        let broke = export.get("error").is_some();
        let object = export.as_object_mut().context("an export is an object")?;
        let lines = object.get("lines").and_then(Value::as_array).cloned().unwrap_or_default();
        object.insert("lines".into(), sorted(lines).into());
        object.insert("error".into(), broke.into());
        expected.push(export);
    }
    Ok(expected)
}

fn check(host: &Host, built_in: &satchel_plugins::BuiltIn) -> Result<()> {
    let plugin = host.load(built_in.wasm)?;
    let folder: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins").join(built_in.name).join("fixtures");
    let mut seen = 0;
    for fixture in fixtures(&folder)? {
        let (expected, produced) =
            (Value::Array(expected(&fixture)?), Value::Array(run_plugin(&plugin, &fixture.join("input"))?));
        if let Some(difference) = first_difference(&expected, &produced) {
            bail!("{fixture:?} differs in the sandbox: {difference}");
        }
        seen += 1;
    }
    ensure!(seen > 5, "only {seen} fixtures of {} were found", built_in.name);
    Ok(())
}

#[test]
fn every_importer_gives_the_same_in_the_sandbox_as_natively() -> Result<()> {
    let host = Host::new(HostOptions::default())?;
    satchel_plugins::BUILT_IN.iter().try_for_each(|built_in| check(&host, built_in))
}
