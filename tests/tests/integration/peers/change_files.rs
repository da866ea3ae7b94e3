//! Changes that travel in a file, for stores that cannot reach each other.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{self, sync_service_client::SyncServiceClient};
use satchel_server::transfer;
use satchel_tests::test_daemon::TestDaemon;
use sha2::{Digest as _, Sha256};

use super::{
    erasures,
    hostile::demo_with_file,
    peer_daemon::{
        add, content, digest, eventually, in_step, listed, memories, pair, pause, peers, rewrite, start,
        start_new,
    },
};

/// Lets two daemons exchange changes once, and then never again over the network.
async fn paired_and_parted() -> Result<(TestDaemon, TestDaemon)> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    in_step(&[&desk, &laptop]).await?;
    part(&laptop).await?;
    Ok((desk, laptop))
}

/// Sets the address of the peer `desk` to one where nobody listens, and waits until the connection is gone.
async fn part(laptop: &TestDaemon) -> Result<()> {
    let request = v1::UpdatePeerRequest {
        peer: "desk".to_owned(),
        paused: None,
        addresses: vec!["127.0.0.1:1".to_owned()],
        ..Default::default()
    };
    peers(laptop).update_peer(request).await?;
    eventually("the peer is not reached", async || {
        let state = listed(laptop).await?.first().map(|peer| peer.state);
        Ok((state == Some(v1::PeerState::Failed.into())).then_some(()))
    })
    .await
}

async fn export(daemon: &TestDaemon, peer: &str, full: bool, output: &Path) -> Result<v1::ChangeFileSummary> {
    let request = v1::DownloadChangeFileRequest { peer: peer.to_owned(), full };
    Ok(transfer::download_change_file(&daemon.channel, request, output, &mut |_, _| {}).await?)
}

async fn import(daemon: &TestDaemon, file: &Path) -> Result<v1::ImportChangeFileResponse, tonic::Status> {
    let request = v1::ImportChangeFileRequest {
        path: file.to_str().unwrap_or_default().to_owned(),
        upload_id: String::new(),
    };
    Ok(peers(daemon).import_change_file(request).await?.into_inner())
}

/// Carries a file from one daemon to the other.
pub(super) async fn carry(
    from: &TestDaemon,
    peer: &str,
    to: &TestDaemon,
) -> Result<(v1::ChangeFileSummary, v1::ImportChangeFileResponse)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("changes.age");
    let written = export(from, peer, false, &file).await?;
    ensure!(written.size_bytes.unsigned_abs() == file.metadata()?.len());
    Ok((written, import(to, &file).await?))
}

async fn frontier(daemon: &TestDaemon) -> Result<v1::Frontier> {
    let mut client = SyncServiceClient::new(daemon.channel.clone());
    let answer = client.get_frontier(v1::GetFrontierRequest::default()).await?.into_inner();
    answer.frontier.context("a frontier")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_come_in_step_by_files_alone() -> Result<()> {
    let (desk, laptop) = paired_and_parted().await?;
    let bytes = b"\x89PNG\r\n\x1a\n, or nearly".to_vec();
    let sha256 = Sha256Digest::from_bytes(Sha256::digest(&bytes).into());
    let folder = tempfile::tempdir()?;
    demo_with_file(folder.path(), &bytes)?;
    desk.import(folder.path()).await?;
    let note = add(&desk, "Keeps bees").await?;

    let (written, imported) = carry(&desk, "laptop", &laptop).await?;
    ensure!(written.files == 1 && imported.new_files == 1, "{written:?} {imported:?}");
    ensure!(imported.new_changes == written.changes && imported.repeated_changes == 0, "{imported:?}");
    ensure!(imported.refused.is_empty() && imported.problem.is_empty(), "{imported:?}");
    ensure!(imported.peer.as_ref().is_some_and(|peer| peer.name == "desk" && peer.in_step), "{imported:?}");
    ensure!(content(&laptop, &note).await?.as_deref() == Some("Keeps bees"));
    ensure!(digest(&desk).await? == digest(&laptop).await?);
    ensure!(has_file(&laptop, &sha256).await?, "the attachment came");

    // Back. The desk learns from the file what the laptop has.
    rewrite(&laptop, &note, "Keeps bees and hens").await?;
    let (written, imported) = carry(&laptop, "desk", &desk).await?;
    ensure!(
        written.changes == 1 && written.files == 0 && imported.new_changes == 1,
        "{written:?} {imported:?}"
    );
    ensure!(digest(&desk).await? == digest(&laptop).await?);
    let (written, imported) = carry(&desk, "laptop", &laptop).await?;
    ensure!(written.changes == 0 && imported.new_changes == 0, "{written:?} {imported:?}");

    // A file that is lost does no harm: the next one has the same changes.
    add(&desk, "One").await?;
    let lost = folder.path().join("lost.age");
    let first = export(&desk, "laptop", false, &lost).await?;
    add(&desk, "Two").await?;
    let (second, imported) = carry(&desk, "laptop", &laptop).await?;
    ensure!(second.changes == first.changes + 1, "{first:?} {second:?}");
    ensure!(imported.new_changes == second.changes);
    let again = import(&laptop, &lost).await?;
    ensure!(again.new_changes == 0 && again.repeated_changes == first.changes, "{again:?}");
    ensure!(digest(&desk).await? == digest(&laptop).await?);
    Ok(())
}

async fn has_file(daemon: &TestDaemon, sha256: &Sha256Digest) -> Result<bool> {
    let mut client = SyncServiceClient::new(daemon.channel.clone());
    match client.download_file(v1::DownloadFileRequest { sha256: sha256.to_hex() }).await {
        Ok(_) => Ok(true),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(false),
        Err(status) => Err(status.into()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_edits_meet_in_files() -> Result<()> {
    let (desk, laptop) = paired_and_parted().await?;
    let note = add(&desk, "Has a cat").await?;
    carry(&desk, "laptop", &laptop).await?;
    rewrite(&desk, &note, "Has two cats").await?;
    rewrite(&laptop, &note, "Has a dog").await?;
    carry(&desk, "laptop", &laptop).await?;
    carry(&laptop, "desk", &desk).await?;
    for daemon in [&desk, &laptop] {
        let request = v1::ListConflictsRequest::default();
        let found = peers(daemon).list_conflicts(request).await?.into_inner().conflicts;
        ensure!(found.len() == 1 && found[0].values.len() == 2, "{found:?}");
    }
    ensure!(digest(&desk).await? == digest(&laptop).await?);
    Ok(())
}

/// What follows an erasure takes effect when the daemon has completed it; the file says so, and is read once more for its attachments.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_comes_with_a_file_and_what_follows_it() -> Result<()> {
    let (desk, laptop) = paired_and_parted().await?;
    let (erased, kept) = (add(&desk, "Erased later").await?, add(&desk, "Stays").await?);
    carry(&desk, "laptop", &laptop).await?;
    let desk = erasures::erase(desk, &erased).await?;
    let bytes = b"\x89PNG\r\n\x1a\n, after the erasure".to_vec();
    let folder = tempfile::tempdir()?;
    demo_with_file(folder.path(), &bytes)?;
    desk.import(folder.path()).await?;
    let sha256 = Sha256Digest::from_bytes(Sha256::digest(&bytes).into());
    let file = folder.path().join("changes.age");
    let written = export(&desk, "laptop", false, &file).await?;
    ensure!(written.files == 1 && has_file(&desk, &sha256).await?, "{written:?}");
    let imported = import(&laptop, &file).await?;
    ensure!(imported.problem.contains("erasure"), "{imported:?}");
    eventually("the erasure is completed", async || {
        // The daemon closes its store for a moment.
        let Ok(text) = content(&laptop, &erased).await else { return Ok(None) };
        let Ok(imported) = import(&laptop, &file).await else { return Ok(None) };
        Ok((text.is_none_or(|text| text.is_empty()) && imported.problem.is_empty()).then_some(()))
    })
    .await?;
    ensure!(has_file(&laptop, &sha256).await?, "the attachment came");
    ensure!(content(&laptop, &kept).await?.is_some());
    ensure!(digest(&desk).await? == digest(&laptop).await?);
    Ok(())
}

/// An attachment whose bytes are damaged is left out; everything else comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_attachment_is_left_out_of_a_file() -> Result<()> {
    let (desk, laptop) = paired_and_parted().await?;
    let folder = tempfile::tempdir()?;
    demo_with_file(folder.path(), b"a picture that will be damaged")?;
    desk.import(folder.path()).await?;
    let blobs = desk.data_dir().join("blobs");
    let damaged = super::hostile::damage_files(&blobs)?;
    ensure!(damaged == 1, "{damaged} files");
    let (written, imported) = carry(&desk, "laptop", &laptop).await?;
    ensure!(written.files == 0 && imported.problem.is_empty(), "{written:?} {imported:?}");
    ensure!(digest(&desk).await? == digest(&laptop).await?);
    Ok(())
}

/// The daemons learn of each other's keys and changes in the exchange, and still know them after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_peer_survives_a_restart() -> Result<()> {
    let (desk, laptop) = paired_and_parted().await?;
    add(&desk, "Before the restart").await?;
    let (desk, laptop) = (start(desk.stop().await?).await?, start(laptop.stop().await?).await?);
    let known = listed(&desk).await?;
    ensure!(known[0].last_contact_at.is_some() && !known[0].origin.is_empty(), "{known:?}");
    let (written, imported) = carry(&desk, "laptop", &laptop).await?;
    // Only what the laptop lacks.
    ensure!(written.changes == 1 && imported.new_changes == 1, "{written:?} {imported:?}");
    Ok(())
}

/// Returns the reason of the error, and its text.
fn refused(outcome: Result<v1::ImportChangeFileResponse, tonic::Status>) -> Result<(String, String)> {
    let status = outcome.err().context("the file is refused")?;
    let details = tonic_types::StatusExt::get_error_details(&status);
    let reason = details.error_info().map(|info| info.reason.clone()).unwrap_or_default();
    Ok((reason, status.message().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_or_from_somebody_else_changes_nothing() -> Result<()> {
    let (desk, laptop, stranger) = (start_new().await?, start_new().await?, start_new().await?);
    for (daemon, name) in [(&laptop, "laptop"), (&stranger, "stranger")] {
        pair((daemon, name), (&desk, "desk")).await?;
    }
    in_step(&[&desk, &laptop, &stranger]).await?;
    part(&laptop).await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    for n in 0..20 {
        add(&desk, &format!("Note {n}")).await?;
    }
    let file = path("for-laptop.age");
    export(&desk, "laptop", false, &file).await?;
    let whole = std::fs::read(&file)?;
    let before = frontier(&laptop).await?;

    // Cut or changed anywhere, or no such file at all.
    let mut wrong: Vec<Vec<u8>> =
        (0..whole.len()).step_by(97).map(|length| whole[..length].to_vec()).collect();
    for at in (0..whole.len()).step_by(101) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        wrong.push(bytes);
    }
    wrong.push([&whole[..], b"x"].concat());
    wrong.push(b"age-encryption.org/v1\n".repeat(9_000));
    wrong.push(b"PK\x03\x04".to_vec());
    for bytes in wrong {
        std::fs::write(path("wrong.age"), &bytes)?;
        let (reason, message) = refused(import(&laptop, &path("wrong.age")).await)?;
        ensure!(reason == "CHANGE_FILE_UNUSABLE" && message.contains("wrong.age"), "{reason}: {message}");
    }
    let (reason, message) = refused(import(&laptop, &path("absent.age")).await)?;
    ensure!(reason == "CHANGE_FILE_UNUSABLE" && message.contains("cannot be opened"), "{reason}: {message}");

    // For somebody else.
    let (_, message) = refused(import(&stranger, &file).await)?;
    ensure!(message.contains("not encrypted for this store"), "{message}");
    // By somebody whom the laptop does not know as a peer, or not any more.
    let (reason, message) = refused(import(&desk, &file).await)?;
    ensure!(reason == "CHANGE_FILE_UNUSABLE", "its own file: {message}");
    pause(&laptop, "desk", true).await?;
    let (reason, _) = refused(import(&laptop, &file).await)?;
    ensure!(reason == "PEER_PAUSED", "{reason}");
    pause(&laptop, "desk", false).await?;
    ensure!(frontier(&laptop).await? == before, "nothing was stored");
    peers(&laptop).remove_peer(v1::RemovePeerRequest { peer: "desk".to_owned() }).await?;
    let (_, message) = refused(import(&laptop, &file).await)?;
    ensure!(message.contains("no peer of this one"), "{message}");
    ensure!(frontier(&laptop).await? == before, "nothing was stored");
    let request = v1::ListMemoriesRequest { page_size: 100, ..v1::ListMemoriesRequest::default() };
    ensure!(memories(&laptop).list_memories(request).await?.into_inner().memories.is_empty());
    Ok(())
}

/// A store that lost changes is not continued across the gap, and gets everything with `full`.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_named_and_a_full_file_fills_it() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let early = add(&laptop, "Early").await?;
    in_step(&[&desk, &laptop]).await?;
    let image = tempfile::tempdir()?;
    let folder = laptop.stop().await?;
    super::copies::copy(folder.path(), image.path())?;
    let laptop = start(folder).await?;
    let late = add(&laptop, "After the image was made").await?;
    let theirs = add(&desk, "Of the desk, after the image was made").await?;
    in_step(&[&desk, &laptop]).await?;
    laptop.stop().await?;
    // Only then is the image used, without a network.
    let newest = add(&desk, "Newest").await?;
    let address = listed(&desk).await?;
    ensure!(address.len() == 1);
    let folder = tempfile::tempdir()?;
    let (short, full) = (folder.path().join("short.age"), folder.path().join("full.age"));
    ensure!(export(&desk, "laptop", false, &short).await?.changes == 1);
    ensure!(export(&desk, "laptop", true, &full).await?.changes > 3);
    desk.stop().await?;
    let laptop = start(image).await?;
    let (reason, message) = refused(import(&laptop, &short).await)?;
    ensure!(reason == "CHANGE_FILE_UNUSABLE" && message.contains("--full"), "{message}");
    import(&laptop, &full).await?;
    for id in [early, late, theirs, newest] {
        ensure!(content(&laptop, &id).await?.is_some(), "{id}");
    }
    Ok(())
}
