//! Reads one export: the account, then conversations, media posts, projects and tasks in the order of the file.

use satchel_importer::{
    Bundle, Element, ImportError, Importer as _, JsonArray, JsonLists, RecordKind, Sink, Summary,
};

use crate::{
    Grok, account,
    assets::Assets,
    detect::{self, Export},
    layout::FileKind,
    map::{self, Context},
    media,
    memory::Memories,
    raw,
};

/// The lists of the main file, in the order of [`ExportReader::element`].
const LISTS: [(&str, RecordKind); 4] = [
    ("conversations", RecordKind::Conversation),
    ("media_posts", RecordKind::Conversation),
    ("projects", RecordKind::Memory),
    ("tasks", RecordKind::Memory),
];

const ACCOUNT: &str = "the user's id and name are read; the rest of this file is private and is passed over";
const PRIVATE: &str = "this file is private and is not read";
const UNKNOWN: &str = "files of this kind are not known; it is not imported";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Grok::describe().version_of(format)?;
    let exports = detect::find_exports(bundle)?;
    if exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of a Grok export"));
    }
    for export in &exports {
        read(export, version, bundle, sink)?;
    }
    Ok(bundle.summary())
}

fn read(export: &Export, version: &'static str, bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    read_others(export, bundle, sink)?;
    let assets = Assets::new(bundle, &export.others);
    let context = Context { version, assets: &assets };
    let memories = Memories::default();
    let mut reader = ExportReader { context: &context, memories, newest: None, account: None };
    if export.wrapped {
        let lists = JsonLists::new(&export.main, &LISTS);
        let walked = lists.each(bundle, sink, |list, element, sink| reader.element(list, &element, sink))?;
        for name in &walked.others {
            sink.warn(
                &format!("{}.{name}", export.main),
                "no member of this name is known; it is not imported",
            );
        }
        walked.warn_of_more_others(&export.main, sink);
    } else {
        JsonArray::new(&export.main)
            .each(bundle, sink, |element, sink| reader.conversation(&element, sink))?;
    }
    let evidence = reader.memories.evidence(reader.newest, reader.account.as_deref());
    if !evidence.is_empty() {
        sink.evidence(&evidence)?;
    }
    report_unused(&assets, sink);
    Ok(())
}

/// Reads the account and reports the files that are not imported. Any of them may be missing: no record depends on them.
fn read_others(export: &Export, bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    for (kind, path) in &export.others {
        match kind {
            FileKind::Account => {
                account::read(bundle, path, sink)?;
                sink.warn(path, ACCOUNT);
            }
            FileKind::Billing => sink.warn(path, PRIVATE),
            FileKind::Unknown => sink.warn(path, UNKNOWN),
            FileKind::Json | FileKind::Asset => {}
        }
    }
    Ok(())
}

fn report_unused(assets: &Assets<'_>, sink: &mut Sink) {
    let Some((count, first)) = assets.unused() else { return };
    let message = match count {
        1 => "no message points at this file; it is not imported".to_owned(),
        _ => format!("no message points at this file, nor at {} more; they are not imported", count - 1),
    };
    sink.warn(first, &message);
}

struct ExportReader<'r> {
    context: &'r Context<'r>,
    memories: Memories,
    /// The newest time of all that was read.
    newest: Option<i64>,
    /// The account of the first conversation that names one.
    account: Option<String>,
}

impl ExportReader<'_> {
    fn element(&mut self, list: usize, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        match list {
            0 => self.conversation(element, sink),
            1 => self.media_post(element, sink),
            2 => self.memories.add_project(&mut element.parser(), &element.locator()),
            _ => self.memories.add_task(&mut element.parser(), &element.locator()),
        }
    }

    fn conversation(&mut self, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let raw = raw::Conversation::read(&mut element.parser())?
            .ok_or_else(|| ImportError::malformed("it is not an object"))?;
        let (newest, account) = (raw.newest(), raw.account);
        let records = map::records(raw, self.context, &element.locator(), element.arena())
            .map_err(ImportError::malformed)?;
        self.newest = self.newest.max(newest);
        if let (None, Some(account)) = (&self.account, account) {
            self.account = Some(account.to_owned());
        }
        for (locator, message) in &records.warnings {
            sink.warn(locator, message);
        }
        sink.conversation(&records.conversation, &records.messages)?;
        for (locator, reason) in &records.skipped {
            sink.skip(RecordKind::Message, locator, reason)?;
        }
        Ok(())
    }

    fn media_post(&mut self, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let (conversation, messages) =
            media::read(&mut element.parser(), self.context, &element.locator(), element.arena())?
                .ok_or_else(|| ImportError::malformed("it holds neither a prompt nor a file"))?;
        self.newest = self.newest.max(conversation.created_at);
        sink.conversation(&conversation, &messages)
    }
}
