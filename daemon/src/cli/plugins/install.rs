//! `plugins install` and `plugins upgrade`: shows what a package is, asks, and installs it.

use std::{io::Read as _, path::Path, sync::Arc};

use satchel_core::plain_file;
use satchel_pam::hash::Sha256Digest;
use satchel_proto::{
    integers::unsigned,
    v1::{
        InstallPluginHeader, InstallPluginRequest, Operation, OperationPhase, OperationProgress, Plugin,
        PluginInstallation, install_plugin_request::Part, operation::Result as Reached,
    },
};
use satchel_registry::package::MAX_PACKAGE_BYTES;

use super::{get, render};
use crate::cli::{
    Context,
    args::{PluginArgs, PluginInstallArgs},
    client::DaemonClient,
    confirm,
    error::CliError,
    exit::Exit,
    json::plugin as json,
    operation::unexpected_result,
    secret,
    style::Paint,
    text,
};

/// Bytes of one message of an upload.
const CHUNK_BYTES: usize = 1 << 20;

/// The command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallKind {
    Install,
    /// Another version has to be installed already.
    Upgrade,
}

pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &PluginInstallArgs,
    kind: InstallKind,
) -> Result<Exit, CliError> {
    let package = PackageFile::read(&args.file)?;
    let validation = InstallPluginHeader { validate_only: true, ..InstallPluginHeader::default() };
    let review = package.upload(context, client, validation).await?;
    let installed = match review.replaces_version.as_str() {
        "" if kind == InstallKind::Upgrade && !review.already_installed => {
            return Err(not_installed(&review));
        }
        "" => None,
        _ => Some(get(client, &PluginArgs { name: named(&review).0, version: None }).await?),
    };
    if !context.out.json {
        context.out.print(&render::installation(&review, context.out.style))?;
    }
    if args.dry_run || nothing_to_do(&review) {
        return print_unchanged(context, &review);
    }
    let flags = Flags::new(args, installed.as_ref());
    flags.check(&review)?;
    if !args.yes {
        let interactive = secret::is_interactive() && !context.out.json;
        ask(interactive, &review).await?;
    }
    let header = InstallPluginHeader {
        trust_key: true,
        allow_unsigned: flags.unsigned,
        replace_built_in: flags.replace_built_in,
        allow_downgrade: review.downgrade,
        ..InstallPluginHeader::default()
    };
    let done = package.upload(context, client, header).await?;
    print_installed(context, &done)
}

/// A package that was read into memory.
struct PackageFile {
    bytes: Arc<[u8]>,
    sha256: String,
}

impl PackageFile {
    fn read(path: &Path) -> Result<Self, CliError> {
        let mut bytes = Vec::new();
        let limit = MAX_PACKAGE_BYTES as u64;
        let read =
            plain_file::open_argument(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
        read.map_err(CliError::file("read", path))?;
        if bytes.len() > MAX_PACKAGE_BYTES {
            let path = text::one_line(&path.to_string_lossy());
            let mib = MAX_PACKAGE_BYTES >> 20;
            return Err(CliError::Declined(format!(
                "{path:?} is larger than the {mib} MiB that an importer may have"
            )));
        }
        let sha256 = Sha256Digest::of(&bytes).to_hex();
        Ok(Self { bytes: bytes.into(), sha256 })
    }

    /// Sends the package and follows the operation. The daemon accepts it only if it is the one that was read here.
    async fn upload(
        &self,
        context: &mut Context,
        client: &DaemonClient,
        header: InstallPluginHeader,
    ) -> Result<PluginInstallation, CliError> {
        let header = InstallPluginHeader { sha256: self.sha256.clone(), ..header };
        let spinner = context.out.spinner("sending the importer");
        let bytes = Arc::clone(&self.bytes);
        let chunks = (0..bytes.len()).step_by(CHUNK_BYTES).map(move |start| {
            let end = bytes.len().min(start + CHUNK_BYTES);
            Part::Chunk(bytes[start..end].to_vec())
        });
        let parts = std::iter::once(Part::Header(header)).chain(chunks);
        let messages = parts.map(|part| InstallPluginRequest { part: Some(part) });
        let outcome = async {
            let answer = client.start(client.plugins().install_plugin(tokio_stream::iter(messages))).await?;
            let show = |state: &Operation| spinner.set_message(phase_words(state));
            client.result_of(answer.operation, show).await
        };
        let outcome = outcome.await;
        spinner.finish_and_clear();
        match outcome? {
            Reached::PluginInstallation(installation) => Ok(installation),
            _ => Err(unexpected_result()),
        }
    }
}

/// Returns what the installation is doing.
fn phase_words(operation: &Operation) -> &'static str {
    match operation.progress.as_ref().map(OperationProgress::phase) {
        Some(OperationPhase::Compiling) => "checking and compiling the importer",
        Some(OperationPhase::Installing) => "installing the importer",
        _ => "waiting for another installation",
    }
}

/// What the person agreed to on the command line, now or when an earlier version was installed.
#[derive(Clone, Copy, Debug)]
struct Flags {
    unsigned: bool,
    replace_built_in: bool,
}

impl Flags {
    fn new(args: &PluginInstallArgs, installed: Option<&Plugin>) -> Self {
        // A later version of an importer that replaces one of satchel's does what the person agreed to already.
        let replaces = installed.is_some_and(|installed| installed.replaces_built_in);
        Self { unsigned: args.unsigned, replace_built_in: args.replace_built_in || replaces }
    }

    /// Refuses what needs an option of its own, so that nobody agrees to it by habit.
    fn check(self, review: &PluginInstallation) -> Result<(), CliError> {
        let (name, _) = named(review);
        if review.signer.is_empty() && !self.unsigned {
            return Err(CliError::Declined(format!(
                "{name} is not signed: nothing shows who made it, or whether it was changed; if you know where it comes \
                 from, add --unsigned"
            )));
        }
        if !review.replaces_built_in.is_empty() && !self.replace_built_in {
            let names: Vec<String> =
                review.replaces_built_in.iter().map(|name| text::one_line(name)).collect();
            return Err(CliError::Declined(format!(
                "{name} would be used instead of satchel's own importer for {}; if you want that, add --replace-built-in",
                names.join(", ")
            )));
        }
        Ok(())
    }
}

/// Whether exactly this package is installed and in use.
fn nothing_to_do(review: &PluginInstallation) -> bool {
    let accepted = review.signer.is_empty() || review.key_trusted;
    review.already_installed && review.replaces_version.is_empty() && accepted
}

async fn ask(interactive: bool, review: &PluginInstallation) -> Result<(), CliError> {
    if !interactive {
        return Err(CliError::Declined(
            "cannot ask for confirmation without a terminal; check the importer with --dry-run, then use --yes"
                .to_owned(),
        ));
    }
    if confirm::ask(question(review)).await? { Ok(()) } else { Err(CliError::Cancelled) }
}

fn question(review: &PluginInstallation) -> String {
    let trust = if review.signer.is_empty() || review.key_trusted { "" } else { "trust this key and " };
    match text::one_line(&review.replaces_version).as_str() {
        "" => format!("{trust}install this importer? [y/N] "),
        version if review.downgrade => {
            format!("{trust}go back to this version from {version}, which is newer? [y/N] ")
        }
        version => format!("{trust}use this version instead of {version}? [y/N] "),
    }
}

fn print_unchanged(context: &mut Context, review: &PluginInstallation) -> Result<Exit, CliError> {
    if context.out.json {
        context.out.json(&json::Installation::new(review))?;
    } else if review.already_installed {
        context
            .out
            .note("this package is installed already; `satchel plugins list` shows whether it is enabled");
    } else {
        context.out.note("dry run: nothing was installed");
    }
    Ok(Exit::Done)
}

fn print_installed(context: &mut Context, done: &PluginInstallation) -> Result<Exit, CliError> {
    if context.out.json {
        context.out.json(&json::Installation::new(done))?;
        return Ok(Exit::Done);
    }
    let (name, version) = named(done);
    let mark = context.out.style.paint(Paint::Good, "✓");
    context.out.print(&format!("{mark} installed {name} {version}\n"))?;
    if unsigned(done.reads_differently) > 0 {
        context
            .out
            .note(&format!("`satchel imports again --plugin {name}` reads earlier imports again with it"));
    }
    Ok(Exit::Done)
}

fn not_installed(review: &PluginInstallation) -> CliError {
    let (name, _) = named(review);
    CliError::Declined(format!("no importer {name:?} is installed; `satchel plugins install` installs it"))
}

/// Returns the name and the version of a package.
fn named(review: &PluginInstallation) -> (String, String) {
    let manifest = review.manifest.clone().unwrap_or_default();
    (text::one_line(&manifest.name), text::one_line(&manifest.version))
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::PluginManifest;

    use super::*;

    fn review() -> PluginInstallation {
        let manifest = PluginManifest {
            name: "notes".to_owned(),
            version: "1.1.0".to_owned(),
            ..PluginManifest::default()
        };
        PluginInstallation {
            manifest: Some(manifest),
            signer: "z6MkAna".to_owned(),
            ..PluginInstallation::default()
        }
    }

    fn args(unsigned: bool, replace_built_in: bool) -> PluginInstallArgs {
        PluginInstallArgs { file: "a".into(), dry_run: false, yes: true, unsigned, replace_built_in }
    }

    #[test]
    fn what_needs_an_option_is_refused_without_it_even_with_yes() {
        let unsigned = PluginInstallation { signer: String::new(), ..review() };
        let replacing = PluginInstallation { replaces_built_in: vec!["chatgpt".to_owned()], ..review() };
        let refused = |args: PluginInstallArgs, installed: Option<&Plugin>, review: &PluginInstallation| {
            Flags::new(&args, installed).check(review).err().map(|error| (error.exit(), error.to_string()))
        };
        let missing = refused(args(false, true), None, &unsigned);
        assert!(missing.is_some_and(|(exit, text)| exit == Exit::Failed && text.contains("--unsigned")));
        assert_eq!(refused(args(true, false), None, &unsigned), None);
        let missing = refused(args(true, false), None, &replacing);
        assert!(
            missing.is_some_and(|(exit, text)| exit == Exit::Failed && text.contains("--replace-built-in"))
        );
        assert_eq!(refused(args(false, true), None, &replacing), None);
        let earlier = Plugin { replaces_built_in: true, ..Plugin::default() };
        assert_eq!(refused(args(false, false), Some(&earlier), &replacing), None);
    }

    #[test]
    fn the_question_says_what_is_agreed_to() {
        assert_eq!(question(&review()), "trust this key and install this importer? [y/N] ");
        let known = PluginInstallation { key_trusted: true, ..review() };
        assert_eq!(question(&known), "install this importer? [y/N] ");
        let newer = PluginInstallation { replaces_version: "1.0.0".to_owned(), ..known.clone() };
        assert_eq!(question(&newer), "use this version instead of 1.0.0? [y/N] ");
        let older = PluginInstallation { replaces_version: "2.0.0".to_owned(), downgrade: true, ..known };
        assert_eq!(question(&older), "go back to this version from 2.0.0, which is newer? [y/N] ");
    }

    #[tokio::test]
    async fn without_a_terminal_nothing_is_asked() {
        let refused = ask(false, &review()).await;
        assert!(
            refused.is_err_and(|error| error.exit() == Exit::Failed && error.to_string().contains("--yes"))
        );
    }
}
