//! `--strip-identifiers`: the identities of people elsewhere are not exported.

use std::{collections::BTreeSet, fs};

use anyhow::{Result, ensure};
use satchel_bundle::verify;
use satchel_core::export::{ExportRequest, Selection};
use satchel_tests::{
    samples::{copy, samples},
    test_core::{TestCore, full_export},
};
use serde_json::{Value, json};

use super::{files, files_containing};

/// PAM keys whose values identify somebody.
const IDENTIFYING_KEYS: [&str; 3] = ["platform_user_id", "account_id", "source_file"];
/// Minimum length of a value to search for; shorter ones occur everywhere.
const MIN_SEARCH_BYTES: usize = 6;

pub(crate) fn collect_identifiers(value: &Value, identifying: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let names = key == "name" && map.get("role").is_some_and(|role| role == "user");
                let person = key == "provider_id" && map.contains_key("role");
                if let Some(text) =
                    value.as_str().filter(|_| names || person || IDENTIFYING_KEYS.contains(&key.as_str()))
                {
                    identifying.insert(text.to_owned());
                }
                collect_identifiers(value, identifying);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_identifiers(item, identifying)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn stripped_request(output: std::path::PathBuf) -> ExportRequest {
    ExportRequest { selection: Selection { strip: true, ..Selection::default() }, ..full_export(output) }
}

/// For all samples of the importers: the values of these fields in the full export occur nowhere in the stripped one.
#[test]
fn no_account_name_or_address_of_any_provider_is_exported() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    for sample in samples()? {
        let place = folder.path().join(format!("{}-{}", sample.provider, sample.behaviour));
        copy(&sample.input, &place)?;
        core.import(&place)?;
    }
    core.export(&folder.path().join("all"))?;
    let mut identifying = BTreeSet::new();
    for path in files(&folder.path().join("all"))? {
        if let Ok(value) = serde_json::from_slice::<Value>(&fs::read(&path)?) {
            collect_identifiers(&value, &mut identifying);
        }
    }
    identifying.retain(|text| text.len() >= MIN_SEARCH_BYTES);
    ensure!(identifying.len() > 20, "too few identifiers were found: {identifying:?}");
    let out = folder.path().join("stripped");
    let made = core.export_with(&stripped_request(out.clone()))?;
    ensure!(made.selection.is_some_and(|selection| selection.stripped && selection.by.is_empty()));
    let mut left = Vec::new();
    for text in &identifying {
        for path in files_containing(&out, text)? {
            // People mention files and themselves in what they write; that text stays unchanged.
            let value: Value = serde_json::from_slice(&fs::read(&path)?)?;
            let mut still = BTreeSet::new();
            collect_identifiers(&value, &mut still);
            if still.contains(text) {
                left.push((text.clone(), path));
            }
        }
    }
    ensure!(left.is_empty(), "{left:?}");
    let report = verify::path(&out, &verify::VerifyOptions::default())?;
    ensure!(
        report.valid && report.selection.is_some_and(|selection| selection.stripped),
        "{:?}",
        report.issues
    );
    Ok(())
}

#[test]
fn planted_identifiers_are_in_no_file_and_the_owner_id_is_stable() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let bundle = folder.path().join("foreign");
    fs::create_dir_all(bundle.join("conversations"))?;
    let memory = json!({
        "id": "m", "type": "fact", "content": "Keeps bees",
        "content_hash": satchel_pam::hash::ContentHash::of("Keeps bees").to_string(),
        "temporal": {"created_at": "2025-01-01T00:00:00Z"},
        "provenance": {"platform": "chatgpt", "platform_user_id": "canary-user-1"},
        "access": {"visibility": "shared", "exportable": true,
            "shared_with": [{"entity": "canary-2@example.org", "permissions": ["read"]}]},
        "metadata": {"vendor": {"login": "canary-login-3"}},
    });
    let store = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "export_id": "e47ac10b-58cc-4372-a567-0e02b2c3d479",
        "export_date": "2025-02-01T00:00:00Z", "owner": {"id": "canary-owner-4@example.org"},
        "memories": [memory], "export_type": "full",
        "conversations_index": [{"id": "c", "platform": "chatgpt", "temporal": {"created_at": "2025-01-01T00:00:00Z"},
            "storage": {"type": "file", "ref": "conversations/c.json", "format": "json"}}],
    });
    fs::write(bundle.join("memory-store.json"), store.to_string())?;
    let conversation = json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": "c",
        "provider": {"name": "chatgpt", "account_id": "canary-account-5"},
        "temporal": {"created_at": "2025-01-01T00:00:00Z"},
        "participants": [{"role": "user", "name": "Canary Six", "provider_id": "canary-person-7"}],
        "raw_metadata": {"email": "canary-8@example.org", "workspace": "canary-space-9"},
        "import_metadata": {"source_file": "canary-10@example.org.zip"},
        "messages": [{"id": "n", "role": "user", "created_at": "2025-01-01T00:00:00Z",
            "content": {"type": "text", "text": "What was said stays"},
            "raw_metadata": {"author": {"login": "canary-11"}}}],
    });
    fs::write(bundle.join("conversations/c.json"), conversation.to_string())?;
    core.apply(&bundle)?;
    let mut owners = BTreeSet::new();
    for name in ["one", "two"] {
        let out = folder.path().join(name);
        core.export_with(&stripped_request(out.clone()))?;
        for canary in ["canary", "Canary Six", "example.org"] {
            let found = files_containing(&out, canary)?;
            ensure!(found.is_empty(), "{canary:?} is in {found:?}");
        }
        ensure!(
            !files_containing(&out, "Keeps bees")?.is_empty()
                && !files_containing(&out, "What was said stays")?.is_empty()
        );
        let store: Value = serde_json::from_slice(&fs::read(out.join("memory-store.json"))?)?;
        owners.insert(store["owner"]["id"].to_string());
        let report =
            verify::path(&out, &verify::VerifyOptions { strict: true, ..verify::VerifyOptions::default() })?;
        ensure!(report.valid, "{:?}", report.issues);
    }
    assert_eq!(owners.len(), 1, "{owners:?}");
    Ok(())
}
