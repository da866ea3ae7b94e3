//! Reads the directory of a ZIP and rejects archives that are damaged or misleading.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use age::stream::StreamReader;
use zip::{CompressionMethod, result::ZipError};

use super::{Limits, ReadAt, SourceError, open_files::ReopenedFile, read_at::sought};
use crate::{
    envelope::EnvelopeOpenError,
    names::{BACKUP_MANIFEST as BACKUP, system_file},
    zip_directory,
};

/// The first bytes of a ZIP with entries, and of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// An opened file, or a part of one, that is shared by many readers, each with its own position.
#[derive(Clone)]
pub(super) struct SharedFile {
    bytes: ByteSource,
    /// The start of the part in the file.
    base: u64,
    position: u64,
    length: u64,
}

/// The source of the bytes.
#[derive(Clone)]
enum ByteSource {
    Plain(Arc<File>),
    /// Opened on demand, because a folder may contain more files than may be open at once.
    Reopened(ReopenedFile),
    /// Not a file of the machine.
    Stored(Arc<dyn ReadAt>),
    /// Decrypted while they are read. The lock guards the stream, which has only one position. `None` after an error,
    /// because the position of the stream is then unknown.
    Encrypted(Arc<Mutex<Option<StreamReader<SharedFile>>>>),
}

impl SharedFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::part(Arc::new(file), 0, length))
    }

    /// Creates a part of `length` bytes that starts at `base`.
    pub(super) fn part(file: Arc<File>, base: u64, length: u64) -> Self {
        Self { bytes: ByteSource::Plain(file), base, position: 0, length }
    }

    /// Creates a file of a folder, which is opened whenever it is read and not open.
    pub(super) fn reopened(file: ReopenedFile) -> Self {
        let length = file.length();
        Self { bytes: ByteSource::Reopened(file), base: 0, position: 0, length }
    }

    /// Creates the content of a file that is not a file of the machine.
    pub(super) fn stored(bytes: Arc<dyn ReadAt>, length: u64) -> Self {
        Self { bytes: ByteSource::Stored(bytes), base: 0, position: 0, length }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the file of a folder, which is reopened for each read, or `None` for a file that stays open.
    pub(super) fn reopened_file(&self) -> Option<&ReopenedFile> {
        match &self.bytes {
            ByteSource::Reopened(file) => Some(file),
            ByteSource::Plain(_) | ByteSource::Stored(_) | ByteSource::Encrypted(_) => None,
        }
    }

    /// Creates the decrypted content of an encrypted file.
    pub(super) fn decrypted(mut stream: StreamReader<Self>) -> io::Result<Self> {
        let length = stream.seek(SeekFrom::End(0))?;
        Ok(Self {
            bytes: ByteSource::Encrypted(Arc::new(Mutex::new(Some(stream)))),
            base: 0,
            position: 0,
            length,
        })
    }

    /// Returns whether none of its bytes may be written to a disk unencrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.bytes, ByteSource::Encrypted(_))
    }

    pub(super) fn at(&self, position: u64) -> Self {
        Self { position, ..self.clone() }
    }
}

impl SharedFile {
    /// Reads bytes from the current position, and none past the end of the part.
    fn read_from(&self, bytes: &dyn ReadAt, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        bytes.read_at(self.base + self.position, &mut buffer[..room])
    }
}

impl Read for SharedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &self.bytes {
            ByteSource::Plain(file) => self.read_from(&**file, buffer)?,
            ByteSource::Stored(bytes) => self.read_from(&**bytes, buffer)?,
            ByteSource::Reopened(file) => {
                let file = file.get()?;
                self.read_from(&*file, buffer)?
            }
            // Such a stream cannot be positioned past its end.
            ByteSource::Encrypted(_) if self.position >= self.length => 0,
            ByteSource::Encrypted(stream) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                let mut whole = stream.take().ok_or_else(damaged_stream)?;
                whole.seek(SeekFrom::Start(self.position)).map_err(decryption_error)?;
                let read = whole.read(buffer).map_err(decryption_error)?;
                *stream = Some(whole);
                read
            }
        };
        self.position += read as u64;
        Ok(read)
    }
}

fn damaged_stream() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, EnvelopeOpenError::Damaged.to_string())
}

/// Replaces the library's error for bytes that were not encrypted with the key, because its text does not help the
/// user.
fn decryption_error(error: io::Error) -> io::Error {
    let damaged = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof);
    if damaged { damaged_stream() } else { error }
}

impl Seek for SharedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = sought(to, self.position, self.length)?;
        Ok(self.position)
    }
}

/// The location of the bytes of one entry.
#[derive(Clone)]
pub(super) struct PackedEntry {
    pub(super) file: SharedFile,
    pub(super) header_offset: u64,
    pub(super) packed_bytes: u64,
    pub(super) unpacked_bytes: u64,
    pub(super) crc32: u32,
    pub(super) deflated: bool,
}

/// One line of the archive's directory.
pub(super) enum ListedEntry {
    /// A file that can be read.
    File { name: String, packed: PackedEntry },
    /// A file that cannot be read, and why.
    Unread { name: String, reason: &'static str },
}

/// Lists the archive in `file`, whose directory is read through `reader`. Errors name it as `path`.
pub(super) fn list(
    file: SharedFile,
    reader: impl Read + Seek,
    path: &Path,
    limits: &Limits,
) -> Result<Vec<ListedEntry>, SourceError> {
    let damaged = |error: ZipError| list_error(path, error);
    let hostile =
        |problem: &str| SourceError::HostileArchive { path: path.to_owned(), problem: problem.to_owned() };
    let mut archive = match zip_directory::open(reader, limits.entries) {
        Err(error) if zip_directory::too_long(&error) => {
            return Err(SourceError::TooManyFiles { path: path.to_owned(), limit: limits.entries });
        }
        opened => opened.map_err(damaged)?,
    };
    if archive.offset() != 0 {
        return Err(hostile("other data stands before the archive"));
    }
    if archive.has_duplicate_names() {
        return Err(hostile("two entries have the same name"));
    }
    if archive.has_overlapping_entries().map_err(damaged)? {
        return Err(hostile("its entries overlap, as those of a ZIP bomb do"));
    }
    if archive.index_for_name(BACKUP).is_some() {
        return Err(SourceError::Backup { path: path.to_owned() });
    }
    archive.validate_header_consistency().map_err(|error| match error {
        ZipError::Io(_) => damaged(error),
        _ => hostile("its directory and its entries contradict each other; download it again"),
    })?;
    let mut listed = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(damaged)?;
        if let Some(line) = list_entry(&entry, &file)? {
            listed.push(line);
        }
    }
    reject_equivalent_names(&listed)
        .map_err(|name| hostile(&format!("two entries differ only in how {name:?} is written")))?;
    Ok(listed)
}

/// Returns why a directory cannot be listed, in words for the user.
fn list_error(path: &Path, error: ZipError) -> SourceError {
    let problem = match error {
        // The library searches for the end of the directory; the data that it points to may be missing.
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            return SourceError::Read { path: path.to_owned(), source: error };
        }
        ZipError::UnsupportedArchive(_) => "it uses what exports do not",
        _ => "the directory at its end is missing or does not read, as in a download that was cut off",
    };
    SourceError::DamagedArchive { name: file_name(path), problem }
}

/// Returns whether these are the first bytes of a ZIP.
pub(super) fn has_zip_magic(head: &[u8]) -> bool {
    ZIP_MAGIC.contains(&head)
}

/// Returns the name of a file, for messages.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn list_entry(
    entry: &zip::read::ZipFile<'_, impl Read>,
    file: &SharedFile,
) -> Result<Option<ListedEntry>, SourceError> {
    let name = match entry.name() {
        Ok(name) => name.into_owned(),
        Err(_) => String::from_utf8_lossy(entry.name_raw()).into_owned(),
    };
    if entry.is_dir() || name.split('/').any(system_file) {
        return Ok(None);
    }
    let unread = |reason| Ok(Some(ListedEntry::Unread { name: name.clone(), reason }));
    if !safe_name(&name) {
        return unread("its name points outside of the archive");
    }
    if entry.encrypted() {
        return unread("it is encrypted; unpack the archive with its password and import the folder");
    }
    if entry.is_symlink() {
        return unread("symbolic links are not followed");
    }
    let deflated = match entry.compression() {
        CompressionMethod::Stored => false,
        CompressionMethod::Deflated => true,
        _ => {
            return unread(
                "it is packed by a method that exports do not use; unpack the archive and import the folder",
            );
        }
    };
    let packed = PackedEntry {
        file: file.clone(),
        header_offset: entry.header_start(),
        packed_bytes: entry.compressed_size(),
        unpacked_bytes: entry.size(),
        crc32: entry.crc32(),
        deflated,
    };
    Ok(Some(ListedEntry::File { name, packed }))
}

/// Returns whether a name could serve as a relative path. It is never used as one, but any other name has no honest
/// purpose.
fn safe_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\0', '\\'])
        && name.as_bytes().get(1) != Some(&b':')
        && name.split('/').all(|part| part != ".." && part != ".")
}

/// Rejects two names that a file system may treat as one: with these, an archive could show different files to
/// different readers.
fn reject_equivalent_names(listed: &[ListedEntry]) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for line in listed {
        if let ListedEntry::File { name, .. } = line
            && !seen.insert(satchel_pam::text::normalise(name))
        {
            return Err(name.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Write as _;

    use age::{Encryptor, Recipient, x25519};

    use super::*;
    use crate::envelope::DecryptionKeys;

    /// The chunk size of `age`.
    const CHUNK: usize = 64 << 10;

    /// Returns `bytes` in a file that was encrypted, with the byte at `flipped` changed.
    fn encrypted_file(bytes: &[u8], flipped: Option<usize>) -> io::Result<SharedFile> {
        let identity = x25519::Identity::generate();
        let recipient = identity.to_public();
        let mut encrypted = Vec::new();
        let encryptor = Encryptor::with_recipients(std::iter::once(&recipient as &dyn Recipient)).unwrap();
        let mut writer = encryptor.wrap_output(&mut encrypted).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap();
        if let Some(at) = flipped {
            let at = encrypted.len() - bytes.len() + at;
            encrypted[at] ^= 1;
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&encrypted)?;
        file.rewind()?;
        let secret = age::secrecy::ExposeSecret::expose_secret(&identity.to_string()).to_owned();
        let file = SharedFile::new(file).unwrap();
        SharedFile::decrypted(DecryptionKeys::parse(&[secret], None).unwrap().open(file).unwrap())
    }

    #[test]
    fn readers_of_one_encrypted_file_have_independent_positions() {
        for length in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
            let file = encrypted_file(&bytes, None).unwrap();
            let (mut one, mut other) = (file.at(0), file.at(length as u64 / 2));
            let mut all = [Vec::new(), Vec::new()];
            let mut piece = vec![0; 9_000];
            loop {
                let read = [one.read(&mut piece).unwrap(), 0];
                all[0].extend_from_slice(&piece[..read[0]]);
                let read = [read[0], other.read(&mut piece).unwrap()];
                all[1].extend_from_slice(&piece[..read[1]]);
                if read == [0, 0] {
                    break;
                }
            }
            assert!(all[0] == bytes && all[1] == bytes[length / 2..], "{length}");
            for past in [length, length + 1, length + CHUNK] {
                assert_eq!(file.at(past as u64).read(&mut piece).unwrap(), 0, "{length} {past}");
            }
        }
    }

    #[test]
    fn after_a_changed_byte_nothing_of_the_file_is_read() {
        let bytes = vec![7; 3 * CHUNK];
        let file = encrypted_file(&bytes, Some(CHUNK + 100)).unwrap();
        let mut all = Vec::new();
        let error = file.at(0).read_to_end(&mut all).unwrap_err().to_string();
        assert!(error.contains("damaged or cut; copy it again"), "{error}");
        assert!(all.len() <= CHUNK && all.iter().all(|byte| *byte == 7));
        assert!(file.at(2 * CHUNK as u64).read(&mut [0; 9]).is_err(), "nobody knows where the stream is");
    }
}
