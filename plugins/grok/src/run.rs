//! Reads one export: whose it is, then its conversations, media, projects and tasks in the order of the file.

use satchel_importer::{
    AccountRecord, Bundle, Element, ImportError, Importer as _, JsonArray, JsonLists, RecordKind, Sink,
    Summary,
};

use crate::{
    Grok,
    assets::Assets,
    detect::{self, Export},
    layout::Kind,
    map::{self, Context},
    media,
    memory::{Found, Outcome},
    owner::Owner,
    raw,
};

/// The lists of the main file, in the order of [`Reading::element`].
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
    let exports = detect::survey(bundle)?;
    if exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of a Grok export"));
    }
    for export in &exports {
        read(export, version, bundle, sink)?;
    }
    Ok(bundle.summary())
}

fn read(export: &Export, version: &'static str, bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    read_beside(export, bundle, sink)?;
    let assets = Assets::new(bundle, &export.beside);
    let context = Context { version, assets: &assets };
    let mut reading = Reading { context: &context, found: Found::default(), newest: None, account: None };
    if export.wrapped {
        let lists = JsonLists::new(&export.main, &LISTS);
        let walked = lists.each(bundle, sink, |list, element, sink| reading.element(list, &element, sink))?;
        for name in &walked.others {
            sink.warn(
                &format!("{}.{name}", export.main),
                "no member of this name is known; it is not imported",
            );
        }
    } else {
        JsonArray::new(&export.main)
            .each(bundle, sink, |element, sink| reading.conversation(&element, sink))?;
    }
    let evidence = reading.found.evidence(reading.newest, reading.account.as_deref());
    if !evidence.is_empty() {
        sink.evidence(&evidence)?;
    }
    report_unused(&assets, sink);
    Ok(())
}

/// Reads whose export it is, and says which files are left aside. No record depends on them: they may be missing.
fn read_beside(export: &Export, bundle: &Bundle, sink: &mut Sink) -> Result<(), ImportError> {
    for (kind, path) in &export.beside {
        match kind {
            Kind::Account => {
                let owner = Owner::read(bundle, path, sink)?;
                if let Some(id) = owner.id {
                    sink.account(&AccountRecord { id, name: owner.name, locator: path.clone() })?;
                }
                sink.warn(path, ACCOUNT);
            }
            Kind::Billing => sink.warn(path, PRIVATE),
            Kind::NotRead => sink.warn(path, UNKNOWN),
            Kind::Json | Kind::Asset => {}
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

struct Reading<'r> {
    context: &'r Context<'r>,
    found: Found,
    /// The newest time of all that was read.
    newest: Option<i64>,
    /// Whose conversations they are, by the first that says so.
    account: Option<String>,
}

impl Reading<'_> {
    fn element(&mut self, list: usize, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        match list {
            0 => self.conversation(element, sink),
            1 => self.media(element, sink),
            2 => settle(self.found.project(&mut element.parser(), &element.locator())?),
            _ => settle(self.found.task(&mut element.parser(), &element.locator())?),
        }
    }

    fn conversation(&mut self, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let raw = raw::Conversation::read(&mut element.parser())?
            .ok_or_else(|| ImportError::malformed("it is not an object"))?;
        let (newest, account) = (raw.newest(), raw.account);
        // What is emitted borrows from the assets too, so it lives as long as they do at most.
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

    fn media(&mut self, element: &Element<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let records = media::read(&mut element.parser(), self.context, &element.locator(), element.arena())?
            .ok_or_else(|| ImportError::malformed("it holds neither a prompt nor a file"))?;
        self.newest = self.newest.max(records.conversation.created_at);
        sink.conversation(&records.conversation, &records.messages)
    }
}

fn settle(outcome: Outcome) -> Result<(), ImportError> {
    match outcome {
        Outcome::Taken => Ok(()),
        Outcome::Skipped(reason) => Err(ImportError::malformed(reason)),
    }
}
