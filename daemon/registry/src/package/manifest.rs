//! The manifest of a package: what its author states, and what the component says of itself.

use glob::Pattern;
use serde::{Deserialize, Serialize};

use super::{MAX_MANIFEST_BYTES, PackageError};

/// The only version of the manifest so far.
pub const MANIFEST_VERSION: u32 = 1;
/// Least memory that an importer can ask for, in MiB.
pub const MIN_MEMORY_MIB: u32 = 16;
/// Most memory that an importer can ask for, in MiB.
pub const MAX_MEMORY_MIB: u32 = 512;

const MAX_TEXT: usize = 500;
const MAX_SHORT: usize = 128;
const MAX_ITEMS: usize = 16;

/// What a package says of itself. A later version of this program may know more fields; a package with a field that
/// this one does not know is refused, because it may ask for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub manifest_version: u32,
    /// `[a-z0-9][a-z0-9-]{1,40}`, as `describe()` has it.
    pub name: String,
    /// `x.y.z`, as `describe()` has it.
    pub version: String,
    /// PAM's name of the platform whose exports it reads, as `describe()` has it.
    pub platform: String,
    /// The newest format, as `describe()` has it.
    pub importer_version: String,
    /// The formats, as `describe()` has them.
    pub formats: Vec<String>,
    /// The highest version of `satchel:importer` that the component imports.
    pub api: String,
    /// What it reads, in one or two sentences.
    pub description: String,
    /// The names of its authors.
    pub authors: Vec<String>,
    /// SPDX expression.
    pub license: String,
    /// `https://…`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Glob patterns on file names. The importer is asked only about sources with such a file.
    pub files: Vec<String>,
    /// Texts of which one is in the first 64 KiB of such a file; empty: the name decides alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// The memory that it asks for, in MiB.
    pub memory_mib: u32,
    /// The tools that built it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub toolchain: String,
}

impl Manifest {
    /// Parses the content of the manifest's section and checks it.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, PackageError> {
        let manifest: Self = serde_json::from_slice(json)
            .map_err(|error| PackageError::Manifest { reason: error.to_string() })?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Returns the content of the manifest's section.
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Checks the form and the range of every field.
    ///
    /// # Errors
    /// [`PackageError::Field`] names the first field that breaks a rule.
    pub fn check(&self) -> Result<(), PackageError> {
        let Self {
            manifest_version,
            name,
            version,
            platform,
            importer_version,
            formats,
            api,
            description,
            authors,
            license,
            homepage,
            files,
            contains,
            memory_mib,
            toolchain,
        } = self;
        rule("manifest-version", manifest_version, *manifest_version == MANIFEST_VERSION, "1")?;
        rule("name", name, is_name(name), "2 to 41 of a-z, 0-9 and -, and not begin with -")?;
        rule("version", version, is_version(version), "three numbers, such as 1.0.0")?;
        rule("platform", platform, is_platform(platform), "2 to 32 of a-z, 0-9, - and _")?;
        rule("importer-version", importer_version, is_short(importer_version), SHORT)?;
        list("formats", formats, 1..=64, is_short, SHORT)?;
        rule("api", api, is_version(api), "three numbers, such as 1.0.0")?;
        let described = !description.trim().is_empty() && is_text(description, MAX_TEXT);
        rule("description", description, described, "a text of at most 500 characters")?;
        list("authors", authors, 1..=MAX_ITEMS, is_short, SHORT)?;
        rule("license", license, is_short(license), SHORT)?;
        let page = homepage.as_deref().unwrap_or("https://");
        rule("homepage", page, page.starts_with("https://") && is_short(page), "an address with https://")?;
        list("files", files, 1..=MAX_ITEMS, is_pattern, "a pattern of file names such as *.json")?;
        list("contains", contains, 0..=MAX_ITEMS, is_short, SHORT)?;
        let memory = (MIN_MEMORY_MIB..=MAX_MEMORY_MIB).contains(memory_mib);
        rule("memory-mib", memory_mib, memory, "16 to 512")?;
        rule("toolchain", toolchain, is_text(toolchain, MAX_TEXT), "a text of at most 500 characters")?;
        let fits = self.to_json().len() <= MAX_MANIFEST_BYTES;
        rule("manifest", "…", fits, "at most 64 KiB")
    }
}

const SHORT: &str = "1 to 128 characters without control characters";

fn rule(
    field: &'static str,
    value: impl ToString,
    holds: bool,
    rule: &'static str,
) -> Result<(), PackageError> {
    if holds {
        return Ok(());
    }
    let value = value.to_string().chars().filter(|letter| !letter.is_control()).take(MAX_SHORT).collect();
    Err(PackageError::Field { field, value, rule })
}

fn list(
    field: &'static str,
    items: &[String],
    count: std::ops::RangeInclusive<usize>,
    fits: fn(&str) -> bool,
    item_rule: &'static str,
) -> Result<(), PackageError> {
    rule(
        field,
        items.join(", "),
        count.contains(&items.len()),
        "a list of at least one and not too many items",
    )?;
    items.iter().try_for_each(|item| rule(field, item, fits(item), item_rule))
}

fn is_name(name: &str) -> bool {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (2..=41).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(allowed)
}

fn is_platform(platform: &str) -> bool {
    let allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (2..=32).contains(&platform.len()) && platform.bytes().all(allowed)
}

fn is_version(version: &str) -> bool {
    version_key(version).is_some()
}

/// Returns the three numbers of a version, which order versions.
pub(crate) fn version_key(version: &str) -> Option<[u32; 3]> {
    let number = |part: &str| {
        let plain = (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| part.parse().ok()).flatten()
    };
    let numbers: Option<Vec<u32>> = version.split('.').map(number).collect();
    numbers?.try_into().ok()
}

fn is_short(text: &str) -> bool {
    !text.trim().is_empty() && is_text(text, MAX_SHORT)
}

/// Whether a text is short enough and has no control or direction characters, which could forge what a terminal shows.
fn is_text(text: &str, most: usize) -> bool {
    let deceptive = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().count() <= most && !text.chars().any(deceptive)
}

fn is_pattern(pattern: &str) -> bool {
    is_short(pattern) && !pattern.contains('/') && Pattern::new(pattern).is_ok()
}
