//! Reads one export, with one thread in memory at a time.

use satchel_importer::{Bundle, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary};

use crate::{
    Perplexity,
    detect::{self, Threads},
    map,
    raw::Thread,
};

/// The longest thread that is read, in bytes; real ones have a few MiB. The thread and its records, up to seven times as much
/// if answers are JSON in strings, must fit into the sandbox's memory.
const MAX_THREAD: usize = 16 * 1024 * 1024;

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Perplexity::describe().version_of(format)?;
    let mut read = false;
    for entry in bundle.entries() {
        if let Some(Threads { format: _, layout }) = detect::find_threads(bundle, &entry.path)? {
            let file = layout.threads(&entry.path).limit(MAX_THREAD);
            let outcome = file.each(bundle, sink, |element, sink| read_thread(&element, version, sink))?;
            if outcome.cut.is_some() {
                read_cut_thread(&file, outcome.elements, bundle, version, sink)?;
            }
            read = true;
        }
    }
    if read { Ok(bundle.summary()) } else { Err(ImportError::not_this_format("no file holds a thread")) }
}

fn read_thread(element: &Element<'_>, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
    let thread = Thread::read(&mut element.parser(), element.key())?;
    let thread = thread.ok_or_else(|| ImportError::malformed("it holds no list of turns"))?;
    emit(thread, version, &element.locator(), sink)
}

/// Reads the complete turns of the thread in which the file ends, if it is near the beginning; a skip has reported the cut. `whole` threads
/// are before it. The sample of a long file ends inside one of them, which was read.
fn read_cut_thread(
    file: &JsonArray<'_>,
    whole: u64,
    bundle: &Bundle,
    version: &'static str,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut result = Ok(());
    file.sample(bundle, MAX_THREAD, |element| {
        if !element.whole()
            && element.index() == whole
            && let Some(thread) = Thread::read_cut(&mut element.parser(), element.key())
        {
            result = emit(thread, version, &element.locator(), sink);
        }
        true
    })?;
    result
}

fn emit(
    thread: Thread<'_>,
    version: &'static str,
    locator: &str,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let records = map::thread(thread, version, locator);
    sink.conversation(&records.conversation, &records.messages)?;
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Message, locator, reason)?;
    }
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    Ok(())
}
