//! The devices that may call the daemon over TLS or gRPC-Web: who they are, how they pair, and the log of their calls.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use satchel_devices::{
    AuditEntry, AuditLog, CertificateAuthority, Device, DeviceRegistry, DevicesError, PairingWindows,
};
use tonic::Code;

/// The folder of a data directory with the daemon's authority, its devices, and the log of their calls.
pub const DEVICES_DIR: &str = "devices";

/// The devices of a data directory. Clones share them.
#[derive(Clone)]
pub struct Devices(Arc<DevicesState>);

struct DevicesState {
    registry: DeviceRegistry,
    windows: PairingWindows,
    folder: PathBuf,
    /// `None` as long as there is no folder of devices: the first device or token creates it.
    audit: Mutex<Option<Arc<AuditLog>>>,
    /// `None` if the daemon does not listen for devices.
    listening: Option<Listening>,
}

/// What a daemon that listens for devices has.
struct Listening {
    authority: CertificateAuthority,
    /// The address that it was told to listen on, with the port that it got.
    address: SocketAddr,
}

impl Devices {
    /// Opens the devices of a data directory. If the daemon listens on `address`, its authority is created at the first
    /// start.
    ///
    /// # Errors
    /// If a file of the folder is damaged, or cannot be read or written.
    pub fn open(data_dir: &Path, address: Option<SocketAddr>, now: i64) -> Result<Self, DevicesError> {
        let folder = folder(data_dir);
        let listening = address
            .map(|address| {
                let authority = CertificateAuthority::load_or_create(&folder, now)?;
                Ok::<_, DevicesError>(Listening { authority, address })
            })
            .transpose()?;
        Ok(Self(Arc::new(DevicesState {
            registry: DeviceRegistry::open(&folder)?,
            windows: PairingWindows::default(),
            audit: Mutex::new(opened_log(&folder)?),
            folder,
            listening,
        })))
    }

    /// Returns the log of calls; opens it if the first device has come since the start.
    fn audit(&self) -> Result<Option<Arc<AuditLog>>, DevicesError> {
        let mut audit = self.0.audit.lock().unwrap_or_else(PoisonError::into_inner);
        if audit.is_none() {
            *audit = opened_log(&self.0.folder)?;
        }
        Ok(audit.clone())
    }

    /// Returns the registry.
    pub fn registry(&self) -> &DeviceRegistry {
        &self.0.registry
    }

    /// Returns the windows in which devices can pair.
    pub fn windows(&self) -> &PairingWindows {
        &self.0.windows
    }

    /// Returns at most `limit` calls of a device, or of all devices, newest first.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn calls(&self, device: Option<&Device>, limit: usize) -> Result<Vec<AuditEntry>, DevicesError> {
        let Some(audit) = self.audit()? else { return Ok(Vec::new()) };
        let id = device.map(|device| device.id.to_string());
        Ok(audit.list(id.as_deref(), limit)?.entries)
    }

    /// Returns the daemon's authority; `None` if it does not listen for devices.
    pub fn authority(&self) -> Option<&CertificateAuthority> {
        self.0.listening.as_ref().map(|listening| &listening.authority)
    }

    /// Returns the addresses on which other machines reach the daemon, as `host:port`.
    pub fn addresses(&self) -> Vec<String> {
        let Some(listening) = &self.0.listening else { return Vec::new() };
        let address = listening.address;
        if !address.ip().is_unspecified() {
            return vec![address.to_string()];
        }
        let mut hosts: Vec<_> = if_addrs::get_if_addrs()
            .unwrap_or_default()
            .into_iter()
            .filter(|interface| !interface.is_link_local())
            .map(|interface| interface.ip())
            .filter(|ip| address.is_ipv6() || ip.is_ipv4())
            .collect();
        // Those that other machines reach come first.
        hosts.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
        hosts.into_iter().map(|ip| SocketAddr::new(ip, address.port()).to_string()).collect()
    }

    /// Records a call of a device, or of a client that is not paired.
    pub fn record_call(
        &self,
        device: Option<Arc<Device>>,
        address: String,
        path: &str,
        code: Code,
        now: i64,
    ) {
        let entry = AuditEntry {
            at: now,
            device_id: device.as_ref().map(|device| device.id.to_string()).unwrap_or_default(),
            device_name: device.as_ref().map(|device| device.name.clone()).unwrap_or_default(),
            address: address.clone(),
            method: path.trim_start_matches('/').to_owned(),
            code: code.into(),
            millis: 0,
            records: None,
        };
        let logged = self.audit().and_then(|audit| audit.map_or(Ok(()), |audit| audit.append(entry)));
        if let Err(error) = logged {
            tracing::warn!(%error, "cannot log a call of a device");
        }
        if let Some(device) = device
            && self.0.registry.record_seen(&device.id, &address, now)
        {
            let devices = self.clone();
            tokio::task::spawn_blocking(move || devices.write_seen());
        }
    }

    fn write_seen(&self) {
        if let Err(error) = self.0.registry.flush() {
            tracing::warn!(%error, "cannot store when devices called last");
        }
    }

    /// Writes what is still in memory.
    pub fn flush(&self) {
        self.write_seen();
        let flushed = self.audit().and_then(|audit| audit.map_or(Ok(()), |audit| audit.flush()));
        if let Err(error) = flushed {
            tracing::warn!(%error, "cannot write the log of the devices' calls");
        }
    }
}

/// Opens the log of calls in the folder of the devices, if there is one.
fn opened_log(folder: &Path) -> Result<Option<Arc<AuditLog>>, DevicesError> {
    folder.is_dir().then(|| AuditLog::open(folder).map(Arc::new)).transpose()
}

/// Creates the folder of the devices, so that their calls are logged from the first one.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn create_folder(data_dir: &Path) -> Result<(), DevicesError> {
    AuditLog::open(&folder(data_dir)).map(drop)
}

/// Returns the folder of a data directory that holds what belongs to its devices.
#[must_use]
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(DEVICES_DIR)
}
