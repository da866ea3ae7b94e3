//! Change files, encrypted with age to the store that is to read them.
//!
//! A store's key for them follows from the key of its series, so there is no second key to store or to lose: only the holder of the
//! series' key can read what is written for it.

use std::{
    collections::BTreeSet,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    str::FromStr as _,
};

use age::{
    secrecy::{ExposeSecret as _, SecretString},
    x25519,
};
use bech32::{Bech32, Hrp};
use satchel_merge::body::attachment_hashes;
use satchel_pam::hash::Sha256Digest;
use satchel_source::envelope::{DecryptionKeys, EnvelopeOpenError, ExportEncryption};
use satchel_store::{BlobReader, Store};
use satchel_sync::{
    Frontier, SignedChange, SigningKey,
    change_file::{self, ChangeFileError, ChangeFileHeader, ChangeFileVisitor, ChangeFileWriter, MAX_WANTED},
};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{FileReferences, RecordFilter, Sync, SyncError, UNREADABLE, files::MAX_FILE_BYTES};
use crate::{
    provenance::PurgeRecord,
    series::{
        SeriesStoreError, entries,
        large::{self, Content},
        payload::Payload,
    },
};

/// What is hashed before the key of the series, so that the derived key has no other meaning anywhere.
const DERIVATION: &[u8] = b"satchel-sync-change-file-key-v1\0";
/// The human-readable part of an age identity.
const IDENTITY_PREFIX: &str = "age-secret-key-";
/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Which changes to write, and for whom.
#[derive(Clone, Debug)]
pub struct NewChangeFile {
    /// The receiver: what [`Sync::file_recipient`] returns there.
    pub recipient: String,
    /// Which changes the receiver has. What follows is written.
    pub base: Frontier,
    /// Files that the receiver lacks, besides those that the written changes refer to.
    pub wanted: BTreeSet<Sha256Digest>,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenChangeFile {
    /// Changes.
    pub changes: u64,
    /// Files of attachments.
    pub files: u64,
}

/// Why a change file cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeFileFailure {
    /// The recipient is no age key.
    #[error("the key of the receiver is no age recipient")]
    Recipient,
    /// It is encrypted to another store.
    #[error(
        "it is not encrypted for this store; write it with `satchel sync export FILE --for PEER`, where PEER is this machine. If this store was restored or set back, exchange changes with the peer over the network first"
    )]
    NotForThisStore,
    /// It was changed or cut after it was encrypted, or was never a file of changes.
    #[error("it is damaged, cut or no file of changes; copy it again")]
    Damaged,
    /// What is encrypted is no change file.
    #[error(transparent)]
    File(#[from] ChangeFileError),
    /// The file could not be read or written.
    #[error("the file cannot be read or written")]
    Io(#[from] io::Error),
    /// An error of the store.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

impl Sync {
    /// Returns the age recipient to which change files for this store are encrypted.
    ///
    /// # Errors
    /// [`SyncError::NotBegun`], or when the key of the series is not known.
    pub fn file_recipient(&self) -> Result<String, SyncError> {
        Ok(identity_of(&self.own_key()?).ok_or(UNREADABLE)?.to_public().to_string())
    }

    /// Writes the changes that a store lacks, with the payloads that `filter` includes and the files of attachments to which these refer, into
    /// `sink`.
    ///
    /// # Errors
    /// When the store cannot be read, or `sink` fails. The file is unusable then.
    pub fn write_change_file(
        &self,
        new: &NewChangeFile,
        filter: Option<&dyn RecordFilter>,
        sink: impl Write,
    ) -> Result<WrittenChangeFile, ChangeFileFailure> {
        let key = self.own_key()?;
        let mut header = self.header_of(new)?;
        let mut digests = new.wanted.clone();
        if let Some(filter) = filter {
            header.frontier = self.applied_frontier()?;
            let mut references = FileReferences::default();
            self.read_file_references(&mut references)?;
            let includes = |digest: &Sha256Digest| self.includes_file(&references, digest, filter, None);
            header.wanted = only(header.wanted, includes)?;
            digests = only(digests, includes)?;
        }
        let encryption = ExportEncryption::parse(std::slice::from_ref(&new.recipient), None);
        let encryption = encryption.ok().flatten().ok_or(ChangeFileFailure::Recipient)?;
        let encrypted = encryption.encrypt(BufWriter::with_capacity(BUFFER_BYTES, sink))?;
        let mut writer = ChangeFileWriter::begin(encrypted, &header)?;
        let changes = self.push_changes(&mut writer, (&header, filter), &mut digests)?;
        let files = self.push_files(&mut writer, digests)?;
        writer.finish(&key)?.finish()?.flush()?;
        Ok(WrittenChangeFile { changes, files })
    }

    fn header_of(&self, new: &NewChangeFile) -> Result<ChangeFileHeader, SyncError> {
        let own = entries::own(self.0.store())?.ok_or(SyncError::NotBegun)?;
        let series = entries::series(self.0.store(), own)?.ok_or(UNREADABLE)?;
        Ok(ChangeFileHeader {
            sender: *series.key(),
            receiver: new.recipient.clone(),
            created_at: new.created_at,
            frontier: self.frontier()?,
            base: new.base.clone(),
            wanted: self.wanted_files(new.created_at)?,
        })
    }

    /// Writes the changes between the base and the frontier of `header`, and collects the files to which they refer. Returns the number of
    /// the changes.
    fn push_changes(
        &self,
        writer: &mut ChangeFileWriter<impl Write>,
        (header, filter): (&ChangeFileHeader, Option<&dyn RecordFilter>),
        digests: &mut BTreeSet<Sha256Digest>,
    ) -> Result<u64, ChangeFileFailure> {
        let (mut written, mut outcome) = (0, Ok(()));
        let mut push = |change: SignedChange| {
            digests.extend(files_of_change(self.0.store(), &change)?);
            writer.push(&change)?;
            written += 1;
            Ok::<_, ChangeFileFailure>(())
        };
        self.changes_after(&header.base, filter, |change| {
            // What was added since the header was written belongs to the next file.
            if header.frontier.contains(change.change().origin, change.change().counter) {
                outcome = push(change);
            }
            outcome.is_ok()
        })?;
        outcome.map(|()| written)
    }

    /// Writes those of the files that the store has; returns their number.
    fn push_files(
        &self,
        writer: &mut ChangeFileWriter<impl Write>,
        digests: BTreeSet<Sha256Digest>,
    ) -> Result<u64, ChangeFileFailure> {
        let mut written = 0;
        for digest in self.without_erased(digests)? {
            if let Some((mut file, length)) = self.intact_file(digest)? {
                writer.push_file(digest, length, &mut file)?;
                written += 1;
            }
        }
        Ok(written)
    }

    /// Reads a whole change file, and returns what it says about itself. Nothing is stored.
    ///
    /// # Errors
    /// It is not for this store, was changed since its sender signed it, or cannot be read.
    pub fn check_change_file(&self, source: impl Read + Seek) -> Result<ChangeFileHeader, ChangeFileFailure> {
        let mut check = Check(None);
        self.read_change_file(source, &mut check)?;
        check.0.ok_or_else(|| UNREADABLE.into())
    }

    /// Passes the contents of a change file to `visitor`.
    ///
    /// # Errors
    /// As [`Sync::check_change_file`], or an error of `visitor`.
    pub fn read_change_file<V: ChangeFileVisitor<Error: From<ChangeFileFailure>>>(
        &self,
        source: impl Read + Seek,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        let identity = identity_of(&self.own_key().map_err(ChangeFileFailure::from)?);
        let identity = identity.ok_or(ChangeFileFailure::Sync(UNREADABLE))?;
        let recipient = identity.to_public().to_string();
        let text = identity.to_string().expose_secret().to_owned();
        let keys = DecryptionKeys::parse(&[text], None).map_err(|_| ChangeFileFailure::Sync(UNREADABLE))?;
        let source = BufReader::with_capacity(BUFFER_BYTES, source);
        let decrypted = keys.open(source).map_err(|error| match error {
            EnvelopeOpenError::NoMatchingKey(_) => ChangeFileFailure::NotForThisStore,
            EnvelopeOpenError::Damaged => ChangeFileFailure::Damaged,
            EnvelopeOpenError::Read(error) => error.into(),
        })?;
        let decrypted = Decrypted(BufReader::with_capacity(BUFFER_BYTES, decrypted));
        change_file::read(decrypted, &mut Addressed { visitor, recipient })
    }

    /// Opens a file whose bytes are those of its digest. One that is damaged is left out, as it would make the change file unusable.
    fn intact_file(&self, digest: Sha256Digest) -> Result<Option<(BlobReader, u64)>, SyncError> {
        let Some(mut file) = self.0.store().blob_open(digest.as_bytes())? else { return Ok(None) };
        let mut hasher = HashWriter(Sha256::new());
        let intact = file.length().is_ok_and(|length| length <= MAX_FILE_BYTES)
            && io::copy(&mut file, &mut hasher).is_ok()
            && hasher.0.finalize().as_slice() == digest.as_bytes();
        if !intact {
            tracing::error!(%digest, "the file of an attachment is damaged, and is not in the file of changes");
            return Ok(None);
        }
        file.seek(0);
        Ok(file.length().ok().map(|length| (file, length)))
    }

    /// Returns digests of files that the store lacks, in ascending order: other ones each time if there are more than a file can name.
    fn wanted_files(&self, now: i64) -> Result<Vec<Sha256Digest>, SyncError> {
        let mut missing: Vec<Sha256Digest> = self.missing_files()?.into_iter().collect();
        if missing.len() > MAX_WANTED {
            let start = usize::try_from(now.unsigned_abs()).unwrap_or_default() % missing.len();
            missing.rotate_left(start);
            missing.truncate(MAX_WANTED);
            missing.sort_unstable();
        }
        Ok(missing)
    }

    fn own_key(&self) -> Result<SigningKey, SyncError> {
        let own = entries::own(self.0.store())?.ok_or(SyncError::NotBegun)?;
        self.0.series_key().get().ok_or(SyncError::Series(SeriesStoreError::NoKey(own)))
    }

    /// Leaves out the files that an erasure has, which may still be on the disk.
    fn without_erased(
        &self,
        mut digests: BTreeSet<Sha256Digest>,
    ) -> Result<BTreeSet<Sha256Digest>, SyncError> {
        for record in PurgeRecord::pending(self.0.store())? {
            for digest in record.attachment_digests() {
                digests.remove(&digest);
            }
        }
        Ok(digests)
    }
}

/// Derives the age identity of a store from the key of its series.
fn identity_of(key: &SigningKey) -> Option<x25519::Identity> {
    let seed = Zeroizing::new(key.to_bytes());
    let secret = Sha256::new().chain_update(DERIVATION).chain_update(*seed).finalize();
    let text = bech32::encode_upper::<Bech32>(Hrp::parse(IDENTITY_PREFIX).ok()?, &secret).ok()?;
    let text = SecretString::from(text);
    x25519::Identity::from_str(text.expose_secret()).ok()
}

/// Returns the digests of the files to which a reported conversation refers.
fn files_of_change(store: &Store, change: &SignedChange) -> Result<Vec<Sha256Digest>, SyncError> {
    let Content::Present(kind, content) = large::content(store, change)? else { return Ok(Vec::new()) };
    // One that cannot be read has no effect in any store.
    let Ok(Some(Payload::Contribution(report) | Payload::Recording(report))) =
        Payload::decode(kind, &content)
    else {
        return Ok(Vec::new());
    };
    Ok(report.nodes.iter().flat_map(|node| attachment_hashes(node.body.get().as_bytes())).collect())
}

/// Returns those of the digests of which `includes` holds.
fn only<T: IntoIterator<Item = Sha256Digest> + FromIterator<Sha256Digest>>(
    digests: T,
    includes: impl Fn(&Sha256Digest) -> Result<bool, SyncError>,
) -> Result<T, SyncError> {
    let included = |digest: Sha256Digest| Ok(includes(&digest)?.then_some(digest));
    digests.into_iter().filter_map(|digest| included(digest).transpose()).collect()
}

/// Returns whether a text is an age recipient, as [`Sync::file_recipient`] returns it.
#[must_use]
pub fn is_file_recipient(text: &str) -> bool {
    x25519::Recipient::from_str(text).is_ok()
}

/// Hashes what is written to it.
struct HashWriter(Sha256);

impl Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces the errors of `age` for bytes that were not encrypted by it.
struct Decrypted<R>(R);

impl<R: Read> Read for Decrypted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damaged = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::InvalidData, "it is damaged or cut; copy it again")
            }
            _ => error,
        };
        self.0.read(buffer).map_err(damaged)
    }
}

/// Takes nothing but the header.
struct Check(Option<ChangeFileHeader>);

impl ChangeFileVisitor for Check {
    type Error = ChangeFileFailure;

    fn header(&mut self, header: &ChangeFileHeader) -> Result<(), ChangeFileFailure> {
        self.0 = Some(header.clone());
        Ok(())
    }

    fn change(&mut self, _change: SignedChange) -> Result<(), ChangeFileFailure> {
        Ok(())
    }

    fn file(
        &mut self,
        _digest: Sha256Digest,
        _length: u64,
        _source: &mut dyn Read,
    ) -> Result<(), ChangeFileFailure> {
        Ok(())
    }
}

/// Passes on only what was signed for this store.
struct Addressed<'a, V> {
    visitor: &'a mut V,
    recipient: String,
}

impl<V: ChangeFileVisitor<Error: From<ChangeFileFailure>>> ChangeFileVisitor for Addressed<'_, V> {
    type Error = V::Error;

    fn header(&mut self, header: &ChangeFileHeader) -> Result<(), V::Error> {
        if header.receiver != self.recipient {
            return Err(ChangeFileFailure::NotForThisStore.into());
        }
        self.visitor.header(header)
    }

    fn change(&mut self, change: SignedChange) -> Result<(), V::Error> {
        self.visitor.change(change)
    }

    fn file(&mut self, digest: Sha256Digest, length: u64, source: &mut dyn Read) -> Result<(), V::Error> {
        self.visitor.file(digest, length, source)
    }
}
