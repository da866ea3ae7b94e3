//! MemU data survives the round trip: `export --format memu` writes what was imported, field by field.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{export::ExportFormat, ingest::receipt::ImportStatus};
use satchel_proto::v1::{self, export_service_client::ExportServiceClient};
use satchel_tests::{
    operation,
    test_core::{TestCore, demo_folder, only_import},
    test_daemon::TestDaemon,
};
use serde_json::{Value, json};
use tonic_types::StatusExt as _;

/// Dimensions of the vectors in MemU.
const DIMENSIONS: u32 = 1536;

/// Returns the data of two agents about one person, in the form of the tables and the API.
fn memu_tables() -> BTreeMap<&'static str, Value> {
    let vector = |seed: u32| -> Value {
        (0..DIMENSIONS).map(|at| json!(f64::from((at * 31 + seed) % 997) / 1021.0 - 0.5)).collect()
    };
    let memory = |id: &str, agent: &str, version: u64| {
        json!({
            "memory_id": id, "agent_id": agent, "user_id": "user_tove", "version": version,
            "created_at": "2025-07-01T10:00:00Z", "updated_at": "2025-07-03T09:30:00.250000Z",
            "profile_content": ["Tove Aas keeps bees", "Speaks Faroese"],
            "event_content": ["Moved the hives to the heath", "Sold 40 jars — all of them 🍯"],
            "mind_content": "Careful with numbers",
            "mind_metadata": {"confidence_score": 0.7, "nested": {"deep": [1, 2.5, null]}},
        })
    };
    let message = |id: u64, role: &str, text: &str| {
        json!({"message_id": format!("m-{id}"), "role": role, "content": text, "message_index": id,
            "created_at": format!("2025-07-02T08:00:{id:02}Z")})
    };
    let row = |id: &str, kind: &str, data: Value, text: &str, vector: Value| {
        json!({"content_id": id, "memory_id": "mem-rows", "content_type": kind, "content_data": data,
            "content_text": text, "content_vector": vector})
    };
    BTreeMap::from([
        (
            "memories.json",
            json!([
                memory("mem-1", "agent_heath", 3),
                memory("mem-2", "agent_market", 8),
                {"memory_id": "mem-rows", "agent_id": "agent_rows", "user_id": "user_tove",
                    "created_at": "2025-07-01T10:00:00Z", "updated_at": "2025-07-04T10:00:00Z",
                    "profile_content": ["Grows lavender", "Owns a boat"], "event_content": ["Caulked it"],
                    "mind_content": ["Patient"]},
            ]),
        ),
        (
            "memory_contents.json",
            json!([
                row(
                    "c-1",
                    "profile",
                    json!(["Grows lavender", "Owns a boat"]),
                    "Grows lavender\nOwns a boat",
                    vector(1)
                ),
                row("c-2", "event", json!(["Caulked it"]), "Caulked it", vector(2)),
                row("c-3", "mind", json!(["Patient"]), "Patient", Value::Null),
            ]),
        ),
        (
            "conversations.json",
            json!([
                {"conversation_id": "conv-1", "agent_id": "agent_heath", "user_id": "user_tove", "session_id": "s-1",
                    "created_at": "2025-07-02T08:00:00Z", "turn_count": 2, "memory_id": "mem-1",
                    "summary": "Conversation with 2 turns: When do bees swarm?...",
                    "conversation_vector": vector(3),
                    "messages": [message(0, "user", "When do bees swarm?"), message(1, "assistant", "In May.\n\nMostly.")],
                    "pipeline_result": {"modification_result": "asked about swarms",
                        "update_result": {"profile_updated": true, "metadata": {"llm_usage": {"total_tokens": 1500}}},
                        "mind_result": {"insights": "Plans ahead", "confidence_score": 0.8}}},
                {"conversation_id": "conv-2", "agent_id": "agent_market", "user_id": "user_tove", "session_id": "s-2",
                    "created_at": "2025-07-04T10:00:00Z", "turn_count": 1, "memory_id": "mem-2",
                    "messages": [message(0, "system", "Be brief")]},
            ]),
        ),
        (
            "answers.json",
            json!([{"success": true, "message": "Conversation saved successfully", "conversation_id": "conv-2",
                "session_id": "s-2", "created_at": "2025-07-04T10:00:00Z", "message_count": 1}]),
        ),
    ])
}

fn write_files(folder: &Path, files: &BTreeMap<&str, Value>) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    for (name, value) in files {
        fs::write(folder.join(name), serde_json::to_vec(value)?)?;
    }
    Ok(folder.to_owned())
}

/// Returns the objects of a file by their own id.
fn by_id(value: &Value) -> Result<BTreeMap<String, Value>> {
    let id = |object: &Value| {
        let keys = ["content_id", "conversation_id", "memory_id"];
        keys.iter().find_map(|key| object[key].as_str()).map(ToOwned::to_owned)
    };
    let objects = value.as_array().context("an array")?.iter();
    objects.map(|object| Ok((id(object).context("an id")?, object.clone()))).collect()
}

fn read(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path).with_context(|| format!("{path:?}"))?)?)
}

#[test]
fn every_field_of_every_file_survives_the_round_trip() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let given = memu_tables();
    let import = only_import(core.import(&write_files(&dir.path().join("files"), &given)?)?)?;
    assert_eq!(import.status, ImportStatus::Completed, "{import:?}");
    let view = dir.path().join("view");
    let made = core.export_as(ExportFormat::Memu, &view)?;
    assert_eq!((made.conversations, made.format), (2, ExportFormat::Memu));
    let names: Vec<_> = fs::read_dir(&view)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    assert_eq!(names.len(), given.len(), "{names:?}");
    for (name, value) in &given {
        let (given, written) = (by_id(value)?, by_id(&read(&view.join(name))?)?);
        assert_eq!(written.keys().collect::<Vec<_>>(), given.keys().collect::<Vec<_>>(), "{name}");
        for (id, object) in &given {
            for (field, value) in object.as_object().context("an object")? {
                // A null column and an absent one are equal.
                assert_eq!(written[id].get(field).unwrap_or(&Value::Null), value, "{name}: {field} of {id}");
            }
            let more: Vec<_> = written[id].as_object().context("an object")?.keys().collect();
            ensure!(
                more.iter().all(|key| object.get(key).is_some()),
                "{name}: {id} has more fields: {more:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn importing_the_memu_export_gives_the_same_data() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let one = TestCore::open(&dir.path().join("one"))?;
    one.import(&write_files(&dir.path().join("files"), &memu_tables())?)?;
    let view = dir.path().join("view.zip");
    one.export_as(ExportFormat::Memu, &view)?;
    let two = TestCore::open(&dir.path().join("two"))?;
    let import = only_import(two.import(&view)?)?;
    assert_eq!(
        (import.status, import.provider.as_deref()),
        (ImportStatus::Completed, Some("memu")),
        "{import:?}"
    );
    let (left, right) = (one.state()?, two.state()?);
    assert_eq!(left.memories, right.memories);
    assert_eq!(left.conversations, right.conversations);
    let again = dir.path().join("again.zip");
    two.export_as(ExportFormat::Memu, &again)?;
    assert_eq!(fs::read(view)?, fs::read(again)?, "the second export differs from the first");
    Ok(())
}

#[test]
fn records_of_other_providers_are_written_in_memus_format_separately() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    core.import(&demo_folder().join("claude-export"))?;
    core.import(&write_files(&dir.path().join("files"), &memu_tables())?)?;
    let view = dir.path().join("view");
    let made = core.export_as(ExportFormat::Memu, &view)?;
    let state = core.state()?;
    let memories = read(&view.join("memories.json"))?;
    let (others, mine): (Vec<_>, Vec<_>) =
        memories.as_array().context("a list")?.iter().partition(|object| object["agent_id"] == "satchel");
    assert_eq!((others.len(), mine.len()), (1, 3));
    let texts = |column: &str| -> Vec<String> {
        let list = others[0][column].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(|text| text.as_str().map(ToOwned::to_owned)).collect()
    };
    let mut written: Vec<String> = ["profile_content", "event_content", "mind_content"]
        .iter()
        .flat_map(|column| texts(column))
        .collect();
    let active = state.memories.iter().filter(|memory| memory["status"] == "active");
    let mut held: Vec<String> = active
        .filter(|memory| memory["provenance"]["platform"] == "claude")
        .filter_map(|memory| memory["content"].as_str().map(ToOwned::to_owned))
        .collect();
    written.sort();
    held.sort();
    assert_eq!(written, held);
    assert_eq!(made.conversations, state.conversations.len() as u64);
    Ok(())
}

#[test]
fn an_empty_store_exports_empty_lists() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let view = dir.path().join("view");
    let made = core.export_as(ExportFormat::Memu, &view)?;
    assert_eq!((made.memories, made.conversations), (0, 0));
    assert_eq!(
        (read(&view.join("memories.json"))?, read(&view.join("conversations.json"))?),
        (json!([]), json!([]))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memu_format_is_served_over_grpc() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&write_files(&daemon.folder.path().join("files"), &memu_tables())?).await?;
    let mut client = ExportServiceClient::new(daemon.channel.clone());
    let output = |name: &str| daemon.folder.path().join(name).display().to_string();
    let request = v1::CreateExportRequest {
        output: output("view"),
        format: v1::ExportFormat::Memu.into(),
        ..v1::CreateExportRequest::default()
    };
    let made = operation::export(&daemon.channel, request.clone()).await?;
    assert_eq!(
        (made.format(), made.checksum.as_str(), made.signer.as_str()),
        (v1::ExportFormat::Memu, "", "")
    );
    let refusals = [
        v1::CreateExportRequest { output: output("two"), attachments: true, ..request.clone() },
        v1::CreateExportRequest { output: output("three"), format: 77, ..request },
    ];
    for refused in refusals {
        let status =
            operation::export(&daemon.channel, refused).await.err().context("the call is refused")?;
        let reason = status.get_error_details().error_info().map(|info| info.reason.clone());
        assert_eq!(reason.as_deref(), Some("FIELD_INVALID"));
    }
    let bundle = Some(v1::verify_export_request::Bundle::Id(made.id));
    let check = v1::VerifyExportRequest { bundle, ..v1::VerifyExportRequest::default() };
    let status =
        operation::verify(&daemon.channel, check).await.err().context("the verification is refused")?;
    let reason = status.get_error_details().error_info().map(|info| info.reason.clone());
    assert_eq!(reason.as_deref(), Some("BUNDLE_UNREADABLE"));
    let plain = v1::CreateExportRequest { output: output("bundle"), ..v1::CreateExportRequest::default() };
    operation::export(&daemon.channel, plain).await?;
    let listed = client.list_exports(v1::ListExportsRequest::default()).await?.into_inner().exports;
    let formats: Vec<v1::ExportFormat> = listed.iter().map(v1::Export::format).collect();
    assert_eq!(formats, [v1::ExportFormat::Pam, v1::ExportFormat::Memu]);
    daemon.stop().await?;
    Ok(())
}
