//! Importers of others: what it costs to have thirty of them installed, and how fast the importers of the three
//! templates are, each of which `satchel plugins new` creates and `satchel plugins build` builds.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::{generate, packages};

use crate::{
    RUNS,
    importer::run_component,
    median, megabytes, print_line,
    process::{DaemonProcess, run_with, satchel_program},
};

/// Number of importers that are installed beside the built-in ones.
const INSTALLED: usize = 30;
const LANGUAGES: [&str; 3] = ["rust", "javascript", "python"];

pub(crate) fn all(folder: &Path, megabytes: u64) -> Result<()> {
    let program = satchel_program()?;
    thirty_installed(&program, folder)?;
    let export = folder.join("notes");
    generate::notes(&export, megabytes * 1_000_000, 1)?;
    for language in LANGUAGES {
        match build_template(&program, language, &folder.join(language)) {
            Ok(package) => template(&program, language, (&package, &export), folder)?,
            Err(error) => print_line(&format!("template in {language}: not measured: {error:#}")),
        }
    }
    fs::remove_dir_all(&export)?;
    Ok(())
}

/// Runs the program on the data directory `data`, with the caches of a user of its own.
struct User<'a> {
    program: &'a PathBuf,
    home: PathBuf,
    data: PathBuf,
}

impl User<'_> {
    fn run(&self, words: &[&dyn AsRef<OsStr>]) -> Result<f64> {
        let data: [&dyn AsRef<OsStr>; 2] = [&"--data-dir", &self.data];
        let words: Vec<&OsStr> = data.iter().chain(words).map(AsRef::as_ref).collect();
        let variables: [(&str, &Path); 3] =
            [("HOME", &self.home), ("XDG_CACHE_HOME", &self.home), ("XDG_STATE_HOME", &self.home)];
        Ok(run_with(self.program, &words, &variables)?.seconds)
    }

    fn install(&self, package: &Path) -> Result<f64> {
        self.run(&[&"plugins", &"install", &"--yes", &"--unsigned", &package])
    }
}

/// Measures the start of a daemon and an import of 100 kB without installed importers and with thirty, whose files the
/// export does not contain; the runs alternate.
fn thirty_installed(program: &PathBuf, scratch: &Path) -> Result<()> {
    let (export, file) = (scratch.join("tiny"), scratch.join("package.satchel"));
    generate::chatgpt(&export, 100_000, 3)?;
    let user = |data: &str| User { program, home: scratch.join("user"), data: scratch.join(data) };
    let (without, with) = (user("without"), user("with"));
    let mut install = Vec::new();
    for number in 0..INSTALLED {
        let package = packages::unsigned("good", &format!("impor{number:02}"), "1.2.3")?;
        fs::write(&file, package.bytes())?;
        install.push(with.install(&file)?);
    }
    let (mut start, mut import) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..=RUNS {
        for (user, (start, import)) in [&without, &with].into_iter().zip(start.iter_mut().zip(&mut import)) {
            let begun = Instant::now();
            let daemon = DaemonProcess::start(program, &user.data)?;
            start.push(begun.elapsed().as_secs_f64() * 1e3);
            daemon.stop()?;
            import.push(user.run(&[&"import", &"--again", &export])? * 1e3);
        }
    }
    // The first turn creates the data directory and compiles the importer of the export.
    let [start_without, start_with] = start.map(|times| median(times[1..].to_vec()));
    let [import_without, import_with] = import.map(|times| median(times[1..].to_vec()));
    print_line(&format!(
        "a small importer is installed in {:.2} s; with {INSTALLED} of them a daemon starts in {start_with:.0} ms, without in \
         {start_without:.0} ms; an import of 100 kB that needs none of them {import_with:.0} ms, without them {import_without:.0} ms",
        median(install)
    ));
    for place in [export, user("with").data, user("without").data, user("with").home] {
        fs::remove_dir_all(place)?;
    }
    fs::remove_file(file)?;
    Ok(())
}

/// Measures the install of a template's importer, the importer alone, and an import with it.
fn template(program: &PathBuf, language: &str, files: (&Path, &Path), scratch: &Path) -> Result<()> {
    let (package, export) = files;
    let component = fs::read(package)?;
    let (mut install, mut import, mut alone, mut memory) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let cache = scratch.join("template-cache");
    for turn in 0..RUNS {
        // A user of its own each time, so that the importer is compiled at each install.
        let user = User { program, home: scratch.join("user"), data: scratch.join(format!("user-{turn}")) };
        install.push(user.install(package)?);
        import.push(user.run(&[&"import", &export])?);
        fs::remove_dir_all(&user.data)?;
        fs::remove_dir_all(&user.home)?;
        let run = run_component(&component, export, &cache)?;
        alone.push(run.seconds);
        memory = memory.max(run.memory_mib);
    }
    fs::remove_dir_all(&cache)?;
    let size = megabytes(export)?;
    print_line(&format!(
        "template in {language}: {:.1} MB, installed in {:.1} s; alone {:.0} MB/s and {memory} MiB of its memory; import of {size:.0} MB \
         in {:.1} s",
        megabytes_of(&component),
        median(install),
        size / median(alone),
        median(import)
    ));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "the size of a file")]
fn megabytes_of(bytes: &[u8]) -> f64 {
    bytes.len() as f64 / 1e6
}

/// Creates and builds the project of a language in `project`; returns the path of its package.
fn build_template(program: &PathBuf, language: &str, project: &Path) -> Result<PathBuf> {
    let name = format!("notes-{language}");
    step(Command::new(program).args(["plugins", "new", &name, "--language", language]).arg(project))?;
    let tools: &[&[&str]] = match language {
        "javascript" => &[&["npm", "install", "--no-audit", "--no-fund"]],
        "python" => {
            &[&["python3", "-m", "venv", ".venv"], &[".venv/bin/pip", "install", "-r", "requirements.txt"]]
        }
        _ => &[],
    };
    for words in tools {
        let (tool, arguments) = words.split_first().context("no tool")?;
        let tool = if tool.starts_with('.') { project.join(tool) } else { PathBuf::from(tool) };
        step(Command::new(tool).args(arguments).current_dir(project))?;
    }
    step(Command::new(program).args(["plugins", "build"]).arg(project))?;
    Ok(project.join(format!("{name}-0.1.0.satchel")))
}

fn step(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
