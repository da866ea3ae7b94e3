//! Opens files that keys and settings are read from, without ever blocking on a pipe.

use std::{fs::File, io, path::Path};

use rustix::fs::{Mode, OFlags};

/// Where the shell places the input of a command, as with `<(…)`.
const SHELL_PIPE_PREFIXES: [&str; 3] = ["/dev/fd", "/dev/stdin", "/proc"];

/// Opens a regular file for reading.
///
/// # Errors
/// The path is a folder, a pipe, a socket or a device, or the file system refuses.
pub fn open(path: &Path) -> io::Result<File> {
    // Without `NONBLOCK`, opening a pipe would block before its type can be checked.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a plain file")) }
}

/// Opens a file like [`open`], or a pipe that the shell opened for this command.
///
/// # Errors
/// As [`open`].
pub fn open_argument(path: &Path) -> io::Result<File> {
    let given = SHELL_PIPE_PREFIXES.iter().any(|place| path.starts_with(place));
    if given { File::open(path) } else { open(path) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{io::Read as _, sync::mpsc, thread, time::Duration};

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_pipe_is_refused_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (done, ended) = mpsc::channel();
        let folder_path = folder.path().to_owned();
        thread::spawn(move || {
            let outcomes = [open(&pipe), open_argument(&pipe), open(&folder_path)];
            done.send(outcomes.map(|outcome| outcome.is_err())).unwrap();
        });
        let outcomes = ended.recv_timeout(Duration::from_mins(1)).expect("the pipe is waited for");
        assert_eq!(outcomes, [true; 3]);
        let file = folder.path().join("file");
        std::fs::write(&file, "key").unwrap();
        let mut text = String::new();
        open_argument(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "key");
    }
}
