//! The import `files`: names and readers.

use wasmtime::component::Resource;

use super::{Failure, Reader};
use crate::{
    bindings::satchel::importer::{files as wit, types},
    error::ErrorKind,
    limits::MIB,
    run::State,
};

/// Largest read, in bytes. Reads of 64 to 256 KiB are fastest; larger ones only cost memory.
const MAX_READ: usize = MIB;

type Answer<T> = wasmtime::Result<Result<T, types::ImportError>>;

impl types::Host for State {}

impl wit::Host for State {
    fn list_files(&mut self) -> wasmtime::Result<Vec<wit::Entry>> {
        let entries = self.library.entries().iter();
        Ok(entries.map(|entry| wit::Entry { path: entry.path.clone(), size: entry.size }).collect())
    }
}

impl wit::HostReader for State {
    fn open(&mut self, path: String) -> Answer<Resource<Reader>> {
        match self.library.open(&path) {
            Ok(reader) => Ok(self.hold(reader)),
            Err(failure) => Ok(Err(failure_to_wit(failure))),
        }
    }

    fn size(&mut self, reader: Resource<Reader>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&reader)?.size())
    }

    fn read(&mut self, reader: Resource<Reader>, len: u32) -> Answer<Vec<u8>> {
        if self.stopping() {
            return Ok(Err(stopped()));
        }
        let Self { table, library, clock, .. } = self;
        let reader = table.get_mut(&reader)?;
        let len = usize::try_from(len).unwrap_or(MAX_READ).min(MAX_READ);
        if len == 0 {
            return Ok(Ok(Vec::new()));
        }
        Ok(clock.read(|| library.read(reader, len)).map_err(failure_to_wit))
    }

    fn seek(&mut self, reader: Resource<Reader>, offset: u64) -> Answer<()> {
        self.table.get_mut(&reader)?.seek(offset);
        Ok(Ok(()))
    }

    fn drop(&mut self, reader: Resource<Reader>) -> wasmtime::Result<()> {
        self.table.delete(reader)?;
        Ok(())
    }
}

impl State {
    fn hold<T: Send + 'static>(&mut self, resource: T) -> Result<Resource<T>, types::ImportError> {
        self.table.push(resource).map_err(|_| {
            let message = "too many files are open at once; close some first".to_owned();
            failure_to_wit(Failure { kind: ErrorKind::Limit, message, locator: None })
        })
    }
}

fn stopped() -> types::ImportError {
    types::ImportError {
        kind: types::ErrorKind::Cancelled,
        message: "the host asked to stop".to_owned(),
        locator: None,
    }
}

fn failure_to_wit(failure: Failure) -> types::ImportError {
    let Failure { kind, message, locator } = failure;
    let kind = match kind {
        ErrorKind::NotThisFormat => types::ErrorKind::NotThisFormat,
        ErrorKind::UnsupportedVersion => types::ErrorKind::UnsupportedVersion,
        ErrorKind::Malformed => types::ErrorKind::Malformed,
        ErrorKind::Limit => types::ErrorKind::Limit,
        ErrorKind::Io => types::ErrorKind::Io,
        ErrorKind::Cancelled => types::ErrorKind::Cancelled,
        ErrorKind::Internal => types::ErrorKind::Internal,
    };
    types::ImportError { kind, message, locator }
}
