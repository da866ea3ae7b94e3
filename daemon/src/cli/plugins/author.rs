//! The commands of `plugins` for the author of an importer. They need neither a daemon nor a data directory.

mod check;
mod run;

use std::path::{Path, PathBuf};

use satchel_authoring::{
    build::{self, Built, Progress},
    keys::{self, KeyError, Signed},
    language::Language,
    new::{self, Created},
};
use satchel_host::CodeCache;
use satchel_registry::package::EXTENSION;
use satchel_source::CancelToken;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{
    args::{AuthorCommand, BuildArgs, KeyCommand, LanguageArg, NewArgs, SignArgs},
    error::CliError,
    exit::Exit,
    output::Output,
    properties::Properties,
    style::Paint,
    text,
};

/// The folder of fixtures in a project.
const FIXTURES: &str = "fixtures";

/// What the commands need of the environment.
pub(crate) struct AuthorContext<'a> {
    pub out: &'a mut Output,
    /// The folder of the user's configuration files; none if there is no home directory.
    pub config_home: Option<PathBuf>,
    pub cache: Option<CodeCache>,
}

/// Runs one of the commands.
///
/// # Errors
/// Returns an error that says what is missing and how to get it.
pub(crate) fn run(context: &mut AuthorContext<'_>, command: &AuthorCommand) -> Result<Exit, CliError> {
    match command {
        AuthorCommand::New(args) => new_project(context, args),
        AuthorCommand::Build(args) => build_project(context, args),
        AuthorCommand::Test(args) => check::run(context, args),
        AuthorCommand::Run(args) => run::run(context, args),
        AuthorCommand::Key(KeyCommand::New { key_file }) => new_key(context, key_file.as_deref()),
        AuthorCommand::Sign(args) => sign(context, args),
    }
}

/// What `plugins new --json` prints.
#[derive(Debug, Serialize)]
struct CreatedJson<'a> {
    name: &'a str,
    language: &'static str,
    folder: String,
    files: &'a [String],
    /// The commands to run next in the folder.
    next: &'a [String],
}

fn new_project(context: &mut AuthorContext<'_>, args: &NewArgs) -> Result<Exit, CliError> {
    let NewArgs { name, language, dir } = args;
    let language = match language {
        LanguageArg::Rust => Language::Rust,
        LanguageArg::Javascript => Language::JavaScript,
        LanguageArg::Python => Language::Python,
    };
    let folder = dir.clone().unwrap_or_else(|| PathBuf::from(name));
    let created = new::new(name, language, &folder).map_err(|error| failed("write the project", error))?;
    let Created { folder, name, language, files, next } = &created;
    let folder = text::one_line(&folder.to_string_lossy());
    if context.out.json {
        context.out.json(&CreatedJson { name, language: language.name(), folder, files, next })?;
        return Ok(Exit::Done);
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    let files = text::count(files.len() as u64, "file", "files");
    context.out.print(&format!("{mark} wrote {name} into {folder}: {files}\n"))?;
    context.out.note("next:");
    context.out.note(&format!("  cd {}", text::shell_quoted(&folder)));
    for command in next {
        context.out.note(&format!("  {command}"));
    }
    Ok(Exit::Done)
}

/// What `plugins build --json` and `plugins sign --json` print.
#[derive(Debug, Serialize)]
struct PackageJson {
    path: String,
    name: String,
    version: String,
    sha256: String,
    bytes: u64,
    /// Null if it is not signed.
    signer: Option<String>,
    /// The tools that built it; only for `build`.
    #[serde(skip_serializing_if = "Option::is_none")]
    toolchain: Option<String>,
    /// The key that had signed it before; only for `sign`.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
}

fn build_project(context: &mut AuthorContext<'_>, args: &BuildArgs) -> Result<Exit, CliError> {
    let BuildArgs { dir, sign, key_file } = args;
    let key_path = sign.then(|| key_path(context, key_file.as_deref())).transpose()?;
    let key = key_path.map(|path| keys::load(&path).map_err(key_error)).transpose()?;
    let out = &mut *context.out;
    let mut progress = |progress: Progress<'_>| match progress {
        Progress::Step(step) => out.note(&text::one_line(step)),
        Progress::Output(line) => out.note(&format!("  {}", text::one_line(line))),
    };
    let built = build::build(dir, key.as_ref(), &mut progress);
    let built = built.map_err(|error| failed("build the importer", error))?;
    let Built { path, name, version, sha256, bytes, toolchain, signer } = built;
    let package = PackageJson {
        path: path.to_string_lossy().into_owned(),
        name,
        version,
        sha256,
        bytes,
        signer: signer.map(|key| key.to_string()),
        toolchain: Some(toolchain),
        replaced: None,
    };
    print_package(context.out, &package)?;
    if package.signer.is_none() {
        context
            .out
            .note("`satchel plugins sign FILE` signs it; others need --unsigned to install it otherwise");
    }
    Ok(Exit::Done)
}

fn sign(context: &mut AuthorContext<'_>, args: &SignArgs) -> Result<Exit, CliError> {
    let SignArgs { file, key_file } = args;
    let key = keys::load(&key_path(context, key_file.as_deref())?).map_err(key_error)?;
    let signed = keys::sign(file, &key).map_err(|error| failed("sign the package", error))?;
    let Signed { path, name, version, key, replaced, sha256, bytes } = signed;
    let package = PackageJson {
        path: path.to_string_lossy().into_owned(),
        name,
        version,
        sha256,
        bytes,
        signer: Some(key.to_string()),
        toolchain: None,
        replaced: replaced.map(|key| key.to_string()),
    };
    print_package(context.out, &package)?;
    if let Some(replaced) = &package.replaced {
        context.out.note(&format!(
            "the signature of {replaced} was replaced; who installed an earlier version with that key has to remove it \
             before this one can be installed"
        ));
    }
    Ok(Exit::Done)
}

fn print_package(out: &mut Output, package: &PackageJson) -> Result<(), CliError> {
    if out.json {
        return out.json(package);
    }
    let PackageJson { path, name, version, sha256, bytes, signer, toolchain, replaced: _ } = package;
    let mut properties = Properties::new();
    properties.add_painted("package", path, Paint::Strong);
    properties.add("importer", &format!("{name} {version}"));
    properties.add("signed by", signer.as_deref().unwrap_or("nobody"));
    properties.add("size", &text::bytes(*bytes));
    properties.add_optional("built with", toolchain.as_deref());
    properties.add_painted("sha256", sha256, Paint::Dim);
    out.print(&properties.render(out.style))
}

/// What `plugins key new --json` prints.
#[derive(Debug, Serialize)]
struct KeyJson {
    public_key: String,
    path: String,
}

fn new_key(context: &mut AuthorContext<'_>, key_file: Option<&Path>) -> Result<Exit, CliError> {
    let path = key_path(context, key_file)?;
    let key = keys::key_new(&path).map_err(key_error)?;
    let path = text::one_line(&path.to_string_lossy());
    if context.out.json {
        context.out.json(&KeyJson { public_key: key.to_string(), path })?;
        return Ok(Exit::Done);
    }
    let mut properties = Properties::new();
    properties.add_painted("public key", &key.to_string(), Paint::Id);
    properties.add("secret key", &path);
    context.out.print(&properties.render(context.out.style))?;
    context
        .out
        .note("publish the public key where people find your importers, and keep a copy of the secret one:");
    context.out.note("without it you cannot sign an upgrade of what you signed with it");
    Ok(Exit::Done)
}

fn key_path(context: &AuthorContext<'_>, key_file: Option<&Path>) -> Result<PathBuf, CliError> {
    let usual = || context.config_home.as_ref().map(|home| home.join("satchel").join(keys::FILE_NAME));
    let path = key_file.map(Path::to_owned).or_else(usual);
    path.ok_or_else(|| {
        CliError::Usage("HOME is not set; name the file of the key with --key-file".to_owned())
    })
}

/// Returns the error; what is missing or open to others is said by its own message.
fn key_error(error: KeyError) -> CliError {
    match error {
        KeyError::Io { .. } | KeyError::Random(_) => failed("use the key", error),
        error => CliError::Declined(error.to_string()),
    }
}

fn failed(action: &str, error: impl std::error::Error + Send + Sync + 'static) -> CliError {
    CliError::step(format!("cannot {action}"), error)
}

/// Returns the package that a path names: the file, or the newest package in a project's folder.
fn package_at(path: &Path) -> Result<PathBuf, CliError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let listed = std::fs::read_dir(path).map_err(CliError::file("read", path))?;
    let packages = listed
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION) && path.is_file());
    let newest = packages.max_by_key(|path| {
        let modified = path.metadata().and_then(|about| about.modified()).ok();
        (modified, path.clone())
    });
    newest.ok_or_else(|| {
        let folder = text::one_line(&path.to_string_lossy());
        CliError::Declined(format!("there is no package in {folder:?}; `satchel plugins build` makes one"))
    })
}

/// Reads a package or component. The size is limited where it is loaded.
fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(CliError::file("read", path))
}

/// Returns a token that is set when Ctrl-C is pressed, so that what is running ends in order.
fn cancel_on_interrupt() -> Result<CancelToken, CliError> {
    let failed = |error| CliError::step("cannot listen for SIGINT", error);
    let cancel = CancelToken::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut interrupts = {
        let _guard = runtime.enter();
        signal(SignalKind::interrupt()).map_err(failed)?
    };
    let set = cancel.clone();
    std::thread::spawn(move || {
        runtime.block_on(async {
            if interrupts.recv().await.is_some() {
                set.cancel();
            }
        });
    });
    Ok(cancel)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_of_a_project_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        assert!(package_at(folder.path()).is_err_and(|error| error.to_string().contains("plugins build")));
        let now = std::time::SystemTime::now();
        for (name, age) in [("notes-0.2.0.satchel", 60), ("notes-0.1.0.satchel", 120), ("notes.wasm", 0)] {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - std::time::Duration::from_secs(age)).unwrap();
        }
        assert_eq!(package_at(folder.path()).unwrap(), folder.path().join("notes-0.2.0.satchel"));
        let file = folder.path().join("notes.wasm");
        assert_eq!(package_at(&file).unwrap(), file);
    }

    #[test]
    fn a_key_is_made_once_and_signs_nothing_that_is_no_package() {
        let folder = tempfile::tempdir().unwrap();
        let (mut out, results, _) = Output::in_memory(true);
        let config_home = Some(folder.path().to_owned());
        let mut context = AuthorContext { out: &mut out, config_home, cache: None };
        assert_eq!(new_key(&mut context, None).unwrap(), Exit::Done);
        assert!(results.text().contains("\"public_key\": \"z6Mk"), "{}", results.text());
        let again = new_key(&mut context, None);
        assert!(
            again.is_err_and(|error| error.exit() == Exit::Failed && error.to_string().contains("exists"))
        );
        let file = folder.path().join("notes.satchel");
        std::fs::write(&file, "hello").unwrap();
        let refused = sign(&mut context, &SignArgs { file, key_file: None });
        assert!(refused.is_err_and(|error| error.report().contains("not a WebAssembly component")));
    }
}
