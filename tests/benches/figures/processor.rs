//! The processor on which the figures were measured: they differ by a factor of three between processors.

use std::{fs, thread};

/// The flags for SHA-256 instructions in `/proc/cpuinfo`, on x86 and on ARM.
const SHA: [&str; 2] = ["sha_ni", "sha2"];

/// Returns one line about the processor: its name, the number of processors, and whether it has SHA-256 instructions.
pub(crate) fn line() -> String {
    describe(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), processors())
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn describe(info: &str, processors: usize) -> String {
    let value = |keys: &[&str]| {
        let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| keys.contains(&key.trim())).map(|(_, value)| value.trim().to_owned())
    };
    let name = value(&["model name", "Model", "CPU part"]).unwrap_or_else(|| "unknown".to_owned());
    let sha = match value(&["flags", "Features"]) {
        None => "not known whether with SHA instructions",
        Some(flags) if flags.split_whitespace().any(|flag| SHA.contains(&flag)) => "with SHA instructions",
        Some(_) => "without SHA instructions",
    };
    format!("processor: {name}, {processors} of it, {}, {sha}", std::env::consts::ARCH)
}
