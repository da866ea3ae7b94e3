//! An import that a person undid stays undone, whatever happens to its file.

use std::{fs, time::SystemTime};

use anyhow::{Context, Result};
use satchel_proto::v1::{self, ImportStatus};
use satchel_tests::{exports::pack, operation};

use crate::play::{Play, export};

#[tokio::test(flavor = "multi_thread")]
async fn an_undone_import_stays_undone_when_its_file_is_touched_renamed_or_copied() -> Result<()> {
    for zipped in [false, true] {
        let play = Play::start().await?;
        let name = if zipped { "export.zip" } else { "conversations.json" };
        let unpacked = tempfile::tempdir()?;
        fs::write(unpacked.path().join("conversations.json"), export(1))?;
        let place = |name: &str| -> Result<()> {
            if zipped {
                return pack(unpacked.path(), &play.at(name));
            }
            Ok(fs::write(play.at(name), export(1))?)
        };
        place(name)?;
        play.imported(1).await?;
        assert_eq!(play.conversations().await?, 1);
        let id = play.imports().await?.first().context("an import")?.id.clone();
        let undo = v1::UndoImportRequest { id: id.clone(), ..Default::default() };
        operation::undo(&play.channel(), undo).await?;
        assert_eq!(play.conversations().await?, 0);

        let touched = fs::FileTimes::new().set_modified(SystemTime::now());
        fs::File::options().write(true).open(play.at(name))?.set_times(touched)?;
        play.looks_again().await;
        play.imported(1).await?;
        fs::copy(play.at(name), play.at(&format!("copy of {name}")))?;
        play.imported(2).await?;
        fs::rename(play.at(name), play.at(&format!("renamed {name}")))?;
        play.looks_again().await;
        play.imported(2).await?;
        let play = play.restart().await?;
        play.imported(2).await?;
        assert_eq!(play.conversations().await?, 0, "zipped: {zipped}");
        let imports = play.imports().await?;
        assert!(imports.len() == 1 && imports[0].status() == ImportStatus::Undone, "{imports:?}");

        // An explicit import by a person is carried out.
        let job = play.daemon.import(&play.at(&format!("renamed {name}"))).await?;
        assert_eq!(job.imports()[0].status(), ImportStatus::Completed, "{job:?}");
        assert_eq!(play.conversations().await?, 1);
        play.daemon.stop().await?;
    }
    Ok(())
}
