//! The devices of a data directory, with their policies, in the file `devices.json`.
//!
//! Replacing the file is the commit point of every change. Revoked devices stay listed, so that their keys are never
//! accepted again.

mod device;
mod names;
mod stored;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use tokio::sync::watch;

pub use device::{Device, DeviceKind, NewDevice, TokenSecret};
pub(crate) use names::check_name;

use crate::{
    certificate::DAY,
    error::DevicesError,
    identity::{DeviceId, KeyHash},
    policy::Policy,
};

/// Longest life of a token, in days.
pub const MAX_TOKEN_DAYS: i64 = 366;
/// Most devices, revoked ones included.
const MAX_DEVICES: usize = 10_000;
/// How often the times at which devices were seen are written, in microseconds.
const SEEN_WRITTEN_EVERY: u64 = 60_000_000;
const FILE: &str = "devices.json";

type Devices = BTreeMap<DeviceId, Arc<Device>>;

/// The devices that may use a daemon. One process at a time opens it: the one that holds the data directory's lock.
#[derive(Debug)]
pub struct DeviceRegistry {
    path: PathBuf,
    /// Guards the file: one change at a time is written.
    file: Mutex<()>,
    /// Guards the devices as of the last change, for readers, who never wait for a disk.
    current: RwLock<Arc<Devices>>,
    /// Guards what was seen since the last write.
    seen: Mutex<Seen>,
    revision: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Time and address of the last call of each device.
    calls: BTreeMap<DeviceId, (i64, String)>,
    /// When they were last written, in microseconds since the Unix epoch.
    written_at: i64,
}

/// Whether a change takes effect if it cannot be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    OnceWritten,
    Always,
}

impl DeviceRegistry {
    /// Reads `devices.json` in `dir`, which need not exist.
    ///
    /// # Errors
    /// The file is damaged, was written by a newer version, or cannot be read. It is never replaced then.
    pub fn open(dir: &Path) -> Result<Self, DevicesError> {
        let path = dir.join(FILE);
        let devices = stored::read(&path)?;
        Ok(Self {
            path,
            file: Mutex::new(()),
            current: RwLock::new(Arc::new(devices)),
            seen: Mutex::new(Seen::default()),
            revision: watch::Sender::new(0),
        })
    }

    /// Adds a device that was paired. If the name is taken, a number is added to it. Durable when this returns.
    ///
    /// # Errors
    /// The key is listed already, the name or the policy cannot be used, or the file cannot be written.
    pub fn add(&self, new: NewDevice, now: i64) -> Result<Arc<Device>, DevicesError> {
        self.insert(Device::paired(new, now))
    }

    /// Creates a token: a secret text that a program sends instead of a certificate. The secret is not stored and cannot
    /// be shown again. Durable when this returns.
    ///
    /// # Errors
    /// `expires_at` is not after `now` or more than 366 days later; otherwise as [`Self::add`].
    pub fn create_token(
        &self,
        name: &str,
        policy: Policy,
        created_by: &str,
        expires_at: i64,
        now: i64,
    ) -> Result<(Arc<Device>, TokenSecret), DevicesError> {
        let latest = now.saturating_add(MAX_TOKEN_DAYS * DAY);
        if expires_at <= now || expires_at > latest {
            return Err(DevicesError::TokenLifetime { max_days: MAX_TOKEN_DAYS });
        }
        let secret = TokenSecret::random()?;
        let device = Device::token(secret.hash(), name, policy, created_by, expires_at, now);
        Ok((self.insert(device)?, secret))
    }

    /// Returns the device with this key, unless it was revoked. When it was last seen may be missing. A handshake refuses
    /// an expired certificate; during a long connection, [`Device::expired`] tells when it ends.
    pub fn by_key_hash(&self, key: &KeyHash) -> Option<Arc<Device>> {
        let devices = self.current();
        let device = devices.get(&DeviceId::of(key))?;
        let valid = device.kind == DeviceKind::Certificate && device.key_hash == *key && !device.revoked();
        valid.then(|| Arc::clone(device))
    }

    /// Returns the token with this secret, unless it was revoked or has expired. Takes the same time whether a token
    /// fits or not.
    pub fn by_token_secret(&self, text: &str, now: i64) -> Option<Arc<Device>> {
        let hash = TokenSecret::hash_of(text)?;
        let devices = self.current();
        let tokens = devices.values().filter(|device| device.kind == DeviceKind::Token);
        let fitting =
            tokens.fold(
                None,
                |found, device| if bool::from(device.key_hash.same(&hash)) { Some(device) } else { found },
            );
        fitting.filter(|device| !device.revoked() && !device.expired(now)).map(Arc::clone)
    }

    /// Returns the device with this id or name, or else the only one whose id or name begins with it. Devices that were
    /// revoked are found if no other fits.
    ///
    /// # Errors
    /// None fits, or several do.
    pub fn find(&self, text: &str) -> Result<Arc<Device>, DevicesError> {
        let devices = self.list(true);
        names::find(&devices, text).map(Arc::clone)
    }

    /// Returns the device with exactly this id or name, for programs: what a person types may be a beginning
    /// ([`DeviceRegistry::find`]). Revoked devices keep their ids, but not their names.
    pub fn named(&self, text: &str) -> Option<Arc<Device>> {
        let devices = self.current();
        let named = || devices.values().find(|device| !device.revoked() && device.name == text);
        devices
            .values()
            .find(|device| device.id.as_str() == text)
            .or_else(named)
            .map(|device| self.with_last_call(device))
    }

    /// Returns the device with this id.
    pub fn by_id(&self, id: &DeviceId) -> Option<Arc<Device>> {
        self.current().get(id).map(|device| self.with_last_call(device))
    }

    /// Returns the devices in the order in which they were paired.
    pub fn list(&self, include_revoked: bool) -> Vec<Arc<Device>> {
        let devices = self.current();
        let wanted = devices.values().filter(|device| include_revoked || !device.revoked());
        let mut listed: Vec<Arc<Device>> = wanted.map(|device| self.with_last_call(device)).collect();
        listed.sort_by(|one, other| (one.paired_at, &one.id).cmp(&(other.paired_at, &other.id)));
        listed
    }

    /// Changes the name of a device. Durable when this returns.
    ///
    /// # Errors
    /// The name cannot be used or is taken, or the device is unknown or revoked.
    pub fn rename(&self, id: &DeviceId, name: &str) -> Result<Arc<Device>, DevicesError> {
        let name = names::cleaned(name)?;
        self.change(Effect::OnceWritten, |devices| {
            if names::taken(devices, &name, Some(id)) {
                return Err(DevicesError::Name { name: name.clone(), problem: "is taken by another device" });
            }
            update(devices, id, |device| device.name.clone_from(&name))
        })
    }

    /// Changes what a device may do. Durable when this returns.
    ///
    /// # Errors
    /// The policy cannot be used, or the device is unknown or revoked.
    pub fn set_policy(&self, id: &DeviceId, policy: Policy) -> Result<Arc<Device>, DevicesError> {
        policy.check()?;
        self.change(Effect::OnceWritten, |devices| update(devices, id, |device| device.policy = policy))
    }

    /// Revokes a device for ever. It takes effect at once, even if it cannot be written. Durable when this returns
    /// without an error.
    ///
    /// # Errors
    /// The device is unknown or revoked already; or the file cannot be written, and the device is revoked until the
    /// program ends or a later change is written.
    pub fn revoke(&self, id: &DeviceId, reason: &str, now: i64) -> Result<Arc<Device>, DevicesError> {
        self.change(Effect::Always, |devices| {
            update(devices, id, |device| {
                device.revoked_at = Some(now);
                device.revoke_reason = Some(reason.chars().take(device::MAX_REASON_CHARS).collect());
            })
        })
    }

    /// Records that a device has a new certificate with the same key. Durable when this returns.
    ///
    /// # Errors
    /// The key is of no device or of one that was revoked, or the file cannot be written.
    pub fn certificate_renewed(&self, key: &KeyHash, expires_at: i64) -> Result<Arc<Device>, DevicesError> {
        let id = DeviceId::of(key);
        self.change(Effect::OnceWritten, |devices| {
            let found =
                devices.get(&id).filter(|it| it.key_hash == *key && it.kind == DeviceKind::Certificate);
            if found.is_none() {
                return Err(DevicesError::NotFound { text: id.to_string() });
            }
            update(devices, &id, |device| device.expires_at = expires_at)
        })
    }

    /// Records a call of a device, in memory. Returns whether [`Self::flush`] is due: once a minute. A change writes it too.
    pub fn record_seen(&self, id: &DeviceId, address: &str, now: i64) -> bool {
        if !self.current().contains_key(id) {
            return false;
        }
        let mut seen = lock(&self.seen);
        let address = address.chars().take(device::MAX_ADDRESS_CHARS).collect();
        seen.calls.insert(id.clone(), (now, address));
        // The clock may have been set back.
        let due = now.abs_diff(seen.written_at) >= SEEN_WRITTEN_EVERY;
        if due {
            // If it cannot be written, the next attempt follows after a minute.
            seen.written_at = now;
        }
        due
    }

    /// Writes when devices were last seen. Call it before the program ends.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&self) -> Result<(), DevicesError> {
        let _file = lock(&self.file);
        let before = self.current();
        let mut devices = Devices::clone(&before);
        self.merge_seen(&mut devices);
        if devices == *before {
            return Ok(());
        }
        stored::write(&self.path, &devices)?;
        self.replace(devices);
        Ok(())
    }

    /// Returns a number that grows with each change, except for the times at which devices were seen. It begins at 0 in
    /// each process.
    pub fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    /// Returns a receiver that is notified of each change, so that calls in progress end when their device is revoked.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn insert(&self, mut device: Device) -> Result<Arc<Device>, DevicesError> {
        device.policy.check()?;
        device.name = names::cleaned(&device.name)?;
        self.change(Effect::OnceWritten, |devices| {
            match devices.get(&device.id) {
                Some(other) if other.revoked() => {
                    return Err(DevicesError::Revoked { name: other.name.clone() });
                }
                Some(other) => return Err(DevicesError::AlreadyPaired { name: other.name.clone() }),
                None if devices.len() >= MAX_DEVICES => {
                    return Err(DevicesError::TooMany { limit: MAX_DEVICES });
                }
                None => device.name = names::free(devices, &device.name),
            }
            let device = Arc::new(device);
            devices.insert(device.id.clone(), Arc::clone(&device));
            Ok(device)
        })
    }

    /// Writes a changed copy and uses it once it is durable, or at once.
    fn change<T>(
        &self,
        effect: Effect,
        change: impl FnOnce(&mut Devices) -> Result<T, DevicesError>,
    ) -> Result<T, DevicesError> {
        let _file = lock(&self.file);
        let mut devices = Devices::clone(&self.current());
        self.merge_seen(&mut devices);
        let result = change(&mut devices)?;
        let written = stored::write(&self.path, &devices);
        if written.is_ok() || effect == Effect::Always {
            self.replace(devices);
            self.revision.send_modify(|revision| *revision = revision.saturating_add(1));
        }
        written.map(|()| result)
    }

    fn current(&self) -> Arc<Devices> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, devices: Devices) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(devices);
    }

    fn merge_seen(&self, devices: &mut Devices) {
        for (id, (at, address)) in &lock(&self.seen).calls {
            if let Some(device) = devices.get_mut(id)
                && (device.last_seen, device.last_address.as_ref()) != (Some(*at), Some(address))
            {
                let device = Arc::make_mut(device);
                (device.last_seen, device.last_address) = (Some(*at), Some(address.clone()));
            }
        }
    }

    fn with_last_call(&self, device: &Arc<Device>) -> Arc<Device> {
        let seen = lock(&self.seen);
        let Some((at, address)) = seen.calls.get(&device.id) else { return Arc::clone(device) };
        let mut device = Device::clone(device);
        (device.last_seen, device.last_address) = (Some(*at), Some(address.clone()));
        Arc::new(device)
    }
}

impl Drop for DeviceRegistry {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::warn!(%error, "the times at which devices were last seen are not stored");
        }
    }
}

fn update(
    devices: &mut Devices,
    id: &DeviceId,
    change: impl FnOnce(&mut Device),
) -> Result<Arc<Device>, DevicesError> {
    let device = devices.get_mut(id).ok_or_else(|| DevicesError::NotFound { text: id.to_string() })?;
    if device.revoked() {
        return Err(DevicesError::Revoked { name: device.name.clone() });
    }
    change(Arc::make_mut(device));
    Ok(Arc::clone(device))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
