//! Notifications to the service manager: systemd's protocol, as described in `sd_notify(3)`.

use std::{
    ffi::OsStr,
    future::Future,
    io,
    os::unix::{
        ffi::OsStrExt,
        net::{SocketAddr, UnixDatagram},
    },
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// How long a service manager that does not read its socket may block the daemon. It must not be too short, because a busy manager
/// should still learn that we stop.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection to the service manager. Without one, notifications are dropped. Clones share one.
#[derive(Clone, Debug, Default)]
pub struct Supervisor(Option<Arc<NotifySocket>>);

#[derive(Debug)]
struct NotifySocket {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Whether the daemon is ready. A reload before that must not report it as ready.
    ready: AtomicBool,
}

impl Supervisor {
    /// Creates the connection from the address in the manager's variable: a path, or `@` and a name in the abstract
    /// namespace.
    ///
    /// # Errors
    /// An address of another kind, or no socket to send from.
    pub fn connect(address: &OsStr) -> io::Result<Self> {
        let address = parse_address(address)?;
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self(Some(Arc::new(NotifySocket { socket, address, ready: AtomicBool::new(false) }))))
    }

    /// Reports that the daemon accepts calls.
    pub fn ready(&self, status: &str) {
        if let Some(notify) = &self.0 {
            notify.ready.store(true, Ordering::Relaxed);
        }
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Reports that the configuration is being reloaded.
    pub fn reloading(&self) {
        if self.was_ready() {
            let now = clock_gettime(ClockId::Monotonic);
            let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
            self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        }
    }

    /// Reports that the reload is complete.
    pub fn reloaded(&self) {
        if self.was_ready() {
            self.send("READY=1");
        }
    }

    /// Reports what the daemon is doing, in words for `systemctl status`.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// Reports that the daemon stops.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping");
    }

    fn heartbeat(&self) {
        self.send("WATCHDOG=1");
    }

    fn was_ready(&self) -> bool {
        self.0.as_ref().is_some_and(|notify| notify.ready.load(Ordering::Relaxed))
    }

    fn send(&self, message: &str) {
        let Some(notify) = &self.0 else { return };
        if let Err(error) = notify.socket.send_to_addr(message.as_bytes(), &notify.address) {
            // The daemon can run without it; a manager that misses its watchdog notification restarts the daemon.
            tracing::warn!(%error, "cannot notify the service manager");
        }
    }
}

/// Sends the manager two heartbeats in each `limit`, as long as `probe` completes. While it hangs nothing is sent, and
/// the manager restarts the daemon.
pub async fn heartbeat_loop<P: Future<Output = ()>>(
    supervisor: &Supervisor,
    limit: Duration,
    probe: impl Fn() -> P,
) -> ! {
    let every = limit / 2;
    loop {
        let mut probing = pin!(probe());
        if tokio::time::timeout(every, probing.as_mut()).await.is_err() {
            tracing::error!(
                seconds = every.as_secs(),
                "the store does not respond; no heartbeat is sent to the service manager"
            );
            probing.await;
        }
        supervisor.heartbeat();
        tokio::time::sleep(every).await;
    }
}

/// Returns how long the manager waits for a heartbeat before it restarts process `own_pid`; `None` if it does not wait.
pub fn watchdog_timeout(micros: Option<&str>, pid: Option<&str>, own_pid: u32) -> Option<Duration> {
    // Variables that were inherited from a parent contain the parent's process id.
    let ours = pid.is_none_or(|pid| pid.parse() == Ok(own_pid));
    let micros = micros?.parse().ok().filter(|micros| *micros > 0 && ours)?;
    Some(Duration::from_micros(micros))
}

fn parse_address(address: &OsStr) -> io::Result<SocketAddr> {
    let unknown = || io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor an abstract name");
    match address.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(address),
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        _ => Err(unknown()),
    }
}

/// Replaces control characters, because a line break would begin another assignment.
fn one_line(status: &str) -> String {
    status.replace(char::is_control, " ")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{cell::Cell, future, time::Instant};

    use tokio::sync::Notify;

    use super::*;

    /// A short limit keeps the tests short. They wait for events, not for this time to pass.
    const LIMIT: Duration = Duration::from_millis(20);

    fn received(socket: &UnixDatagram) -> Vec<String> {
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 4_096];
        std::iter::from_fn(|| {
            let length = socket.recv(&mut buffer).ok()?;
            Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
        })
        .collect()
    }

    fn manager() -> (tempfile::TempDir, UnixDatagram, Supervisor) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let supervisor = Supervisor::connect(path.as_os_str()).unwrap();
        (folder, socket, supervisor)
    }

    #[test]
    fn each_state_is_one_message() {
        let (_folder, socket, supervisor) = manager();
        supervisor.reloading();
        supervisor.reloaded();
        supervisor.status("opening\nREADY=1");
        supervisor.ready("serving");
        supervisor.reloading();
        supervisor.reloaded();
        supervisor.stopping();
        let mut messages = received(&socket);
        let reloading = messages.remove(2);
        let (word, micros) = reloading.split_once("\nMONOTONIC_USEC=").unwrap();
        assert!(word == "RELOADING=1" && micros.parse::<u64>().unwrap() > 0, "{reloading}");
        assert_eq!(
            messages,
            ["STATUS=opening READY=1", "READY=1\nSTATUS=serving", "READY=1", "STOPPING=1\nSTATUS=stopping"]
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_abstract_socket_name_is_accepted() {
        use std::os::linux::net::SocketAddrExt;

        let name = format!("satchel-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Supervisor::connect(OsStr::new(&format!("@{name}"))).unwrap().status("here");
        assert_eq!(received(&socket), ["STATUS=here"]);
        assert!(Supervisor::connect(OsStr::new("vsock:2:1")).is_err());
    }

    #[test]
    fn a_service_manager_that_ended_does_not_block_the_daemon() {
        let (folder, socket, supervisor) = manager();
        drop((socket, folder));
        supervisor.ready("serving");
        Supervisor::default().ready("nobody asked");
    }

    #[tokio::test]
    async fn no_heartbeat_is_sent_while_the_probe_hangs() {
        let (_folder, socket, supervisor) = manager();
        let (probes, hangs) = (Cell::new(0), Notify::new());
        let probe = || async {
            probes.set(probes.get() + 1);
            if probes.get() > 3 {
                hangs.notify_one();
                future::pending::<()>().await;
            }
        };
        let much_later = async {
            hangs.notified().await;
            tokio::time::sleep(LIMIT * 10).await;
        };
        tokio::select! {
            () = async { heartbeat_loop(&supervisor, LIMIT, probe).await } => {}
            () = much_later => {}
        }
        assert_eq!((received(&socket), probes.get()), (vec!["WATCHDOG=1".to_owned(); 3], 4));
    }

    #[tokio::test]
    async fn a_heartbeat_is_sent_twice_in_each_limit() {
        let (_folder, socket, supervisor) = manager();
        let (begun, probes, enough) = (Instant::now(), Cell::new(0), Notify::new());
        let probe = || async {
            probes.set(probes.get() + 1);
            if probes.get() == 5 {
                enough.notify_one();
                future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = async { heartbeat_loop(&supervisor, LIMIT, probe).await } => {}
            () = enough.notified() => {}
        }
        assert_eq!(received(&socket), ["WATCHDOG=1"; 4]);
        assert!(begun.elapsed() >= LIMIT * 2, "four heartbeats take two limits");
    }

    #[test]
    fn a_watchdog_variable_for_another_process_is_ignored() {
        assert_eq!(watchdog_timeout(Some("60000000"), None, 7), Some(Duration::from_mins(1)));
        assert_eq!(watchdog_timeout(Some("60000000"), Some("7"), 7), Some(Duration::from_mins(1)));
        assert_eq!(watchdog_timeout(Some("60000000"), Some("8"), 7), None);
        assert_eq!(
            (
                watchdog_timeout(None, None, 7),
                watchdog_timeout(Some("0"), None, 7),
                watchdog_timeout(Some("x"), None, 7)
            ),
            (None, None, None)
        );
    }
}
