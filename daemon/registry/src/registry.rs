//! The installed importers and the authors' keys, as stored in the folder `plugins` of a data directory.
//!
//! The folder has one file for each package, named after its SHA-256, and `registry.json`, which lists them. Replacing
//! `registry.json` is the commit point of every change: a package that it does not list is not installed, and is
//! removed at the next start.
//!
//! **Invariant:** after a kill at any moment the set of installed importers is the one before or after the change;
//! held by `a_killed_install_leaves_the_old_or_the_new_set` in `daemon/tests/plugins.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    files,
    importer::read_installed,
    package::{AuthorKey, EXTENSION, Manifest, Package, version_key},
};

const FILE: &str = "registry.json";
const FORMAT: u32 = 1;
/// Largest `registry.json` that is read, in bytes: a thousand importers with long manifests.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The reason why the installed importers cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No such importer is installed.
    #[error("no importer {name:?}{} is installed; `satchel plugins list` shows those that are", version.as_ref().map(|it| format!(" {it}")).unwrap_or_default())]
    NotInstalled { name: String, version: Option<String> },
    /// Importers that come with the program cannot be changed.
    #[error("the importer {name:?} comes with the program; it cannot be disabled or removed")]
    BuiltIn { name: String },
    /// The key is not known here.
    #[error("no importer is signed by {key}, and it is not trusted; `satchel plugins keys` lists the keys")]
    UnknownKey { key: AuthorKey },
    /// A file cannot be read or written.
    #[error("cannot read or write {path:?}")]
    Io { path: PathBuf, source: io::Error },
    /// `registry.json` is damaged, or was written by a newer version of the program.
    #[error(
        "{path:?} cannot be read: {reason}; installed importers are not used until it is restored from a backup, or \
         moved away and the importers are installed again"
    )]
    Damaged { path: PathBuf, reason: String },
    /// This process has no folder for installed importers.
    #[error("importers cannot be installed here: there is no data directory")]
    NoFolder,
}

impl RegistryError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// An installed importer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// Its manifest, as in the package.
    pub manifest: Manifest,
    /// SHA-256 of the package, 64 hex digits.
    pub sha256: String,
    /// Size of the package in bytes.
    pub bytes: u64,
    /// The author's key; `None` if the package is unsigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<AuthorKey>,
    /// Whether the importer is used. See [`InstalledState`] for what else it needs.
    pub state: InstalledState,
    /// Whether the person agreed that it replaces an importer that comes with the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_built_in: bool,
    /// When it was installed, in microseconds since the Unix epoch.
    pub installed_at: i64,
    /// Runs in a row that the importer itself ended badly.
    #[serde(default)]
    pub failures: u32,
    /// The reason of the last such run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

impl Installed {
    /// Whether it is the version that is used, or would be if it were enabled.
    pub fn is_current(&self) -> bool {
        self.state != InstalledState::Superseded
    }
}

/// Whether an installed importer is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstalledState {
    /// It is asked about every source that fits its manifest.
    Enabled,
    /// The person disabled it.
    DisabledByUser,
    /// It failed too often in a row.
    DisabledAfterFailures,
    /// The person no longer trusts its author's key.
    KeyNotTrusted,
    /// Another version of it is used.
    Superseded,
}

/// The key of an author, and whether the person trusts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    pub key: AuthorKey,
    pub trusted: bool,
    /// When the person began to trust it, in microseconds since the Unix epoch; 0 if never.
    pub since: i64,
    /// The names of installed importers that it signed.
    pub importers: Vec<String>,
}

/// The content of `registry.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    importers: Vec<Installed>,
    /// The trusted keys, and when trust began.
    #[serde(default)]
    trusted: BTreeMap<AuthorKey, i64>,
}

/// The installed importers. One process at a time opens the folder: the one that holds the data directory's lock.
#[derive(Debug)]
pub struct Registry {
    folder: PathBuf,
    stored: Stored,
}

impl Registry {
    /// Reads the folder, which need not exist.
    ///
    /// # Errors
    /// `registry.json` cannot be read or understood.
    pub fn open(folder: &Path) -> Result<Self, RegistryError> {
        let stored = match files::read_limited(&folder.join(FILE), MAX_FILE_BYTES) {
            Ok(bytes) => parse(&folder.join(FILE), &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Stored { format: FORMAT, importers: Vec::new(), trusted: BTreeMap::new() }
            }
            Err(error) => return Err(RegistryError::io(&folder.join(FILE))(error)),
        };
        Ok(Self { folder: folder.to_owned(), stored })
    }

    /// Returns the installed importers, by name, the newest version of each first.
    pub fn installed(&self) -> &[Installed] {
        &self.stored.importers
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a package.
    pub fn path(&self, sha256: &str) -> PathBuf {
        self.folder.join(format!("{sha256}.{EXTENSION}"))
    }

    /// Returns the installed importers whose package cannot be read or was changed, each with its problem.
    pub fn damaged(&self) -> Vec<(&Installed, String)> {
        let check = |installed: &Installed| read_installed(installed, &self.path(&installed.sha256)).err();
        self.installed().iter().filter_map(|installed| Some((installed, check(installed)?))).collect()
    }

    /// Returns the keys that are trusted or signed an installed importer.
    pub fn authors(&self) -> Vec<Author> {
        let mut importers: BTreeMap<AuthorKey, BTreeSet<String>> =
            self.stored.trusted.keys().map(|key| (*key, BTreeSet::new())).collect();
        for installed in &self.stored.importers {
            if let Some(key) = installed.signer {
                importers.entry(key).or_default().insert(installed.manifest.name.clone());
            }
        }
        let author = |(key, names): (AuthorKey, BTreeSet<String>)| Author {
            key,
            trusted: self.trusts(&key),
            since: self.stored.trusted.get(&key).copied().unwrap_or_default(),
            importers: names.into_iter().collect(),
        };
        importers.into_iter().map(author).collect()
    }

    /// Returns whether the person trusts `key`.
    pub fn trusts(&self, key: &AuthorKey) -> bool {
        self.stored.trusted.contains_key(key)
    }

    /// Adds a package and uses it instead of other versions of it. `trust` adds its key to the trusted ones. Durable
    /// when this returns.
    pub(crate) fn add(
        &mut self,
        package: &Package,
        replaces_built_in: bool,
        trust: bool,
        now: i64,
    ) -> Result<Installed, RegistryError> {
        let installed = Installed {
            manifest: package.manifest().clone(),
            sha256: package.sha256_hex(),
            bytes: package.bytes().len() as u64,
            signer: package.signer().copied(),
            state: InstalledState::Enabled,
            replaces_built_in,
            installed_at: now,
            failures: 0,
            last_failure: None,
        };
        files::create_private_folder(&self.folder).map_err(RegistryError::io(&self.folder))?;
        let path = self.path(&installed.sha256);
        files::write_durably(&path, package.bytes()).map_err(RegistryError::io(&path))?;
        satchel_failpoints::reached("plugin file written");
        self.change(|stored| {
            stored.importers.retain(|other| other.sha256 != installed.sha256);
            for other in same_name(&mut stored.importers, &installed.manifest.name) {
                other.state = InstalledState::Superseded;
            }
            if let (true, Some(key)) = (trust, installed.signer) {
                stored.trusted.entry(key).or_insert(now);
            }
            stored.importers.push(installed.clone());
        })?;
        Ok(installed)
    }

    /// Enables or disables an importer: the version that is used, or the given one instead of it.
    pub(crate) fn set_enabled(
        &mut self,
        name: &str,
        version: Option<&str>,
        enabled: bool,
    ) -> Result<Installed, RegistryError> {
        let found = self.find(name, version)?;
        let sha256 = found.sha256.clone();
        let known = found.signer.is_none_or(|key| self.trusts(&key));
        self.change(|stored| {
            for installed in same_name(&mut stored.importers, name) {
                if installed.sha256 != sha256 {
                    // The version in use stays in use if this one cannot be.
                    if enabled && known {
                        installed.state = InstalledState::Superseded;
                    }
                } else if enabled {
                    installed.state =
                        if known { InstalledState::Enabled } else { InstalledState::KeyNotTrusted };
                    installed.failures = 0;
                } else {
                    installed.state = InstalledState::DisabledByUser;
                }
            }
        })?;
        self.stored
            .importers
            .iter()
            .find(|installed| installed.sha256 == sha256)
            .cloned()
            .ok_or_else(|| not_installed(name, version))
    }

    /// Removes one version of an importer, or all of them. If the version in use is removed, the newest other one is
    /// used. Durable when this returns.
    pub(crate) fn remove(
        &mut self,
        name: &str,
        version: Option<&str>,
    ) -> Result<Vec<Installed>, RegistryError> {
        self.find(name, version)?;
        let goes = |one: &Installed| {
            one.manifest.name == name && version.is_none_or(|version| one.manifest.version == version)
        };
        let removed: Vec<Installed> = self.stored.importers.iter().filter(|one| goes(one)).cloned().collect();
        self.change(|stored| {
            stored.importers.retain(|one| !goes(one));
            let mut rest: Vec<&mut Installed> = same_name(&mut stored.importers, name).collect();
            if rest.iter().all(|one| one.state == InstalledState::Superseded)
                && let Some(newest) = rest.first_mut()
            {
                newest.state = InstalledState::Enabled;
            }
        })?;
        satchel_failpoints::reached("plugin unlisted");
        self.remove_unlisted();
        Ok(removed)
    }

    /// Trusts a key. Returns false if it was trusted already.
    pub(crate) fn trust(&mut self, key: AuthorKey, now: i64) -> Result<bool, RegistryError> {
        if self.trusts(&key) {
            return Ok(false);
        }
        self.change(|stored| {
            stored.trusted.insert(key, now);
            for installed in stored.importers.iter_mut().filter(|one| one.signer == Some(key)) {
                if installed.state == InstalledState::KeyNotTrusted {
                    installed.state = InstalledState::Enabled;
                }
            }
        })?;
        Ok(true)
    }

    /// Stops trusting a key, and using the importers that it signed. Returns their names.
    pub(crate) fn untrust(&mut self, key: AuthorKey) -> Result<Vec<String>, RegistryError> {
        let of_key = |one: &Installed| one.signer == Some(key);
        if !self.trusts(&key) && !self.stored.importers.iter().any(of_key) {
            return Err(RegistryError::UnknownKey { key });
        }
        let mut names = BTreeSet::new();
        self.change(|stored| {
            stored.trusted.remove(&key);
            for installed in stored.importers.iter_mut().filter(|one| of_key(one)) {
                if installed.state == InstalledState::Enabled {
                    installed.state = InstalledState::KeyNotTrusted;
                    names.insert(installed.manifest.name.clone());
                }
            }
        })?;
        Ok(names.into_iter().collect())
    }

    /// Records how a run of an importer ended: `failure` is the reason if the importer itself ended it badly. Returns
    /// true if that disabled the importer. Writes nothing if nothing changes.
    pub(crate) fn record_run(
        &mut self,
        sha256: &str,
        failure: Option<&str>,
        most: u32,
    ) -> Result<bool, RegistryError> {
        let known = self.stored.importers.iter().find(|one| one.sha256 == sha256);
        let Some(known) = known.filter(|one| failure.is_some() || one.failures > 0) else { return Ok(false) };
        let failures = if failure.is_some() { known.failures + 1 } else { 0 };
        let disabled = failures >= most && known.state == InstalledState::Enabled;
        self.change(|stored| {
            for installed in stored.importers.iter_mut().filter(|one| one.sha256 == sha256) {
                installed.failures = failures;
                installed.last_failure = failure.map(str::to_owned).or_else(|| installed.last_failure.take());
                if disabled {
                    installed.state = InstalledState::DisabledAfterFailures;
                }
            }
        })?;
        Ok(disabled)
    }

    /// Returns the given version, or the one that is or was last used.
    fn find(&self, name: &str, version: Option<&str>) -> Result<&Installed, RegistryError> {
        let mut named = self.stored.importers.iter().filter(|one| one.manifest.name == name);
        let found = match version {
            Some(version) => named.find(|one| one.manifest.version == version),
            None => named.min_by_key(|one| one.state == InstalledState::Superseded),
        };
        found.ok_or_else(|| not_installed(name, version))
    }

    /// Writes a changed copy and uses it once it is durable.
    fn change(&mut self, change: impl FnOnce(&mut Stored)) -> Result<(), RegistryError> {
        let mut stored = self.stored.clone();
        change(&mut stored);
        sort(&mut stored.importers);
        files::create_private_folder(&self.folder).map_err(RegistryError::io(&self.folder))?;
        let path = self.folder.join(FILE);
        let json =
            serde_json::to_vec_pretty(&stored).map_err(|error| RegistryError::io(&path)(error.into()))?;
        files::write_durably(&path, &json).map_err(RegistryError::io(&path))?;
        satchel_failpoints::reached("plugin registry written");
        self.stored = stored;
        Ok(())
    }

    /// Removes packages that are not listed, and unfinished files: what an interrupted change left behind. A file that
    /// cannot be removed does no harm.
    pub(crate) fn remove_unlisted(&self) {
        let listed: BTreeSet<PathBuf> =
            self.stored.importers.iter().map(|installed| self.path(&installed.sha256)).collect();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let package = path.extension().is_some_and(|extension| extension == EXTENSION);
            let unlisted = (package && !listed.contains(&path)) || files::is_unfinished(&path);
            if unlisted && let Err(error) = fs::remove_file(&path) {
                tracing::debug!(%error, ?path, "an unlisted file of an importer stays behind");
            }
        }
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Stored, RegistryError> {
    let damaged = |reason: String| RegistryError::Damaged { path: path.to_owned(), reason };
    let mut stored: Stored = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if stored.format != FORMAT {
        return Err(damaged(format!(
            "it has format {}, and this program knows format {FORMAT}",
            stored.format
        )));
    }
    for installed in &stored.importers {
        installed.manifest.check().map_err(|error| damaged(error.to_string()))?;
        let plain = installed.sha256.len() == 64 && installed.sha256.bytes().all(|it| it.is_ascii_hexdigit());
        if !plain {
            return Err(damaged("the checksum of an importer is not valid".to_owned()));
        }
    }
    sort(&mut stored.importers);
    Ok(stored)
}

/// By name, the newest version first.
fn sort(importers: &mut [Installed]) {
    importers.sort_by(|one, other| {
        let versions = version_key(&other.manifest.version).cmp(&version_key(&one.manifest.version));
        one.manifest.name.cmp(&other.manifest.name).then(versions)
    });
}

fn same_name<'a>(importers: &'a mut [Installed], name: &'a str) -> impl Iterator<Item = &'a mut Installed> {
    importers.iter_mut().filter(move |installed| installed.manifest.name == name)
}

fn not_installed(name: &str, version: Option<&str>) -> RegistryError {
    RegistryError::NotInstalled { name: name.to_owned(), version: version.map(str::to_owned) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
