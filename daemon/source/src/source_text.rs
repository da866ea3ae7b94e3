//! A document of a source, read piece by piece.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt as _,
};

use satchel_pam::parse::TextSource;

use super::{Bundle, beneath, location::FileLocation};
use crate::FileSet as _;

/// A file of a source as a text that may be too long for memory.
pub struct SourceText<'b> {
    bundle: &'b Bundle,
    name: &'b str,
    /// The open file, if it is an uncompressed file of a folder.
    file: RefCell<Option<File>>,
}

impl<'b> SourceText<'b> {
    /// Creates the document for the file `name` of `bundle`.
    #[must_use]
    pub fn new(bundle: &'b Bundle, name: &'b str) -> Self {
        Self { bundle, name, file: RefCell::new(None) }
    }
}

impl TextSource for SourceText<'_> {
    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        let reader = self.bundle.open(self.name, 0)?;
        Ok(reader)
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let place = match self.bundle.locations.get(self.name) {
            Some(FileLocation::Plain(place, _)) => place,
            Some(FileLocation::Stored(file)) => {
                let mut bytes = vec![0; length];
                file.at(offset).read_exact(&mut bytes)?;
                return Ok(Some(bytes));
            }
            Some(FileLocation::Appended(..) | FileLocation::Packed(..) | FileLocation::Unpacked(..))
            | None => return Ok(None),
        };
        let mut file = self.file.borrow_mut();
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(beneath::open_file(&self.bundle.base, place)?),
        };
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes))
    }
}
