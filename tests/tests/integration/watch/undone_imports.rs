//! An import that a person undid stays undone, whatever happens to its file.

use std::{fs, time::SystemTime};

use anyhow::{Context, Result};
use satchel_proto::v1::{self, ImportStatus};
use satchel_tests::{operation, samples::pack};

use crate::watch::fixture::{WatchFixture, chatgpt_file};

#[tokio::test(flavor = "multi_thread")]
async fn an_undone_import_stays_undone_when_its_file_is_touched_renamed_or_copied() -> Result<()> {
    for zipped in [false, true] {
        let fixture = WatchFixture::start().await?;
        let name = if zipped { "export.zip" } else { "conversations.json" };
        let unpacked = tempfile::tempdir()?;
        fs::write(unpacked.path().join("conversations.json"), chatgpt_file(1))?;
        let place = |name: &str| -> Result<()> {
            if zipped {
                return pack(unpacked.path(), &fixture.path(name));
            }
            Ok(fs::write(fixture.path(name), chatgpt_file(1))?)
        };
        place(name)?;
        fixture.wait_for_imported(1).await?;
        assert_eq!(fixture.conversation_count().await?, 1);
        let id = fixture.imports().await?.first().context("an import")?.id.clone();
        let undo = v1::UndoImportRequest { id: id.clone(), ..Default::default() };
        operation::undo(&fixture.channel(), undo).await?;
        assert_eq!(fixture.conversation_count().await?, 0);

        let touched = fs::FileTimes::new().set_modified(SystemTime::now());
        fs::File::options().write(true).open(fixture.path(name))?.set_times(touched)?;
        fixture.wait_for_rescans().await;
        fixture.wait_for_imported(1).await?;
        fs::copy(fixture.path(name), fixture.path(&format!("copy of {name}")))?;
        fixture.wait_for_imported(2).await?;
        fs::rename(fixture.path(name), fixture.path(&format!("renamed {name}")))?;
        fixture.wait_for_rescans().await;
        fixture.wait_for_imported(2).await?;
        let fixture = fixture.restart().await?;
        fixture.wait_for_imported(2).await?;
        assert_eq!(fixture.conversation_count().await?, 0, "zipped: {zipped}");
        let imports = fixture.imports().await?;
        assert!(imports.len() == 1 && imports[0].status() == ImportStatus::Undone, "{imports:?}");

        // An explicit import by a person is carried out.
        let job = fixture.daemon.import(&fixture.path(&format!("renamed {name}"))).await?;
        assert_eq!(job.imports()[0].status(), ImportStatus::Completed, "{job:?}");
        assert_eq!(fixture.conversation_count().await?, 1);
        fixture.daemon.stop().await?;
    }
    Ok(())
}
