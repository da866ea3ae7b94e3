//! Names of devices: which are possible, which are free, and which device a person means.

use std::sync::Arc;

use super::{Device, Devices};
use crate::{error::DevicesError, identity::DeviceId};

/// Longest name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Checks that a name can be used.
pub(crate) fn check_name(name: &str) -> Result<(), DevicesError> {
    cleaned(name).map(drop)
}

/// Returns the name without spaces around it.
pub(super) fn cleaned(name: &str) -> Result<String, DevicesError> {
    let trimmed = name.trim();
    let problem = if trimmed.is_empty() {
        "is empty"
    } else if trimmed.chars().count() > MAX_NAME_CHARS {
        "has more than 64 characters"
    } else if trimmed.chars().any(|it| it.is_control() || changes_direction(it)) {
        "has characters that cannot be shown"
    } else {
        return Ok(trimmed.to_owned());
    };
    Err(DevicesError::Name { name: name.chars().take(MAX_NAME_CHARS).collect(), problem })
}

/// Returns whether a device that is not revoked has this name, other than `except`. Case makes no difference.
pub(super) fn taken(devices: &Devices, name: &str, except: Option<&DeviceId>) -> bool {
    let others = devices.values().filter(|device| !device.revoked() && Some(&device.id) != except);
    let wanted = name.to_lowercase();
    others.into_iter().any(|device| device.name.to_lowercase() == wanted)
}

/// Returns the name, with a number if it is taken.
pub(super) fn free(devices: &Devices, name: &str) -> String {
    let numbered = |number: usize| {
        let suffix = format!(" {number}");
        let room = MAX_NAME_CHARS.saturating_sub(suffix.len());
        name.chars().take(room).collect::<String>().trim_end().to_owned() + &suffix
    };
    if !taken(devices, name, None) {
        return name.to_owned();
    }
    // Of one more number than there are devices, one is free.
    let mut numbers = (2..devices.len().saturating_add(3)).map(numbered);
    numbers.find(|name| !taken(devices, name, None)).unwrap_or_else(|| name.to_owned())
}

/// Returns the device that a person means: by id, by name, or by the start of either.
pub(super) fn find<'d>(devices: &'d [Arc<Device>], text: &str) -> Result<&'d Arc<Device>, DevicesError> {
    let text = text.trim();
    if let Ok(id) = text.parse::<DeviceId>()
        && let Some(device) = devices.iter().find(|device| device.id == id)
    {
        return Ok(device);
    }
    let wanted = text.to_lowercase();
    let named = |device: &Device| device.name.to_lowercase() == wanted;
    let begins =
        |device: &Device| device.id.starts_with(text) || device.name.to_lowercase().starts_with(&wanted);
    let not_found = || DevicesError::NotFound { text: text.to_owned() };
    if text.is_empty() {
        return Err(not_found());
    }
    for (whole, revoked) in [(true, false), (true, true), (false, false), (false, true)] {
        let fits = |device: &Device| if whole { named(device) } else { begins(device) };
        let of_state = devices.iter().filter(|device| device.revoked() == revoked);
        let fitting: Vec<&Arc<Device>> = of_state.filter(|device| fits(device)).collect();
        match fitting.as_slice() {
            [] => {}
            [device] => return Ok(device),
            several => {
                let candidates =
                    several.iter().map(|device| format!("{} ({})", device.name, device.id)).collect();
                return Err(DevicesError::Ambiguous { text: text.to_owned(), candidates });
            }
        }
    }
    Err(not_found())
}

/// Marks that make following text run the other way, so that one name looks like another.
fn changes_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
