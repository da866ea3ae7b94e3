//! The audit log: which device called which method, and how the call ended, without any content.
//!
//! `audit.jsonl` has one JSON object a line. At 4 MiB it is renamed to `audit.jsonl.1`; the three files before it stay.
//! Entries are buffered and not synced one by one: a power cut may lose the last ones.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{error::DevicesError, files};

const FILE: &str = "audit.jsonl";
/// Size at which a file is rotated, in bytes: about twenty thousand calls.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Files that are kept, the current one included.
const FILES: usize = 4;
/// Longest text of a field that is stored, in characters.
const MAX_FIELD_CHARS: usize = 200;

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it ended, in microseconds since the Unix epoch.
    pub at: i64,
    /// The id of the device; empty for a caller that is not paired.
    pub device_id: String,
    /// The name of the device at that time.
    pub device_name: String,
    /// The address from which it called.
    pub address: String,
    /// The method that it called.
    pub method: String,
    /// The gRPC status code of the answer; 0 is OK.
    pub code: i32,
    /// How long the call took, in milliseconds.
    pub millis: u64,
    /// How many records were answered, for methods that answer records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
    /// Lines that were read and are damaged, for example by a power cut.
    pub damaged: u64,
}

/// The log of a data directory. One process at a time opens it.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    max_bytes: u64,
    /// Guards the current file.
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    file: BufWriter<File>,
    bytes: u64,
}

impl AuditLog {
    /// Opens the log in `dir`, which is created if needed.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, DevicesError> {
        Self::open_with(dir, MAX_FILE_BYTES)
    }

    /// Adds an entry. It is buffered: [`Self::flush`] passes it on to the operating system.
    ///
    /// # Errors
    /// The file cannot be written or rotated.
    pub fn append(&self, entry: AuditEntry) -> Result<(), DevicesError> {
        let mut line = serde_json::to_vec(&shortened(entry)).map_err(|error| self.io(error.into()))?;
        line.push(b'\n');
        let mut current = self.lock();
        if current.bytes > 0 && current.bytes.saturating_add(line.len() as u64) > self.max_bytes {
            self.rotate(&mut current).map_err(|error| self.io(error))?;
        }
        current.file.write_all(&line).map_err(|error| self.io(error))?;
        current.bytes = current.bytes.saturating_add(line.len() as u64);
        Ok(())
    }

    /// Passes buffered entries on to the operating system.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&self) -> Result<(), DevicesError> {
        self.lock().file.flush().map_err(|error| self.io(error))
    }

    /// Returns at most `limit` entries, the newest first, of one device if its id is given. Damaged lines are skipped
    /// and counted.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn list(&self, device_id: Option<&str>, limit: usize) -> Result<AuditPage, DevicesError> {
        // Held while reading, so that no file is rotated meanwhile. The files have 16 MiB at most.
        let mut current = self.lock();
        current.file.flush().map_err(|error| self.io(error))?;
        let mut page = AuditPage::default();
        for number in 0..FILES {
            let path = self.numbered(number);
            if page.entries.len() >= limit {
                break;
            }
            // A line may be longer than the limit, so that a file is.
            let most = self.max_bytes.saturating_mul(2);
            let bytes = files::read_limited(&path, most).map_err(DevicesError::io(&path))?;
            collect(&bytes.unwrap_or_default(), device_id, limit, &mut page);
        }
        Ok(page)
    }

    fn open_with(dir: &Path, max_bytes: u64) -> Result<Self, DevicesError> {
        files::create_private_folder(dir).map_err(DevicesError::io(dir))?;
        let path = dir.join(FILE);
        let current = open_current(&path).map_err(DevicesError::io(&path))?;
        Ok(Self { path, max_bytes, current: Mutex::new(current) })
    }

    fn rotate(&self, current: &mut Current) -> io::Result<()> {
        current.file.flush()?;
        for number in (0..FILES.saturating_sub(1)).rev() {
            match fs::rename(self.numbered(number), self.numbered(number.saturating_add(1))) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed?,
            }
        }
        *current = open_current(&self.path)?;
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        match number {
            0 => self.path.clone(),
            number => self.path.with_extension(format!("jsonl.{number}")),
        }
    }

    fn io(&self, error: io::Error) -> DevicesError {
        DevicesError::io(&self.path)(error)
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_current(path: &Path) -> io::Result<Current> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    let mut last = [b'\n'];
    if bytes > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let mut file = BufWriter::new(file);
    // An entry that a power cut left unfinished does not spoil the next one.
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(Current { file, bytes })
}

fn collect(bytes: &[u8], device_id: Option<&str>, limit: usize, page: &mut AuditPage) {
    for line in bytes.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if page.entries.len() >= limit {
            return;
        }
        match serde_json::from_slice::<AuditEntry>(line) {
            Ok(entry) if device_id.is_none_or(|id| entry.device_id == id) => page.entries.push(entry),
            Ok(_) => {}
            Err(_) => page.damaged = page.damaged.saturating_add(1),
        }
    }
}

fn shortened(mut entry: AuditEntry) -> AuditEntry {
    let AuditEntry { device_id, device_name, address, method, .. } = &mut entry;
    for field in [device_id, device_name, address, method] {
        if let Some((end, _)) = field.char_indices().nth(MAX_FIELD_CHARS) {
            field.truncate(end);
        }
    }
    entry
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn entry(at: i64, device: &str) -> AuditEntry {
        AuditEntry {
            at,
            device_id: device.to_owned(),
            device_name: "phone".to_owned(),
            address: "192.168.1.7:50000".to_owned(),
            method: "/satchel.v1.MemoryService/ListMemories".to_owned(),
            code: 0,
            millis: 3,
            records: Some(50),
        }
    }

    fn times(log: &AuditLog, device: Option<&str>, limit: usize) -> Vec<i64> {
        log.list(device, limit).unwrap().entries.iter().map(|entry| entry.at).collect()
    }

    #[test]
    fn entries_are_listed_newest_first_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::open(dir.path()).unwrap();
        for at in 0..6 {
            log.append(entry(at, if at % 2 == 0 { "a" } else { "b" })).unwrap();
        }
        assert_eq!(times(&log, None, 4), [5, 4, 3, 2]);
        drop(log);
        let log = AuditLog::open(dir.path()).unwrap();
        log.append(entry(6, "a")).unwrap();
        assert_eq!(times(&log, Some("a"), 100), [6, 4, 2, 0]);
        assert_eq!(times(&log, Some("c"), 100), [0; 0]);
        assert_eq!(log.list(None, 1).unwrap().entries, [entry(6, "a")]);
        let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn four_files_are_kept_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let line = serde_json::to_vec(&entry(100, "a")).unwrap().len() as u64 + 1;
        let log = AuditLog::open_with(dir.path(), line * 10).unwrap();
        for at in 100..200 {
            log.append(entry(at, "a")).unwrap();
        }
        assert_eq!(times(&log, None, 1_000), (160..200).rev().collect::<Vec<_>>());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), FILES);
        for file in fs::read_dir(dir.path()).unwrap() {
            assert!(file.unwrap().metadata().unwrap().len() <= line * 10);
        }
    }

    #[test]
    fn damaged_lines_are_skipped_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::open(dir.path()).unwrap();
        log.append(entry(1, "a")).unwrap();
        drop(log);
        let path = dir.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(b"\xff\xfe\n{\"at\": 7");
        fs::write(&path, bytes).unwrap();
        let log = AuditLog::open(dir.path()).unwrap();
        log.append(entry(2, "a")).unwrap();
        let page = log.list(None, 10).unwrap();
        assert_eq!((page.entries, page.damaged), (vec![entry(2, "a"), entry(1, "a")], 2));
    }

    #[test]
    fn long_texts_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::open(dir.path()).unwrap();
        log.append(AuditEntry { method: "ä".repeat(100_000), ..entry(1, "a") }).unwrap();
        assert_eq!(log.list(None, 1).unwrap().entries[0].method, "ä".repeat(MAX_FIELD_CHARS));
    }
}
