//! A plugin's description of itself, checked.

use crate::{bindings::exports::satchel::importer::plugin as wit, error::HostError, text};

/// Largest number of formats of one plugin.
const MAX_FORMATS: usize = 64;
/// Longest format name and `importer-version`, in bytes; they appear in tables and file headers.
const MAX_NAME_BYTES: usize = 64;

/// A plugin's checked `plugin-info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// `[a-z0-9][a-z0-9-]{1,40}`
    pub name: String,
    /// `x.y.z`
    pub version: String,
    /// PAM `provenance.platform`: `[a-z0-9_-]{2,32}`.
    pub platform: String,
    /// The newest format that it reads, such as `chatgpt-importer/2026.07`.
    pub importer_version: String,
    /// Every format that it may detect.
    pub formats: Vec<String>,
}

pub(crate) fn from_wit(info: wit::PluginInfo) -> Result<PluginInfo, HostError> {
    let wit::PluginInfo { name, version, platform, importer_version, formats } = info;
    Ok(PluginInfo {
        name: checked("name", name, "2 to 41 of a-z, 0-9 and -, not - first", is_name)?,
        version: checked("version", version, "three numbers, x.y.z", is_version)?,
        platform: checked("platform", platform, "2 to 32 of a-z, 0-9, _ and -", is_platform)?,
        importer_version: checked("importer-version", importer_version, LABEL_RULE, is_label)?,
        formats: formats_from_wit(formats)?,
    })
}

fn formats_from_wit(formats: Vec<String>) -> Result<Vec<String>, HostError> {
    if formats.is_empty() || formats.len() > MAX_FORMATS {
        let value = format!("a list of {}", formats.len());
        return Err(HostError::BadInfo { field: "formats", value, rule: "a list of 1 to 64 names" });
    }
    formats.into_iter().map(|format| checked("format", format, LABEL_RULE, is_label)).collect()
}

fn checked(
    field: &'static str,
    value: String,
    rule: &'static str,
    fits: fn(&str) -> bool,
) -> Result<String, HostError> {
    if fits(&value) {
        return Ok(value);
    }
    let shown: String = text::clean(&value).chars().take(MAX_NAME_BYTES).collect();
    Err(HostError::BadInfo { field, value: shown, rule })
}

fn is_name(name: &str) -> bool {
    (2..=41).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn is_version(version: &str) -> bool {
    let number = |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    version.split('.').count() == 3 && version.split('.').all(number)
}

fn is_platform(platform: &str) -> bool {
    (2..=32).contains(&platform.len())
        && platform.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

const LABEL_RULE: &str = "1 to 64 of a-z, A-Z, 0-9 and ._/+-";

fn is_label(label: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/+-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> wit::PluginInfo {
        wit::PluginInfo {
            name: "chatgpt-importer".to_owned(),
            version: "1.2.3".to_owned(),
            platform: "chatgpt".to_owned(),
            importer_version: "chatgpt-importer/2026.07".to_owned(),
            formats: vec!["chatgpt-export".to_owned()],
        }
    }

    fn refused(change: impl FnOnce(&mut wit::PluginInfo)) -> Option<&'static str> {
        let mut info = info();
        change(&mut info);
        match from_wit(info) {
            Err(HostError::BadInfo { field, .. }) => Some(field),
            Err(_) | Ok(_) => None,
        }
    }

    #[test]
    fn a_good_description_passes() {
        assert!(from_wit(info()).is_ok());
    }

    #[test]
    fn each_field_has_its_rule() {
        assert_eq!(refused(|info| info.name = "Chat GPT".to_owned()), Some("name"));
        assert_eq!(refused(|info| info.name = "x".repeat(42)), Some("name"));
        assert_eq!(refused(|info| info.version = "1.2".to_owned()), Some("version"));
        assert_eq!(refused(|info| info.version = "1.2.x".to_owned()), Some("version"));
        assert_eq!(refused(|info| info.platform = "Chat".to_owned()), Some("platform"));
        assert_eq!(refused(|info| info.importer_version = "\u{1b}[2J".to_owned()), Some("importer-version"));
        assert_eq!(refused(|info| info.formats = Vec::new()), Some("formats"));
        assert_eq!(refused(|info| info.formats = vec![String::new()]), Some("format"));
    }
}
