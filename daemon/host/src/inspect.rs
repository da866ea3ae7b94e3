//! Checks of a component before it is compiled: size, validity, imports, exports.

use wasmparser::{Encoding, Parser, Payload, Validator};

use crate::{error::HostError, limits::MIB};

/// Largest component, in bytes. The largest toolchain that was measured (Python) produces 18.5 MB.
pub const MAX_COMPONENT_BYTES: usize = 32 * MIB;

/// The version of `satchel:importer` that this host implements.
pub(crate) const API_VERSION: &str = "1.0.0";
const API_MAJOR: u64 = 1;
const PACKAGE: &str = "satchel:importer/";
/// The interfaces that an importer may import.
const INTERFACES: [&str; 6] = ["types", "files", "sink", "accounts", "memo", "log"];
const EXPORT: &str = "plugin";

/// Checks `wasm` and returns the names of its imports.
pub(crate) fn inspect(wasm: &[u8]) -> Result<Vec<String>, HostError> {
    if wasm.len() > MAX_COMPONENT_BYTES {
        return Err(HostError::TooLarge { bytes: wasm.len(), limit: MAX_COMPONENT_BYTES });
    }
    if !Parser::is_component(wasm) && Parser::is_core_wasm(wasm) {
        return Err(HostError::NotAComponent);
    }
    // The compiler receives only bytes that a second, independent parser accepts as valid.
    Validator::new().validate_all(wasm).map_err(|error| invalid(&error))?;
    let interface = component_interface(wasm)?;
    for import in &interface.imports {
        check_import(import)?;
    }
    check_exports(&interface.exports)?;
    Ok(interface.imports)
}

#[derive(Default)]
struct ComponentInterface {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Returns the imports and exports of the outermost component; those of nested components are connected inside it.
fn component_interface(wasm: &[u8]) -> Result<ComponentInterface, HostError> {
    let mut found = ComponentInterface::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(|error| invalid(&error))? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(HostError::NotAComponent);
            }
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    found.imports.push(import.map_err(|error| invalid(&error))?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    found.exports.push(export.map_err(|error| invalid(&error))?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn check_import(import: &str) -> Result<(), HostError> {
    if import.starts_with("wasi:") || import.starts_with("wasi_") {
        return Err(HostError::WasiImport { import: import.to_owned() });
    }
    let Some((interface, version)) = importer_interface(import) else {
        return Err(HostError::UnknownImport { import: import.to_owned() });
    };
    let newer = check_version(version)?;
    match (INTERFACES.contains(&interface), newer) {
        (true, _) => Ok(()),
        (false, true) => Err(too_new(version)),
        (false, false) => Err(HostError::UnknownImport { import: import.to_owned() }),
    }
}

fn check_exports(exports: &[String]) -> Result<(), HostError> {
    let versions = exports
        .iter()
        .filter_map(|export| importer_interface(export))
        .filter(|(interface, _)| *interface == EXPORT);
    let mut found = false;
    for (_, version) in versions {
        check_version(version)?;
        found = true;
    }
    if found { Ok(()) } else { Err(HostError::NoPluginExport) }
}

/// Returns the interface and version of a name in our package. A missing version means version 0.
fn importer_interface(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(PACKAGE)?;
    Some(rest.split_once('@').unwrap_or((rest, "0")))
}

/// Returns whether `version` is newer than ours within the same major version. Another major version is refused.
fn check_version(version: &str) -> Result<bool, HostError> {
    let mut numbers = version.split('.').map(|part| part.parse::<u64>().ok());
    let major = numbers.next().flatten().unwrap_or_default();
    let minor = numbers.next().flatten().unwrap_or_default();
    match major {
        API_MAJOR => Ok(minor > 0),
        0 => Err(HostError::ApiVersion {
            found: version.to_owned(),
            offered: API_VERSION.to_owned(),
            remedy: "ask for a newer version of the plugin",
        }),
        _ => Err(too_new(version)),
    }
}

fn too_new(version: &str) -> HostError {
    HostError::ApiVersion {
        found: version.to_owned(),
        offered: API_VERSION.to_owned(),
        remedy: "upgrade Satchel to use it",
    }
}

fn invalid(error: &wasmparser::BinaryReaderError) -> HostError {
    HostError::Invalid { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importer_interfaces_are_allowed_within_the_major_version() {
        assert!(check_import("satchel:importer/files@1.0.0").is_ok());
        assert!(check_import("satchel:importer/sink@1.7.0").is_ok());
    }

    #[test]
    fn other_versions_name_what_to_upgrade() {
        let message =
            |import| check_import(import).map_err(|error| error.to_string()).err().unwrap_or_default();
        assert!(message("satchel:importer/files@0.9.0").contains("0.9.0"));
        assert!(message("satchel:importer/files@0.9.0").contains("newer version of the plugin"));
        assert!(message("satchel:importer/files@2.0.0").contains("upgrade Satchel"));
        assert!(message("satchel:importer/summaries@1.3.0").contains("upgrade Satchel"));
        assert!(message("satchel:importer/summaries@1.0.0").contains("not part of"));
    }

    #[test]
    fn other_imports_are_refused() {
        assert!(matches!(check_import("wasi:clocks/wall-clock@0.2.0"), Err(HostError::WasiImport { .. })));
        assert!(matches!(check_import("evil:net/socket"), Err(HostError::UnknownImport { .. })));
        assert!(matches!(
            check_import("satchel:importer-evil/files@1.0.0"),
            Err(HostError::UnknownImport { .. })
        ));
    }

    #[test]
    fn bytes_that_are_not_a_component_are_refused() {
        assert!(matches!(inspect(b"hello"), Err(HostError::Invalid { .. })));
        assert!(matches!(inspect(b"\0asm\x01\0\0\0"), Err(HostError::NotAComponent)));
        assert!(matches!(inspect(b"\0asm\x0d\0\x01\0"), Err(HostError::NoPluginExport)));
    }
}
