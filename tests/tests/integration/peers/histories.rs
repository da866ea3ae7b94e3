//! Random histories of three daemons: edits, imports and undos, while connections are paused and daemons stop and start. The model is
//! what each daemon has acknowledged.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, import_service_client::ImportServiceClient};
use satchel_tests::{
    generate::{Rng, chatgpt_short},
    operation,
    test_daemon::TestDaemon,
};
use tempfile::TempDir;

use super::peer_daemon::{add, in_step, memories, pair, pause, rewrite, start, start_new};

const STEPS: usize = 30;

/// Two machines that know each other only through the third one, to which both connect.
struct Group {
    /// The last one is that to which the others connect. `None` only while a daemon is being started again.
    daemons: Vec<Option<TestDaemon>>,
    paused: Vec<bool>,
    rng: Rng,
    folder: TempDir,
    /// What was acknowledged: the ids of memories with the texts that they had.
    acknowledged: BTreeSet<(String, String)>,
    imported: Vec<String>,
    steps: Vec<String>,
}

impl Group {
    async fn new(seed: u64) -> Result<Self> {
        let daemons = [start_new().await?, start_new().await?, start_new().await?];
        for (daemon, name) in daemons[..2].iter().zip(["laptop", "desk"]) {
            pair((daemon, name), (&daemons[2], "server")).await?;
        }
        Ok(Self {
            daemons: daemons.into_iter().map(Some).collect(),
            paused: vec![false; 2],
            rng: Rng::new(seed),
            folder: tempfile::tempdir()?,
            acknowledged: BTreeSet::new(),
            imported: Vec::new(),
            steps: vec![format!("seed {seed}")],
        })
    }

    fn daemon(&self, at: usize) -> Result<&TestDaemon> {
        self.daemons[at].as_ref().context("a daemon")
    }

    fn below(&mut self, bound: usize) -> Result<usize> {
        Ok(usize::try_from(self.rng.below(bound as u64))?)
    }

    async fn step(&mut self) -> Result<()> {
        let at = self.below(3)?;
        match self.rng.below(12) {
            0..=2 => {
                let text = format!("Fact {}", self.rng.below(1_000));
                self.steps.push(format!("{at} adds {text:?}"));
                let id = add(self.daemon(at)?, &text).await?;
                self.acknowledged.insert((id, text));
            }
            3..=6 => self.rewrite(at).await?,
            7 => self.archive(at).await?,
            8 => {
                let (path, number) =
                    (self.folder.path().join(self.steps.len().to_string()), self.rng.below(3));
                chatgpt_short(&path, 5, number)?;
                self.steps.push(format!("{at} imports export {number}"));
                let done = self.daemon(at)?.import(&path).await?;
                if let Some(v1::operation::Result::Imports(imports)) = done.result {
                    self.imported.extend(imports.imports.into_iter().map(|import| import.id));
                }
            }
            9 => self.undo(at).await?,
            10 => {
                let paused = !self.paused[at % 2];
                self.steps.push(format!("{} {}", at % 2, if paused { "pauses" } else { "resumes" }));
                pause(self.daemon(at % 2)?, "server", paused).await?;
                self.paused[at % 2] = paused;
            }
            _ => {
                self.steps.push(format!("{} stops and starts", at % 2));
                let stopped = self.daemons[at % 2].take().context("a daemon")?.stop().await?;
                self.daemons[at % 2] = Some(start(stopped).await?);
            }
        }
        Ok(())
    }

    /// Returns a memory that a daemon shows.
    async fn pick(&mut self, at: usize) -> Result<Option<String>> {
        let request = v1::ListMemoriesRequest { page_size: 1_000, ..v1::ListMemoriesRequest::default() };
        let found = memories(self.daemon(at)?).list_memories(request).await?.into_inner().memories;
        // What nobody has added by hand may go with its import.
        let known: Vec<String> = found
            .into_iter()
            .map(|memory| memory.id)
            .filter(|id| self.acknowledged.iter().any(|(known, _)| known == id))
            .collect();
        if known.is_empty() { Ok(None) } else { Ok(Some(known[self.below(known.len())?].clone())) }
    }

    async fn rewrite(&mut self, at: usize) -> Result<()> {
        let Some(id) = self.pick(at).await? else { return Ok(()) };
        let text = format!("Text {}", self.rng.below(1_000));
        // An archived memory cannot be changed.
        if rewrite(self.daemon(at)?, &id, &text).await.is_ok() {
            self.steps.push(format!("{at} writes {text:?} in {id}"));
            self.acknowledged.insert((id, text));
        }
        Ok(())
    }

    async fn archive(&mut self, at: usize) -> Result<()> {
        let Some(id) = self.pick(at).await? else { return Ok(()) };
        let request = v1::SetMemoryStatusRequest {
            id: id.clone(),
            status: v1::MemoryStatus::Archived.into(),
            ..v1::SetMemoryStatusRequest::default()
        };
        if memories(self.daemon(at)?).set_memory_status(request).await.is_ok() {
            self.steps.push(format!("{at} archives {id}"));
        }
        Ok(())
    }

    /// Undoes an import, if the daemon knows it.
    async fn undo(&mut self, at: usize) -> Result<()> {
        if self.imported.is_empty() {
            return Ok(());
        }
        let which = self.below(self.imported.len())?;
        let id = self.imported[which].clone();
        let channel = self.daemon(at)?.channel.clone();
        let request = v1::UndoImportRequest { id: id.clone(), ..v1::UndoImportRequest::default() };
        if let Ok(started) = ImportServiceClient::new(channel.clone()).undo_import(request).await {
            self.steps.push(format!("{at} undoes {id}"));
            let started = started.into_inner().operation.context("an operation")?;
            operation::wait(&channel, &started.id).await?;
        }
        Ok(())
    }

    /// Lets all come in step, and checks that each has everything.
    async fn check(&self) -> Result<()> {
        for at in 0..2 {
            pause(self.daemon(at)?, "server", false).await?;
        }
        let all = [self.daemon(0)?, self.daemon(1)?, self.daemon(2)?];
        in_step(&all).await?;
        let ids: BTreeSet<&String> = self.acknowledged.iter().map(|(id, _)| id).collect();
        for (at, daemon) in all.iter().enumerate() {
            for id in &ids {
                let request = v1::ListMemoryVersionsRequest {
                    id: (*id).clone(),
                    page_size: 1_000,
                    ..v1::ListMemoryVersionsRequest::default()
                };
                let versions = memories(daemon).list_memory_versions(request).await;
                let versions = versions.with_context(|| format!("{id} in {at}"))?.into_inner().versions;
                let texts: BTreeSet<String> =
                    versions.into_iter().filter_map(|version| Some(version.memory?.content)).collect();
                for (_, text) in self.acknowledged.iter().filter(|(known, _)| known == *id) {
                    ensure!(texts.contains(text), "{text:?} is in no version of {id} in {at}: {texts:?}");
                }
            }
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_come_in_step_after_any_history() -> Result<()> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let histories = number("SATCHEL_PEER_HISTORIES").unwrap_or(10);
    let first = number("PROPTEST_RNG_SEED").unwrap_or(0);
    for seed in 0..histories {
        let mut group = Group::new(first.wrapping_add(seed)).await?;
        for _ in 0..STEPS {
            let outcome = group.step().await;
            outcome.with_context(|| group.steps.join("; "))?;
        }
        let outcome = group.check().await;
        outcome.with_context(|| group.steps.join("; "))?;
    }
    Ok(())
}
