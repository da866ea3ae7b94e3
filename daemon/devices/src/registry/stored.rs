//! The file `devices.json`.

use std::{path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Device, Devices, check_name};
use crate::{error::DevicesError, files, identity::DeviceId};

const FORMAT: u32 = 1;
/// Largest file that is read, in bytes: far more than ten thousand devices with long policies.
const MAX_FILE_BYTES: u64 = 64 << 20;
const REMEDY: &str = "restore it from a backup, or move it away and pair each device again";

#[derive(Serialize)]
struct Written<'d> {
    format: u32,
    devices: Vec<&'d Device>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(rename = "format")]
    _format: u32,
    devices: Vec<Device>,
}

/// The part of the file that every version has.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Reads the devices; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Devices, DevicesError> {
    let damaged = |reason: String| DevicesError::Damaged { path: path.to_owned(), reason, remedy: REMEDY };
    let Some(bytes) = files::read_limited(path, MAX_FILE_BYTES).map_err(DevicesError::io(path))? else {
        return Ok(Devices::new());
    };
    let parsed = |error: serde_json::Error| damaged(reason(&error));
    let head: Head = serde_json::from_slice(&bytes).map_err(parsed)?;
    if head.format > FORMAT {
        return Err(DevicesError::Newer { path: path.to_owned(), found: head.format, known: FORMAT });
    }
    let stored: Stored = serde_json::from_slice(&bytes).map_err(parsed)?;
    let mut devices = Devices::new();
    for device in stored.devices {
        check(&device).map_err(damaged)?;
        if let Some(twice) = devices.insert(device.id.clone(), Arc::new(device)) {
            return Err(damaged(format!("the device {} is listed twice", twice.id)));
        }
    }
    Ok(devices)
}

/// Replaces the file. Durable when this returns.
pub(super) fn write(path: &Path, devices: &Devices) -> Result<(), DevicesError> {
    let written = Written { format: FORMAT, devices: devices.values().map(AsRef::as_ref).collect() };
    let json = serde_json::to_vec_pretty(&written).map_err(|error| DevicesError::io(path)(error.into()))?;
    if let Some(folder) = path.parent() {
        files::create_private_folder(folder).map_err(DevicesError::io(folder))?;
    }
    files::write_durably(path, &json).map_err(DevicesError::io(path))
}

fn check(device: &Device) -> Result<(), String> {
    if device.id != DeviceId::of(&device.key_hash) {
        return Err(format!("the id {} does not belong to its key", device.id));
    }
    check_name(&device.name).map_err(|error| error.to_string())
}

/// An unknown field is most likely one of a newer version.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let unknown = text.starts_with("unknown field") || text.starts_with("unknown variant");
    if unknown { format!("{text}; it may have been written by a newer version of the program") } else { text }
}
