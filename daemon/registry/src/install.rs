//! Installs packages: what a package is and would change, and the consent that it needs.

use satchel_plugins::BUILT_IN;

use crate::{
    compile::{self, CompileError, Description},
    files,
    package::{AuthorKey, Manifest, Package, PackageError, version_key},
    plugins::Plugins,
    registry::{Installed, Registry, RegistryError},
};

/// What a package is, and what installing it would change. Made by [`Plugins::review`], which changes nothing.
#[derive(Clone, Debug)]
pub struct Review {
    pub manifest: Manifest,
    /// SHA-256 of the package, 64 hex digits.
    pub sha256: String,
    /// Size of the package in bytes.
    pub bytes: u64,
    pub signer: Option<AuthorKey>,
    /// Whether the person trusts `signer` already.
    pub key_trusted: bool,
    /// Whether exactly this package is installed already.
    pub already_installed: bool,
    /// The version that is in use and that it would replace.
    pub replaces_version: Option<String>,
    /// Whether that version is newer.
    pub downgrade: bool,
    /// The built-in importers whose name or platform it has.
    pub replaces_built_in: Vec<String>,
    /// A built-in importer whose name looks like this one's.
    pub similar_to: Option<String>,
}

/// What the person agrees to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Consent {
    /// To trust the author's key from now on.
    pub trust_key: bool,
    /// To a package that nobody signed.
    pub unsigned: bool,
    /// That it replaces a built-in importer.
    pub replace_built_in: bool,
    /// That it replaces a newer version.
    pub downgrade: bool,
}

/// The reason why a package is not installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The file is no package.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The component cannot be compiled or is refused.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The component says something else of itself than the manifest.
    #[error(
        "the package says that its {field} is {manifest:?}, but the importer in it says {described:?}; do not install it"
    )]
    Mismatch { field: &'static str, manifest: String, described: String },
    /// The author's key is new.
    #[error(
        "{name} is signed by {key}, a key that you do not trust yet; compare it with what its author published"
    )]
    KeyNotTrusted { name: String, key: AuthorKey },
    /// The installed importer of this name was signed by another key.
    #[error(
        "REFUSED: {name} is installed and signed by {installed}, but this package is {}; an update has to be signed by \
         the same key. If its author announced a new key, remove {name} first",
        found.as_ref().map_or_else(|| "unsigned".to_owned(), |key| format!("signed by {key}"))
    )]
    OtherKey { name: String, installed: AuthorKey, found: Option<AuthorKey> },
    /// Nobody signed it.
    #[error("{name} is unsigned: nothing shows who made it or whether it was changed")]
    Unsigned { name: String },
    /// It has the name or the platform of a built-in importer.
    #[error("{name} has the name or the platform of an importer that comes with satchel ({}) and would replace it", taken.join(", "))]
    BuiltIn { name: String, taken: Vec<String> },
    /// A newer version is in use.
    #[error("{name} {installed} is in use, and {found} is older")]
    Downgrade { name: String, installed: String, found: String },
    /// The same version is installed with other content.
    #[error(
        "{name} {version} is installed already, with other content; its author has to give a changed importer a new \
         version, or remove the installed one first"
    )]
    SameVersion { name: String, version: String },
    /// The registry cannot be read or written.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl Plugins {
    /// Compiles a package, lets it describe itself, and tells what installing it would change. Ends early when `stop`
    /// returns true.
    ///
    /// # Errors
    /// The package cannot be installed, whatever the person agrees to.
    pub fn review(&self, package: &Package, stop: &dyn Fn() -> bool) -> Result<Review, InstallError> {
        let review = look_up(package, &*self.registry()?)?;
        check_description(package.manifest(), &self.describe(package, stop)?)?;
        Ok(review)
    }

    /// Installs a package that was reviewed, and uses it instead of other versions of it. Durable when this returns.
    ///
    /// # Errors
    /// A consent is missing, or the registry cannot be written.
    pub fn install(&self, package: &Package, consent: Consent, now: i64) -> Result<Installed, InstallError> {
        let mut refused = None;
        let installed = self.change(|registry| {
            // Another installation may have ended since the review.
            let agreed = look_up(package, registry).and_then(|review| {
                consent.check(&review)?;
                Ok(review)
            });
            match agreed {
                Ok(review) => {
                    let replaces = !review.replaces_built_in.is_empty();
                    registry.add(package, replaces, consent.trust_key, now).map(Some)
                }
                Err(error) => {
                    refused = Some(error);
                    Ok(None)
                }
            }
        })?;
        match (installed, refused) {
            (Some(installed), _) => Ok(installed),
            (None, Some(error)) => Err(error),
            (None, None) => Err(RegistryError::NoFolder.into()),
        }
    }

    /// Compiles a package in a child process, or in this one if no program for it is known.
    fn describe(&self, package: &Package, stop: &dyn Fn() -> bool) -> Result<Description, InstallError> {
        let Some(program) = &self.options().compiler else {
            let refused = |error: &dyn std::error::Error| CompileError::Refused(satchel_source::chain(error));
            let host = self.host().map_err(|error| refused(&error))?;
            let plugin = host.load(package.bytes()).map_err(|error| refused(&error))?;
            return Ok(Description::from(plugin.info()));
        };
        let folder = self.registry()?.folder().to_owned();
        files::create_private_folder(&folder).map_err(RegistryError::io(&folder))?;
        let file = files::write_temporary(&folder, package.bytes()).map_err(RegistryError::io(&folder))?;
        Ok(compile::in_child(program, file.path(), self.options().cache.as_ref(), stop)?)
    }
}

impl Consent {
    /// Checks that the person agreed to everything that the package needs.
    ///
    /// # Errors
    /// The first consent that is missing.
    pub fn check(&self, review: &Review) -> Result<(), InstallError> {
        let name = review.manifest.name.clone();
        match review.signer {
            None if !self.unsigned => return Err(InstallError::Unsigned { name }),
            Some(key) if !review.key_trusted && !self.trust_key => {
                return Err(InstallError::KeyNotTrusted { name, key });
            }
            _ => {}
        }
        if !review.replaces_built_in.is_empty() && !self.replace_built_in {
            return Err(InstallError::BuiltIn { name, taken: review.replaces_built_in.clone() });
        }
        match &review.replaces_version {
            Some(installed) if review.downgrade && !self.downgrade => Err(InstallError::Downgrade {
                name,
                installed: installed.clone(),
                found: review.manifest.version.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// Compares a package with what is installed.
fn look_up(package: &Package, registry: &Registry) -> Result<Review, InstallError> {
    let manifest = package.manifest();
    let (name, sha256, signer) = (&manifest.name, package.sha256_hex(), package.signer().copied());
    let versions: Vec<&Installed> =
        registry.installed().iter().filter(|one| one.manifest.name == *name).collect();
    let already_installed = versions.iter().any(|one| one.sha256 == sha256);
    // The author of a name is whoever signed an installed version of it.
    let author = versions.iter().find_map(|one| one.signer);
    if let Some(installed) = author.filter(|author| Some(*author) != signer) {
        return Err(InstallError::OtherKey { name: name.clone(), installed, found: signer });
    }
    let same = |one: &&Installed| one.manifest.version == manifest.version && one.sha256 != sha256;
    if versions.iter().any(same) {
        return Err(InstallError::SameVersion { name: name.clone(), version: manifest.version.clone() });
    }
    let in_use = versions.iter().find(|one| one.is_current()).filter(|one| one.sha256 != sha256);
    let newer = |version: &str| version_key(version) > version_key(&manifest.version);
    Ok(Review {
        manifest: manifest.clone(),
        bytes: package.bytes().len() as u64,
        key_trusted: signer.is_some_and(|key| registry.trusts(&key)),
        already_installed,
        downgrade: in_use.is_some_and(|one| newer(&one.manifest.version)),
        replaces_version: in_use.map(|one| one.manifest.version.clone()),
        replaces_built_in: taken(manifest),
        similar_to: similar(name),
        sha256,
        signer,
    })
}

fn check_description(manifest: &Manifest, described: &Description) -> Result<(), InstallError> {
    let Description { name, version, platform, importer_version, formats } = described;
    let fields = [
        ("name", manifest.name.clone(), name.clone()),
        ("version", manifest.version.clone(), version.clone()),
        ("platform", manifest.platform.clone(), platform.clone()),
        ("importer version", manifest.importer_version.clone(), importer_version.clone()),
        ("formats", manifest.formats.join(", "), formats.join(", ")),
    ];
    let other = fields.into_iter().find(|(_, manifest, described)| manifest != described);
    other.map_or(Ok(()), |(field, manifest, described)| {
        Err(InstallError::Mismatch { field, manifest, described })
    })
}

/// Returns the built-in importers whose name or platform the manifest has.
fn taken(manifest: &Manifest) -> Vec<String> {
    let takes = |name: &str| name == manifest.name || name == manifest.platform;
    BUILT_IN.iter().filter(|built_in| takes(built_in.name)).map(|built_in| built_in.name.to_owned()).collect()
}

/// Returns a built-in importer that a person could mistake for the one of this name.
fn similar(name: &str) -> Option<String> {
    let plain: String = name.chars().filter(|letter| *letter != '-').collect();
    // Digits that look like letters.
    let plain: String = plain
        .chars()
        .map(|letter| match letter {
            '0' => 'o',
            '1' => 'l',
            '3' => 'e',
            _ => letter,
        })
        .collect();
    let looks_like = |built_in: &&str| {
        name != *built_in
            && (name.split('-').any(|part| part == *built_in)
                || (built_in.len() >= 4 && strsim::damerau_levenshtein(&plain, built_in) <= 1))
    };
    BUILT_IN.iter().map(|built_in| built_in.name).find(looks_like).map(str::to_owned)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
