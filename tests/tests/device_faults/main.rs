//! Devices and strangers that misbehave: the calls of others go on meanwhile, and the daemon keeps nothing of the load.

mod connections;
mod floods;
mod frames;
mod others;
mod process;
mod streams;

use std::{fs, path::Path};

use anyhow::Result;
use serde_json::json;

/// The only conversation.
const CONVERSATION: &str = "conversation-id";
/// Its messages, of this length each: together larger than a page.
const MESSAGES: usize = 40;
const MESSAGE_BYTES: usize = 100_000;

/// Writes a bundle with one conversation that has large messages.
fn write_bundle(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("conversations"))?;
    let document = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
        "memories": [], "relations": [], "conversations_index": [],
    });
    fs::write(folder.join("memory-store.json"), serde_json::to_vec(&document)?)?;
    let messages: Vec<_> = (0..MESSAGES)
        .map(|number| {
            json!({"id": format!("message-{number}"), "role": "user", "created_at": "2026-01-02T03:04:05Z",
                "content": {"type": "text", "text": format!("{number} ").repeat(MESSAGE_BYTES / 3)}})
        })
        .collect();
    let conversation = json!({
        "schema": "portable-ai-memory-conversation", "schema_version": "1.0", "id": CONVERSATION,
        "provider": {"name": "elsewhere"}, "title": "Long", "temporal": {"created_at": "2026-01-02T03:04:05Z"},
        "tags": [], "messages": messages,
    });
    let path = folder.join("conversations").join(format!("{CONVERSATION}.json"));
    fs::write(path, serde_json::to_vec(&conversation)?)?;
    Ok(())
}

/// Starts a daemon with the conversation, and pairs a device that misbehaves and one that does not.
async fn daemon_with_devices(
    misbehaving: satchel_proto::v1::DeviceRole,
) -> Result<(process::DaemonProcess, satchel_tests::test_device::TestDevice, others::OtherCalls)> {
    let daemon = process::DaemonProcess::start().await?;
    let bundle = daemon.folder.path().join("bundle");
    write_bundle(&bundle)?;
    daemon.import(&bundle).await?;
    let device = daemon.pair("misbehaving", misbehaving).await?;
    let other = daemon.pair("other", satchel_proto::v1::DeviceRole::Reader).await?;
    let calls = others::OtherCalls::start(other, &daemon.channel);
    Ok((daemon, device, calls))
}
