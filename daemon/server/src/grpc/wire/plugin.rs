//! Importers, their packages and authors.

use satchel_proto::{integers::signed, v1};
use satchel_registry::{
    Author, ImporterRow, Installed, InstalledState,
    package::{AuthorKey, Manifest},
};

use super::scalar::{time_to_wire, truncate};

/// Longest reason of a failed run in a response, in bytes.
const MAX_FAILURE_BYTES: usize = 1_024;

/// Converts the manifest of a package to the wire.
#[must_use]
pub fn manifest_to_wire(manifest: Manifest) -> v1::PluginManifest {
    let Manifest {
        manifest_version: _,
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
    } = manifest;
    v1::PluginManifest {
        name,
        version,
        platform,
        formats,
        newest_format: importer_version,
        description,
        authors,
        license,
        homepage: homepage.unwrap_or_default(),
        files,
        contains,
        memory_bytes: i64::from(memory_mib) << 20,
        api_version: api,
        toolchain,
    }
}

/// Converts an importer to the wire.
#[must_use]
pub fn plugin_to_wire(row: ImporterRow) -> v1::Plugin {
    let ImporterRow { name, version, platform, newest_format, formats, sha256, installed, replaced_by } = row;
    let plugin = v1::Plugin {
        name,
        version,
        platform,
        sha256,
        built_in: installed.is_none(),
        formats,
        newest_format,
        ..v1::Plugin::default()
    };
    let Some(installed) = installed else {
        let state = if replaced_by.is_some() { v1::PluginState::Replaced } else { v1::PluginState::Enabled };
        let replaced_by = replaced_by.unwrap_or_default();
        return v1::Plugin { state: state.into(), replaced_by, ..plugin };
    };
    let Installed {
        manifest,
        sha256: _,
        bytes,
        signer,
        state,
        replaces_built_in,
        installed_at,
        failures,
        last_failure,
    } = installed;
    v1::Plugin {
        state: state_to_wire(state).into(),
        manifest: Some(manifest_to_wire(manifest)),
        unsigned: signer.is_none(),
        signer: key_to_wire(signer),
        replaces_built_in,
        size_bytes: signed(bytes),
        installed_at: Some(time_to_wire(installed_at)),
        failures: signed(failures),
        last_failure: truncate(last_failure.unwrap_or_default(), MAX_FAILURE_BYTES),
        ..plugin
    }
}

/// Converts an author's key to the wire; an empty text means that there is none.
#[must_use]
pub fn key_to_wire(key: Option<AuthorKey>) -> String {
    key.map(|key| key.to_string()).unwrap_or_default()
}

fn state_to_wire(state: InstalledState) -> v1::PluginState {
    match state {
        InstalledState::Enabled => v1::PluginState::Enabled,
        InstalledState::DisabledByUser => v1::PluginState::Disabled,
        InstalledState::DisabledAfterFailures => v1::PluginState::DisabledAfterFailures,
        InstalledState::KeyNotTrusted => v1::PluginState::KeyNotTrusted,
        InstalledState::Superseded => v1::PluginState::Superseded,
    }
}

/// Converts an author to the wire.
#[must_use]
pub fn author_to_wire(author: Author) -> v1::PluginAuthor {
    let Author { key, trusted, since, importers } = author;
    v1::PluginAuthor {
        public_key: key.to_string(),
        trusted,
        trusted_at: (since > 0).then(|| time_to_wire(since)),
        plugin_names: importers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(installed: Option<Installed>, replaced_by: Option<&str>) -> ImporterRow {
        ImporterRow {
            name: "notes".to_owned(),
            version: "1.0.0".to_owned(),
            platform: "notes".to_owned(),
            newest_format: "notes/2026.01".to_owned(),
            formats: vec!["notes/2026.01".to_owned()],
            sha256: "0".repeat(64),
            installed,
            replaced_by: replaced_by.map(str::to_owned),
        }
    }

    #[test]
    fn a_built_in_plugin_is_enabled_unless_another_took_its_place() {
        let plugin = plugin_to_wire(row(None, None));
        assert!(plugin.built_in && !plugin.unsigned && plugin.manifest.is_none());
        assert_eq!(plugin.state(), v1::PluginState::Enabled);
        let replaced = plugin_to_wire(row(None, Some("my-notes")));
        assert_eq!(
            (replaced.state(), replaced.replaced_by.as_str()),
            (v1::PluginState::Replaced, "my-notes")
        );
    }

    #[test]
    fn an_installed_plugin_has_its_manifest_and_is_marked_if_nobody_signed_it() {
        let manifest = Manifest {
            manifest_version: 1,
            name: "notes".to_owned(),
            version: "1.0.0".to_owned(),
            platform: "notes".to_owned(),
            importer_version: "notes/2026.01".to_owned(),
            formats: vec!["notes/2026.01".to_owned()],
            api: "1.0.0".to_owned(),
            description: "Reads notes".to_owned(),
            authors: vec!["Ana Silva".to_owned()],
            license: "Apache-2.0".to_owned(),
            homepage: None,
            files: vec!["*.json".to_owned()],
            contains: Vec::new(),
            memory_mib: 64,
            toolchain: String::new(),
        };
        let installed = Installed {
            manifest,
            sha256: "0".repeat(64),
            bytes: 4_096,
            signer: None,
            state: InstalledState::DisabledAfterFailures,
            replaces_built_in: false,
            installed_at: 1_772_000_000_000_000,
            failures: 3,
            last_failure: Some("a trap".to_owned()),
        };
        let plugin = plugin_to_wire(row(Some(installed), None));
        assert!(plugin.unsigned && !plugin.built_in && plugin.signer.is_empty());
        assert_eq!(plugin.state(), v1::PluginState::DisabledAfterFailures);
        assert_eq!((plugin.failures, plugin.last_failure.as_str()), (3, "a trap"));
        assert_eq!(plugin.manifest.map(|manifest| manifest.memory_bytes), Some(64 << 20));
    }
}
