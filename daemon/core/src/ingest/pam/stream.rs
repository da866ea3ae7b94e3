//! Reads on a separate thread and passes the entries to the writer one by one.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use satchel_host::channel::{self, Received};
use satchel_pam::parse::TextSource;
use satchel_source::{Bundle, SourceText};

use super::DocumentImport;
use crate::ingest::{error::IngestError, records::IDLE};

/// Memory that entries take in the queue between the two threads, in bytes.
const QUEUE_BYTES: usize = 4 << 20;

impl DocumentImport<'_, '_, '_> {
    /// Runs `read` on a separate thread and passes the entries that it pushes, in order, to `take`. A push returns
    /// false once no more entries are needed. `weight` is the memory that an entry takes.
    ///
    /// While the source does not answer, other imports need not wait for this one.
    pub(super) fn stream<T: Send, R: Send>(
        &mut self,
        read: impl FnOnce(&mut dyn FnMut(T) -> bool) -> R + Send,
        weight: impl Fn(&T) -> usize + Send,
        mut take: impl FnMut(&mut Self, T) -> Result<(), IngestError>,
    ) -> Result<R, IngestError> {
        let (sender, receiver) = channel::bounded(QUEUE_BYTES);
        let read = thread::scope(|scope| {
            let reading = scope.spawn(move || {
                read(&mut |entry| {
                    let weight = weight(&entry);
                    sender.send_sized(entry, weight).is_ok()
                })
            });
            let taken = loop {
                let next = match receiver.recv_timeout(IDLE) {
                    Received::Item(entry) => {
                        let taken = self.writer.session.check_cancelled().and_then(|()| take(self, entry));
                        taken.map(|()| self.show_progress())
                    }
                    Received::TimedOut => self.idle(),
                    Received::End => break Ok(()),
                };
                if next.is_err() {
                    break next;
                }
            };
            // Once the receiver is dropped, the next push returns false.
            drop(receiver);
            let read = reading.join().map_err(|_| IngestError::Panicked)?;
            taken.map(|()| read)
        })?;
        self.writer.session.check_cancelled()?;
        Ok(read)
    }

    /// Runs `work`, which reads from the source or examines much of it, on a separate thread and returns its result.
    pub(super) fn aside<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> Result<T, IngestError> {
        self.stream(|_: &mut dyn FnMut(()) -> bool| work(), |()| 0, |_, ()| Ok(()))
    }

    /// Lets other imports write, and reports the progress of this one.
    fn idle(&mut self) -> Result<(), IngestError> {
        self.writer.yield_lock(self.record)?;
        self.show_progress();
        Ok(())
    }
}

/// A document whose bytes are counted as they are read.
pub(super) struct Counted<'b> {
    document: SourceText<'b>,
    read: Arc<AtomicU64>,
}

impl<'b> Counted<'b> {
    /// Opens the file `name` of `bundle`; the bytes read are added to `read`.
    pub(super) fn new(bundle: &'b Bundle, name: &'b str, read: &Arc<AtomicU64>) -> Self {
        Self { document: SourceText::new(bundle, name), read: Arc::clone(read) }
    }
}

impl TextSource for Counted<'_> {
    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(CountedReader { input: self.document.reader()?, read: &self.read }))
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        self.document.read_at(offset, length)
    }
}

struct CountedReader<'t> {
    input: Box<dyn Read + 't>,
    read: &'t AtomicU64,
}

impl Read for CountedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
