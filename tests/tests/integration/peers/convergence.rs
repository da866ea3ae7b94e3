//! Imports, edits and undos reach every store, also through another one.

use anyhow::{Result, ensure};
use satchel_proto::v1::{self, import_service_client::ImportServiceClient};
use satchel_tests::{operation, test_daemon::chatgpt_export};

use super::peer_daemon::{
    add, content, eventually, in_step, listed, memories, pair, pause, peers, rewrite, start, start_new,
};

#[tokio::test(flavor = "multi_thread")]
async fn imports_and_edits_reach_the_other_store_both_ways() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    // Before the stores know of each other.
    let folder = tempfile::tempdir()?;
    let export = chatgpt_export(folder.path(), 12)?;
    let imported = desk.import(&export).await?;
    let first = add(&desk, "Prefers metric units").await?;
    let second = add(&laptop, "Keeps bees").await?;
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    in_step(&[&desk, &laptop]).await?;
    ensure!(content(&laptop, &first).await?.as_deref() == Some("Prefers metric units"));
    ensure!(content(&desk, &second).await?.as_deref() == Some("Keeps bees"));

    // Afterwards, each change comes by itself.
    rewrite(&laptop, &first, "Prefers metric units, and litres").await?;
    rewrite(&desk, &second, "Keeps bees and hens").await?;
    eventually("the edits come", async || {
        let one = content(&desk, &first).await?;
        let other = content(&laptop, &second).await?;
        let come = one.as_deref() == Some("Prefers metric units, and litres")
            && other.as_deref() == Some("Keeps bees and hens");
        Ok(come.then_some(()))
    })
    .await?;
    in_step(&[&desk, &laptop]).await?;

    // What one store has imported, the other one does not import again.
    let again = laptop.import(&export).await?;
    let counts = |operation: &v1::Operation| {
        let Some(v1::operation::Result::Imports(imports)) = &operation.result else { return None };
        imports.imports.first().and_then(|import| import.conversations)
    };
    ensure!(counts(&imported).is_some_and(|counts| counts.new == 12), "{imported:?}");
    ensure!(counts(&again).is_some_and(|counts| counts.new == 0 && counts.updated == 0), "{again:?}");
    // The receipt names the machine that has imported it: both daemons run on this one.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    let Some(v1::operation::Result::Imports(receipts)) = &again.result else { anyhow::bail!("{again:?}") };
    let receipt = &receipts.imports[0];
    ensure!(receipt.machine == host.trim() && receipt.reason.contains(host.trim()), "{receipt:?}");
    ensure!(receipt.status() == v1::ImportStatus::Unchanged, "{receipt:?}");

    // An undo is a change like others.
    let id = ImportServiceClient::new(desk.channel.clone())
        .list_imports(v1::ListImportsRequest::default())
        .await?
        .into_inner()
        .imports
        .into_iter()
        .find(|import| import.conversations.is_some_and(|counts| counts.new == 12))
        .map(|import| import.id)
        .unwrap_or_default();
    let request = v1::UndoImportRequest { id, ..v1::UndoImportRequest::default() };
    let started =
        ImportServiceClient::new(laptop.channel.clone()).undo_import(request).await?.into_inner().operation;
    operation::wait(&laptop.channel, &started.unwrap_or_default().id).await?;
    in_step(&[&desk, &laptop]).await?;
    let known = listed(&laptop).await?;
    ensure!(known.len() == 1 && known[0].name == "desk" && known[0].received_changes > 0, "{known:?}");
    let known = listed(&desk).await?;
    ensure!(known.len() == 1 && known[0].name == "laptop" && known[0].sent_changes > 0, "{known:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_travels_through_a_third_store() -> Result<()> {
    let (desk, server, laptop) = (start_new().await?, start_new().await?, start_new().await?);
    pair((&desk, "desk"), (&server, "server")).await?;
    pair((&laptop, "laptop"), (&server, "server")).await?;
    let id = add(&desk, "Plays the viola").await?;
    eventually("the memory comes", async || content(&laptop, &id).await).await?;
    rewrite(&laptop, &id, "Plays the viola and the oboe").await?;
    eventually("the edit comes back", async || {
        Ok((content(&desk, &id).await?.as_deref() == Some("Plays the viola and the oboe")).then_some(()))
    })
    .await?;
    in_step(&[&desk, &server, &laptop]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_edits_are_a_conflict_until_an_edit_settles_it() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let id = add(&desk, "Has a cat").await?;
    eventually("the memory comes", async || content(&laptop, &id).await).await?;
    pause(&laptop, "desk", true).await?;
    rewrite(&desk, &id, "Has two cats").await?;
    rewrite(&laptop, &id, "Has a cat and a dog").await?;
    ensure!(
        content(&desk, &id).await?.as_deref() == Some("Has two cats"),
        "nothing comes while it is paused"
    );
    pause(&laptop, "desk", false).await?;
    in_step(&[&desk, &laptop]).await?;
    let (one, other) = (content(&desk, &id).await?, content(&laptop, &id).await?);
    ensure!(one == other, "{one:?} {other:?}");
    for daemon in [&desk, &laptop] {
        let request = v1::ListConflictsRequest::default();
        let conflicts = peers(daemon).list_conflicts(request).await?.into_inner().conflicts;
        let [conflict] = conflicts.as_slice() else { anyhow::bail!("{conflicts:?}") };
        ensure!(conflict.memory_id == id && conflict.field == "content", "{conflict:?}");
        let values: std::collections::BTreeSet<&str> =
            conflict.values.iter().map(|value| value.value_json.as_str()).collect();
        ensure!(values == ["\"Has a cat and a dog\"", "\"Has two cats\""].into(), "{values:?}");
        let status = peers(daemon).get_sync_status(v1::GetSyncStatusRequest::default()).await?.into_inner();
        ensure!(status.conflicts == 1 && status.digest.is_empty(), "{status:?}");
    }
    rewrite(&desk, &id, "Has two cats and a dog").await?;
    in_step(&[&desk, &laptop]).await?;
    for daemon in [&desk, &laptop] {
        ensure!(content(daemon, &id).await?.as_deref() == Some("Has two cats and a dog"));
        let request = v1::ListConflictsRequest::default();
        ensure!(peers(daemon).list_conflicts(request).await?.into_inner().conflicts.is_empty());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_away_catches_up() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    in_step(&[&desk, &laptop]).await?;
    let away = laptop.stop().await?;
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(add(&desk, &format!("Note {n}")).await?);
    }
    let folder = tempfile::tempdir()?;
    desk.import(&chatgpt_export(folder.path(), 5)?).await?;
    let laptop = start(away).await?;
    in_step(&[&desk, &laptop]).await?;
    let request = v1::ListMemoriesRequest { page_size: 1_000, ..v1::ListMemoriesRequest::default() };
    let found = memories(&laptop).list_memories(request).await?.into_inner().memories;
    ensure!(ids.iter().all(|id| found.iter().any(|memory| memory.id == *id)));
    Ok(())
}
