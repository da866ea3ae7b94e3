//! JSON documents for importers and their authors.

use satchel_proto::{integers::unsigned, v1};
use serde::Serialize;

use super::{import::Import, non_empty, timestamp};
use crate::cli::labels;

/// `plugins list`.
#[derive(Debug, Serialize)]
pub(crate) struct Plugins<'a> {
    pub plugins: Vec<Plugin<'a>>,
}

/// `plugins show`, `plugins enable` and `plugins disable`.
#[derive(Debug, Serialize)]
pub(crate) struct PluginDocument<'a> {
    pub plugin: Plugin<'a>,
}

document! {
    /// An importer.
    Plugin<'a> from plugin: v1::Plugin {
        name: &'a str = &plugin.name,
        version: &'a str = &plugin.version,
        platform: &'a str = &plugin.platform,
        importer_version: &'a str = &plugin.newest_format,
        formats: &'a [String] = &plugin.formats,
        built_in: bool = plugin.built_in,
        sha256: &'a str = &plugin.sha256,
        /// `enabled`, `disabled`, `disabled_after_failures`, `key_not_trusted`, `superseded` or `replaced`.
        state: String = labels::plugin_state(plugin.state),
        /// The key of its author; null for an importer of the program, and if nobody signed it.
        signer: Option<&'a str> = non_empty(&plugin.signer),
        /// True if it was installed, and nobody signed it.
        unsigned: bool = plugin.unsigned,
        /// True if it takes the place of an importer of the program.
        replaces_built_in: bool = plugin.replaces_built_in,
        /// For an importer of the program: the installed one that took its place.
        replaced_by: Option<&'a str> = non_empty(&plugin.replaced_by),
        bytes: Option<u64> = (!plugin.built_in).then(|| unsigned(plugin.size_bytes)),
        installed_at: Option<String> = timestamp(plugin.installed_at.as_ref()),
        /// Number of runs in a row that it broke off.
        failures: u32 = unsigned(plugin.failures),
        last_failure: Option<&'a str> = non_empty(&plugin.last_failure),
        /// What its package says; null for an importer of the program.
        manifest: Option<Manifest<'a>> = plugin.manifest.as_ref().map(Manifest::new),
    }
}

document! {
    /// What a package says of itself.
    Manifest<'a> from manifest: v1::PluginManifest {
        name: &'a str = &manifest.name,
        version: &'a str = &manifest.version,
        platform: &'a str = &manifest.platform,
        importer_version: &'a str = &manifest.newest_format,
        formats: &'a [String] = &manifest.formats,
        description: &'a str = &manifest.description,
        authors: &'a [String] = &manifest.authors,
        license: &'a str = &manifest.license,
        homepage: Option<&'a str> = non_empty(&manifest.homepage),
        files: &'a [String] = &manifest.files,
        contains: &'a [String] = &manifest.contains,
        memory_bytes: u64 = unsigned(manifest.memory_bytes),
        api: &'a str = &manifest.api_version,
        toolchain: Option<&'a str> = non_empty(&manifest.toolchain),
    }
}

document! {
    /// `plugins install` and `plugins upgrade`.
    Installation<'a> from installation: v1::PluginInstallation {
        /// False after `--dry-run`, and if the same package was installed already.
        installed: bool = installation.installed,
        already_installed: bool = installation.already_installed,
        sha256: &'a str = &installation.sha256,
        bytes: u64 = unsigned(installation.size_bytes),
        /// The key of its author; null if nobody signed it.
        signer: Option<&'a str> = non_empty(&installation.signer),
        key_trusted: bool = installation.key_trusted,
        /// The version that was in use before.
        replaces_version: Option<&'a str> = non_empty(&installation.replaces_version),
        downgrade: bool = installation.downgrade,
        replaces_built_in: &'a [String] = &installation.replaces_built_in,
        similar_to: Option<&'a str> = non_empty(&installation.similar_to),
        /// Number of sources that `imports again` would read.
        reads_differently: u64 = unsigned(installation.reads_differently),
        /// The first 20 of their imports.
        earlier_imports: Vec<Import<'a>> = installation.earlier_imports.iter().map(Import::new).collect(),
        manifest: Option<Manifest<'a>> = installation.manifest.as_ref().map(Manifest::new),
    }
}

document! {
    /// `plugins remove`.
    Removal<'a> from removal: v1::RemovePluginResponse {
        removed: Vec<Plugin<'a>> = removal.plugins.iter().map(Plugin::new).collect(),
        /// What its imports added, and stays.
        imports: u64 = unsigned(removal.imports),
        conversations: u64 = unsigned(removal.conversations),
        memories: u64 = unsigned(removal.memories),
    }
}

/// `plugins keys`.
#[derive(Debug, Serialize)]
pub(crate) struct Authors<'a> {
    pub authors: Vec<Author<'a>>,
}

document! {
    /// The key of an author.
    Author<'a> from author: v1::PluginAuthor {
        public_key: &'a str = &author.public_key,
        trusted: bool = author.trusted,
        since: Option<String> = timestamp(author.trusted_at.as_ref()),
        plugins: &'a [String] = &author.plugin_names,
    }
}

/// `plugins trust`.
#[derive(Debug, Serialize)]
pub(crate) struct TrustedAuthor<'a> {
    pub public_key: &'a str,
    /// False if it was trusted before.
    pub added: bool,
}

/// `plugins untrust`.
#[derive(Debug, Serialize)]
pub(crate) struct UntrustedAuthor<'a> {
    pub public_key: &'a str,
    /// Names of the importers that are disabled by this.
    pub disabled_plugins: &'a [String],
}
