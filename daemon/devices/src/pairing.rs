//! Pairing windows: the few minutes in which one new device may join.
//!
//! **Invariant:** a window is redeemed at most once; held by `of_many_threads_exactly_one_redeems_a_window`.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{error::DevicesError, identity::DeviceId, pairing_code::PairingToken, policy::Policy};

/// Wrong tokens that close a window: five tries at 40 random bits.
pub const MAX_TRIES: u32 = 5;
/// Shortest time that a window may stay open.
pub const MIN_TTL: Duration = Duration::from_secs(1);
/// Longest time that a window may stay open.
pub const MAX_TTL: Duration = Duration::from_mins(15);
/// How many windows are remembered, so that the owner's side can still ask how they ended.
const REMEMBERED: usize = 16;

/// Identifies a window to the owner's side. It is not secret and does not help to redeem the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PairingId(u64);

/// 16 hex digits.
impl fmt::Display for PairingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for PairingId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// The reason why no window can be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairingError {
    /// The time is too short or too long.
    #[error("a pairing window stays open for 1 to {} seconds", MAX_TTL.as_secs())]
    Ttl,
    /// The name or the policy cannot be used, or there are no random numbers.
    #[error(transparent)]
    Devices(#[from] DevicesError),
}

/// The token was not accepted. Whether it was wrong, late or used before is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pairing code is wrong, has expired or was used before; ask for a new one")]
pub struct PairingRefused;

/// A window that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWindow {
    /// How the owner's side refers to it.
    pub id: PairingId,
    /// The token, which is known nowhere else: make a [`PairingCode`](crate::PairingCode) and a
    /// [`PairingUri`](crate::PairingUri) of it.
    pub token: PairingToken,
    /// When it closes, in microseconds since the Unix epoch.
    pub expires_at: i64,
}

/// Who opened a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its name, for `paired_by` of the new device.
    pub name: String,
    /// The device that opened it; `None` for the owner on the daemon's machine.
    pub device: Option<DeviceId>,
}

/// The rights of the device that redeems a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The window that was redeemed.
    pub id: PairingId,
    /// The policy of the new device.
    pub policy: Policy,
    /// Its name, if the owner chose one.
    pub name: Option<String>,
    /// Who opened the window.
    pub opener: Opener,
}

/// The state of a window, for the owner's side.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowState {
    /// It waits for a device.
    Open {
        /// When it closes, in microseconds since the Unix epoch.
        expires_at: i64,
        /// Wrong tokens that it still takes.
        tries_left: u32,
    },
    /// A device has sent the token; the device is `None` until [`PairingWindows::record_device`].
    Redeemed {
        /// The new device.
        device: Option<DeviceId>,
    },
    /// Its time is over.
    Expired,
    /// The owner closed it.
    Cancelled,
    /// The owner opened another one.
    Replaced,
    /// Too many wrong tokens were sent. Somebody may be guessing.
    TooManyTries,
}

/// The pairing windows of a running daemon. At most one is open. They are not stored: a restart closes them.
#[derive(Debug, Default)]
pub struct PairingWindows {
    /// Guards the windows, the newest last; only that one may be open.
    windows: Mutex<VecDeque<Window>>,
}

struct Window {
    id: PairingId,
    token_hash: [u8; 32],
    policy: Policy,
    name: Option<String>,
    opener: Opener,
    expires_at: i64,
    /// Closes the window also if the clock is set back.
    opened: Instant,
    ttl: Duration,
    state: WindowState,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

impl PairingWindows {
    /// Opens a window for one device with this policy and, if given, this name. A window that is open is closed.
    ///
    /// # Errors
    /// The time is not within 1 second and 15 minutes, or the policy or the name cannot be used.
    pub fn open(
        &self,
        policy: Policy,
        name: Option<String>,
        opener: Opener,
        ttl: Duration,
        now: i64,
    ) -> Result<OpenWindow, PairingError> {
        self.open_at(policy, name, opener, ttl, now, Instant::now())
    }

    /// Takes the token of the open window. The window is used up, whatever becomes of the device: check everything else
    /// that the device sends before.
    ///
    /// # Errors
    /// The token is wrong, or no window is open. The fifth wrong token closes the window.
    pub fn redeem(&self, token: &[u8], now: i64) -> Result<Grant, PairingRefused> {
        self.redeem_at(token, now, Instant::now())
    }

    /// Records which device redeemed a window, for [`Self::state`].
    pub fn record_device(&self, id: PairingId, device: DeviceId) {
        let mut windows = self.lock();
        if let Some(window) = windows.iter_mut().find(|window| window.id == id)
            && matches!(window.state, WindowState::Redeemed { .. })
        {
            window.state = WindowState::Redeemed { device: Some(device) };
        }
    }

    /// Closes a window. Returns false if it is not open.
    pub fn cancel(&self, id: PairingId, now: i64) -> bool {
        let mut windows = self.lock();
        let open = open_window(&mut windows, now, Instant::now()).filter(|window| window.id == id);
        open.map(|window| window.state = WindowState::Cancelled).is_some()
    }

    /// Closes the open window if this device opened it, because the device was revoked.
    pub fn cancel_opened_by(&self, device: &DeviceId, now: i64) {
        let mut windows = self.lock();
        let open = open_window(&mut windows, now, Instant::now());
        if let Some(window) = open.filter(|window| window.opener.device.as_ref() == Some(device)) {
            window.state = WindowState::Cancelled;
        }
    }

    /// Returns the state of a window; `None` if it is unknown or long past.
    pub fn state(&self, id: PairingId, now: i64) -> Option<WindowState> {
        let mut windows = self.lock();
        // Marks it as expired if it is.
        open_window(&mut windows, now, Instant::now());
        windows.iter().find(|window| window.id == id).map(|window| window.state.clone())
    }

    /// Returns whether a window is open, so that the daemon answers callers without a certificate.
    pub fn any_open(&self, now: i64) -> bool {
        open_window(&mut self.lock(), now, Instant::now()).is_some()
    }

    fn open_at(
        &self,
        policy: Policy,
        name: Option<String>,
        opener: Opener,
        ttl: Duration,
        now: i64,
        opened: Instant,
    ) -> Result<OpenWindow, PairingError> {
        if !(MIN_TTL..=MAX_TTL).contains(&ttl) {
            return Err(PairingError::Ttl);
        }
        policy.check()?;
        name.as_deref().map_or(Ok(()), crate::registry::check_name)?;
        let (mut token, mut id) = ([0; PairingToken::BYTES], [0; 8]);
        getrandom::fill(&mut token).map_err(DevicesError::from)?;
        getrandom::fill(&mut id).map_err(DevicesError::from)?;
        let (token, id) = (PairingToken::new(token), PairingId(u64::from_be_bytes(id)));
        let expires_at = now.saturating_add(i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX));
        let token_hash = Sha256::digest(token.as_bytes()).into();
        let state = WindowState::Open { expires_at, tries_left: MAX_TRIES };
        let mut windows = self.lock();
        if let Some(other) = open_window(&mut windows, now, opened) {
            other.state = WindowState::Replaced;
        }
        if windows.len() >= REMEMBERED {
            windows.pop_front();
        }
        windows.push_back(Window { id, token_hash, policy, name, opener, expires_at, opened, ttl, state });
        Ok(OpenWindow { id, token, expires_at })
    }

    fn redeem_at(&self, token: &[u8], now: i64, at: Instant) -> Result<Grant, PairingRefused> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut windows = self.lock();
        let window = open_window(&mut windows, now, at).ok_or(PairingRefused)?;
        if bool::from(hash.ct_eq(&window.token_hash)) {
            window.state = WindowState::Redeemed { device: None };
            let (policy, name) = (window.policy.clone(), window.name.clone());
            return Ok(Grant { id: window.id, policy, name, opener: window.opener.clone() });
        }
        if let WindowState::Open { expires_at, tries_left } = window.state {
            window.state = match tries_left.saturating_sub(1) {
                0 => WindowState::TooManyTries,
                tries_left => WindowState::Open { expires_at, tries_left },
            };
        }
        Err(PairingRefused)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the open window, and closes it instead if its time is over.
fn open_window(windows: &mut VecDeque<Window>, now: i64, at: Instant) -> Option<&mut Window> {
    let window = windows.back_mut().filter(|window| matches!(window.state, WindowState::Open { .. }))?;
    if now >= window.expires_at || at.saturating_duration_since(window.opened) >= window.ttl {
        window.state = WindowState::Expired;
        return None;
    }
    Some(window)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
