//! The custom sections of a package: where they are, and how they are written.

use std::{borrow::Cow, ops::Range};

use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{Encoding, Parser, Payload};

use super::PackageError;

/// Name of the section that holds the manifest.
pub(super) const MANIFEST: &str = "satchel:manifest";
/// Name of the section that holds the author's key and signature.
pub(super) const SIGNATURE: &str = "satchel:signature";

/// The first bytes of every WebAssembly file.
const WASM_MAGIC: &[u8] = b"\0asm";

/// Where the parts of a package are, as ranges of its bytes.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The end of the component itself.
    pub(super) component: usize,
    /// The content of the manifest's section.
    pub(super) manifest: Option<Range<usize>>,
    /// The content of the signature's section.
    pub(super) signature: Option<Range<usize>>,
    /// The end of the bytes that a signature covers.
    pub(super) signed: usize,
}

/// A custom section at the outermost level.
struct Custom {
    name: &'static str,
    /// The whole section, with its header.
    whole: Range<usize>,
    content: Range<usize>,
}

/// Finds the parts of a component or package.
pub(super) fn layout(bytes: &[u8]) -> Result<Layout, PackageError> {
    let sections = custom_sections(bytes)?;
    let end = bytes.len();
    let layout = match sections.as_slice() {
        [] => Layout { component: end, signed: end, ..Layout::default() },
        [manifest] if manifest.name == MANIFEST => Layout {
            component: manifest.whole.start,
            manifest: Some(manifest.content.clone()),
            signature: None,
            signed: end,
        },
        [manifest, signature] if manifest.name == MANIFEST && signature.name == SIGNATURE => Layout {
            component: manifest.whole.start,
            manifest: Some(manifest.content.clone()),
            signature: Some(signature.content.clone()),
            signed: signature.whole.start,
        },
        _ => {
            return Err(PackageError::Layout {
                reason: "its manifest or signature is missing, repeated or in the wrong order",
            });
        }
    };
    // The two sections end the file, one directly after the other: nothing is outside of what was signed.
    let mut expected = layout.component;
    for section in &sections {
        if section.whole.start != expected || !is_canonical(bytes, section) {
            return Err(PackageError::Layout {
                reason: "its manifest and signature are not its last sections",
            });
        }
        expected = section.whole.end;
    }
    if expected != end {
        return Err(PackageError::Layout { reason: "there are bytes after its manifest or signature" });
    }
    Ok(layout)
}

/// Whether the section is written as [`append`] writes it. A section's header can be written in several ways, and the
/// header of the signature is not signed.
fn is_canonical(bytes: &[u8], section: &Custom) -> bool {
    let mut again = Vec::new();
    append(&mut again, section.name, &bytes[section.content.clone()]);
    bytes[section.whole.clone()] == again
}

/// Returns our sections at the outermost level of a component, in order.
fn custom_sections(bytes: &[u8]) -> Result<Vec<Custom>, PackageError> {
    let invalid =
        |error: &wasmparser::BinaryReaderError| PackageError::NotAComponent { reason: error.to_string() };
    // The parser's own message shows bytes, over ten lines.
    if !bytes.starts_with(WASM_MAGIC) {
        let reason = "its first bytes are not those of WebAssembly".to_owned();
        return Err(PackageError::NotAComponent { reason });
    }
    let mut found = Vec::new();
    let (mut depth, mut end) = (0_usize, 0);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| invalid(&error))?;
        match &payload {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                let reason = "it is a core module".to_owned();
                return Err(PackageError::NotAComponent { reason });
            }
            Payload::Version { range, .. } => {
                depth += 1;
                end = range.end;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 1 => {
                let name = [MANIFEST, SIGNATURE].into_iter().find(|name| *name == section.name());
                if let Some(name) = name {
                    let content = section.data_offset()..section.range().end;
                    found.push(Custom { name, whole: end..content.end, content });
                }
            }
            _ => {}
        }
        if let Some((_, range)) = payload.as_section() {
            end = range.end;
        }
    }
    Ok(found)
}

/// Appends a custom section to a component.
pub(super) fn append(bytes: &mut Vec<u8>, name: &str, content: &[u8]) {
    CustomSection { name: Cow::Borrowed(name), data: Cow::Borrowed(content) }.append_to(bytes);
}
