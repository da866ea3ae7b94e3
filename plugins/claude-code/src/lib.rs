//! Importer for Claude Code: its sessions, those of its subagents, and its memory files.

mod detect;
mod layout;
mod map;
mod memory;
mod outline;
mod raw;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the files in `~/.claude`.
#[derive(Clone, Copy, Debug)]
pub struct ClaudeCode;

impl Importer for ClaudeCode {
    fn describe() -> Info {
        Info {
            name: "claude-code",
            version: env!("CARGO_PKG_VERSION"),
            platform: "claude-code",
            importer_version: detect::SESSIONS,
            formats: &detect::FORMATS,
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        detect::detect(bundle)
    }

    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        run::run(format, bundle, sink)
    }
}

export_importer!(ClaudeCode);
