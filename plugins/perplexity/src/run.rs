//! Reads one export: each thread whole, one in memory at a time.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, JsonArray, Sink, Summary};

use crate::{
    Perplexity,
    detect::{self, Found},
    map,
    raw::Thread,
};

/// The longest thread that is read, in bytes. It and what is made of it, up to seven times as much where answers are JSON in
/// strings, must fit into the sandbox's memory; saved threads have a few MiB.
const MAX_THREAD: usize = 16 * 1024 * 1024;

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Perplexity::describe().version_of(format)?;
    let mut read = false;
    for entry in bundle.entries() {
        if let Some(Found { format: _, layout }) = detect::look(bundle, &entry.path)? {
            let file = layout.threads(&entry.path).limit(MAX_THREAD);
            let outcome = file.each(bundle, sink, |element, sink| emit(&element, version, sink))?;
            if outcome.cut.is_some() {
                salvage(&file, bundle, version, sink)?;
            }
            read = true;
        }
    }
    if read { Ok(bundle.summary()) } else { Err(ImportError::not_this_format("no file holds a thread")) }
}

fn emit(element: &Element<'_>, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
    let thread = Thread::read(&mut element.parser(), element.key())?;
    let thread = thread.ok_or_else(|| ImportError::malformed("it holds no list of turns"))?;
    hand_over(thread, version, &element.locator(), sink)
}

/// Reads the whole turns of a thread inside which the file ends; that it does was told as a skip.
fn salvage(
    file: &JsonArray<'_>,
    bundle: &Bundle,
    version: &'static str,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut result = Ok(());
    file.sample(bundle, MAX_THREAD, |element| {
        if !element.whole()
            && let Some(thread) = Thread::read_head(&mut element.parser(), element.key())
        {
            result = hand_over(thread, version, &element.locator(), sink);
        }
        true
    })?;
    result
}

fn hand_over(
    thread: Thread<'_>,
    version: &'static str,
    locator: &str,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let records = map::thread(thread, version, locator);
    sink.conversation(&records.conversation, &records.messages)?;
    for (kind, locator, reason) in &records.skipped {
        sink.skip(*kind, locator, reason)?;
    }
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    Ok(())
}
