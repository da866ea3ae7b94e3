//! The program in a pseudo-terminal, and the screen that results from what it writes.

use std::{
    fmt,
    io::{Read as _, Write},
    num::NonZeroU16,
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::Instant,
};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

use crate::home::{LONG, TestHome};

/// Keys as a terminal sends them.
pub(crate) const ENTER: &str = "\r";
pub(crate) const ESCAPE: &str = "\x1b";
pub(crate) const TAB: &str = "\t";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const RIGHT: &str = "\x1b[C";
pub(crate) const CONTROL_C: &str = "\x03";
pub(crate) const CONTROL_E: &str = "\x05";
pub(crate) const CONTROL_F: &str = "\x06";
pub(crate) const CONTROL_T: &str = "\x14";
pub(crate) const CONTROL_U: &str = "\x15";
pub(crate) const CONTROL_Y: &str = "\x19";

/// A program in a pseudo-terminal.
pub(crate) struct Screen {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    program: Box<dyn Child + Send + Sync>,
    output: Arc<Output>,
    reader: JoinHandle<()>,
    /// The settings of the terminal before the program ran.
    settings: String,
}

struct Output {
    state: Mutex<OutputState>,
    changed: Condvar,
}

struct OutputState {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

/// What is left when the program has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Everything that the program wrote.
    pub(crate) bytes: Vec<u8>,
    /// True if the screen shows what was there before the program ran.
    pub(crate) left_full_screen: bool,
    /// True if the terminal has the settings that it had before.
    pub(crate) settings_restored: bool,
    pub(crate) cursor_shown: bool,
}

impl Screen {
    /// Starts the program.
    pub(crate) fn start(
        home: &TestHome,
        words: &[&str],
        size: (u16, u16),
        environment: &[(&str, &str)],
    ) -> Self {
        let pair = native_pty_system().openpty(pty_size(size)).unwrap();
        let plain = home.command(words);
        let mut command = CommandBuilder::new(plain.get_program());
        command.args(plain.get_args());
        command.env_clear();
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap());
        }
        command.env("TERM", "xterm-256color");
        environment.iter().for_each(|(name, value)| command.env(name, value));
        command.cwd(home.path());
        let settings = format!("{:?}", pair.master.get_termios());
        let program = pair.slave.spawn_command(command).unwrap();
        // The end of the output is seen only when nobody else has this side open.
        drop(pair.slave);
        let output = Arc::new(Output {
            state: Mutex::new(OutputState {
                screen: vt100::Parser::new(cells(size.1), cells(size.0), 0),
                bytes: Vec::new(),
                ended: false,
            }),
            changed: Condvar::new(),
        });
        let keys = pair.master.take_writer().unwrap();
        let mut bytes = pair.master.try_clone_reader().unwrap();
        let written = Arc::clone(&output);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // Linux reports the end as an error.
                let count = bytes.read(&mut buffer).unwrap_or(0);
                let mut state = written.state.lock().unwrap();
                state.screen.process(&buffer[..count]);
                state.bytes.extend_from_slice(&buffer[..count]);
                state.ended = count == 0;
                written.changed.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Self { master: pair.master, keys, program, output, reader, settings }
    }

    /// Sends keys or text.
    pub(crate) fn send(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the screen is as it should be, and returns its text.
    pub(crate) fn wait_until(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        let mut state = self.output.state.lock().unwrap();
        loop {
            let text = state.screen.screen().contents();
            if fits(&text) {
                return text;
            }
            let left = LONG.saturating_sub(begun.elapsed());
            assert!(!left.is_zero() && !state.ended, "{what} was not shown:\n{text}");
            state = self.output.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until the screen has all of these texts.
    pub(crate) fn wait_for(&self, texts: &[&str]) -> String {
        self.wait_until(&format!("{texts:?}"), |shown| texts.iter().all(|text| shown.contains(text)))
    }

    /// Waits until the screen has one text and not the other.
    pub(crate) fn wait_for_without(&self, text: &str, absent: &str) -> String {
        let what = format!("{text:?} without {absent:?}");
        self.wait_until(&what, |shown| shown.contains(text) && !shown.contains(absent))
    }

    pub(crate) fn resize(&self, size: (u16, u16)) {
        self.output.state.lock().unwrap().screen.screen_mut().set_size(cells(size.1), cells(size.0));
        self.master.resize(pty_size(size)).unwrap();
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        let id = self.program.process_id().unwrap();
        rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
    }

    /// Waits for the end of the program.
    pub(crate) fn end(mut self) -> Ended {
        let begun = Instant::now();
        let mut state = self.output.state.lock().unwrap();
        while !state.ended {
            let left = LONG.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "the program hangs:\n{}", state.screen.screen().contents());
            state = self.output.changed.wait_timeout(state, left).unwrap().0;
        }
        drop(state);
        self.reader.join().unwrap();
        let status = self.program.wait().unwrap();
        let settings_restored = format!("{:?}", self.master.get_termios()) == self.settings;
        let state = self.output.state.lock().unwrap();
        Ended {
            status,
            bytes: state.bytes.clone(),
            left_full_screen: !state.screen.screen().alternate_screen(),
            settings_restored,
            cursor_shown: !state.screen.screen().hide_cursor(),
        }
    }

    /// Quits, and checks that the terminal is as it was before.
    pub(crate) fn quit(mut self) -> Ended {
        self.send(CONTROL_C);
        let ended = self.end();
        assert!(ended.status.success(), "{ended:?}");
        assert!(ended.restored(), "{ended:?}");
        ended
    }
}

impl Ended {
    pub(crate) fn restored(&self) -> bool {
        self.left_full_screen && self.settings_restored && self.cursor_shown
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, left_full_screen, settings_restored, cursor_shown, .. } = self;
        write!(f, "{status:?}, {left_full_screen} {settings_restored} {cursor_shown}: {}", self.text())
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

fn pty_size((cols, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}
