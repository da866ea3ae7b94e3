//! The import `files`: names and readers.

use wasmtime::component::Resource;

use super::{FileReader, ReadFailure};
use crate::{
    bindings::satchel::importer::{files as wit, types},
    error::PluginErrorKind,
    limits::MIB,
    run::CallState,
};

/// Largest read, in bytes. Reads of 64 to 256 KiB are fastest; larger ones only cost memory.
const MAX_READ_BYTES: usize = MIB;

type WitResult<T> = wasmtime::Result<Result<T, types::ImportError>>;

impl types::Host for CallState {}

impl wit::Host for CallState {
    fn list_files(&mut self) -> wasmtime::Result<Vec<wit::Entry>> {
        let entries = self.files.entries().iter();
        Ok(entries.map(|entry| wit::Entry { path: entry.path.clone(), size: entry.size }).collect())
    }
}

impl wit::HostReader for CallState {
    fn open(&mut self, path: String) -> WitResult<Resource<FileReader>> {
        match self.files.open(&path) {
            Ok(reader) => Ok(self.add_resource(reader)),
            Err(failure) => Ok(Err(failure_to_wit(failure))),
        }
    }

    fn size(&mut self, reader: Resource<FileReader>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&reader)?.size())
    }

    fn read(&mut self, reader: Resource<FileReader>, len: u32) -> WitResult<Vec<u8>> {
        if self.stopping() {
            return Ok(Err(stopped()));
        }
        let Self { table, files, clock, .. } = self;
        let reader = table.get_mut(&reader)?;
        let len = usize::try_from(len).unwrap_or(MAX_READ_BYTES).min(MAX_READ_BYTES);
        if len == 0 {
            return Ok(Ok(Vec::new()));
        }
        Ok(clock.read(|| files.read(reader, len)).map_err(failure_to_wit))
    }

    fn seek(&mut self, reader: Resource<FileReader>, offset: u64) -> WitResult<()> {
        self.table.get_mut(&reader)?.seek(offset);
        Ok(Ok(()))
    }

    fn drop(&mut self, reader: Resource<FileReader>) -> wasmtime::Result<()> {
        self.table.delete(reader)?;
        Ok(())
    }
}

impl CallState {
    fn add_resource<T: Send + 'static>(&mut self, resource: T) -> Result<Resource<T>, types::ImportError> {
        self.table.push(resource).map_err(|_| {
            let message = "too many files are open at once; close some first".to_owned();
            failure_to_wit(ReadFailure { kind: PluginErrorKind::Limit, message, locator: None })
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

fn failure_to_wit(failure: ReadFailure) -> types::ImportError {
    let ReadFailure { kind, message, locator } = failure;
    let kind = match kind {
        PluginErrorKind::NotThisFormat => types::ErrorKind::NotThisFormat,
        PluginErrorKind::UnsupportedVersion => types::ErrorKind::UnsupportedVersion,
        PluginErrorKind::Malformed => types::ErrorKind::Malformed,
        PluginErrorKind::Limit => types::ErrorKind::Limit,
        PluginErrorKind::Io => types::ErrorKind::Io,
        PluginErrorKind::Cancelled => types::ErrorKind::Cancelled,
        PluginErrorKind::Internal => types::ErrorKind::Internal,
    };
    types::ImportError { kind, message, locator }
}
