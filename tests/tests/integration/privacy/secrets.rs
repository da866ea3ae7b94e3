//! Keys and tokens that a tool of a coding agent printed.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use satchel_core::ingest::{SecretHandling, receipt::ImportRecord};
use satchel_tests::test_core::{TestCore, only_import};
use serde_json::{Value, json};

use super::files_containing;

/// In the format of GitHub; put together here so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "aB3dE6".repeat(6))
}

/// Returns a line of a session of Claude Code.
fn line(number: u32, role: &str, content: &Value) -> Value {
    let id = |number: u32| format!("00000000-0000-4000-8000-{number:012}");
    json!({
        "type": role, "uuid": id(number), "parentUuid": (number > 1).then(|| id(number - 1)), "isSidechain": false,
        "sessionId": "5e551000-0000-4000-8000-000000000001", "timestamp": format!("2026-05-02T09:00:0{number}.000Z"),
        "cwd": "/home/mara/bakery", "version": "2.1.0", "message": {"role": role, "content": content},
    })
}

/// Writes a session in which a command printed a token.
fn session(folder: &Path) -> Result<()> {
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "env"}}]);
    let printed = format!("HOME=/home/mara\nGITHUB_TOKEN={}\n", token());
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": printed}]);
    let mut answer = line(3, "user", &result);
    answer["toolUseResult"] = json!({"stdout": printed, "stderr": "", "interrupted": false});
    let lines = [line(1, "user", &json!("What is set?")), line(2, "assistant", &call), answer];
    let text = lines.map(|line| line.to_string()).join("\n") + "\n";
    let project = folder.join("projects/-home-mara-bakery");
    fs::create_dir_all(&project)?;
    Ok(fs::write(project.join("5e551000-0000-4000-8000-000000000001.jsonl"), text)?)
}

/// Imports the session, and returns the receipt and how many exported files have the token.
fn import(handling: SecretHandling) -> Result<(ImportRecord, usize)> {
    let dir = tempfile::tempdir()?;
    session(&dir.path().join("claude"))?;
    let core = TestCore::open(&dir.path().join("data"))?;
    core.imports.set_secret_handling(handling);
    let receipt = only_import(core.import(&dir.path().join("claude"))?)?;
    let bundle = dir.path().join("bundle");
    core.export(&bundle)?;
    let found = files_containing(&bundle, &token())?.len();
    core.close()?;
    Ok((receipt, found))
}

#[test]
fn the_receipt_says_where_a_token_is() -> Result<()> {
    let (receipt, found) = import(SecretHandling::default())?;
    ensure!(found == 1, "it is kept, in one conversation: {found}");
    let [warning] = receipt.warnings.as_slice() else { anyhow::bail!("{:?}", receipt.warnings) };
    ensure!(warning.message.contains("github_token") && warning.message.contains("kept"), "{warning:?}");
    ensure!(warning.locator.contains("5e551000-0000-4000-8000-000000000001.jsonl#"), "{warning:?}");
    Ok(())
}

#[test]
fn a_token_is_left_out_if_the_configuration_says_so() -> Result<()> {
    let (receipt, found) = import(SecretHandling::Remove)?;
    ensure!(found == 0, "{receipt:?}");
    let [warning] = receipt.warnings.as_slice() else { anyhow::bail!("{:?}", receipt.warnings) };
    ensure!(warning.message.contains("left out"), "{warning:?}");
    ensure!(receipt.messages.found == 3 && receipt.messages.new == 3, "{receipt:?}");
    Ok(())
}
