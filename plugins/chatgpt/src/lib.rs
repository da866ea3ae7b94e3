//! Importer for ChatGPT exports: single files and shards, full nodes and slim ones, from 2023 to today's.

mod alone;
mod assets;
mod codex;
mod detect;
mod group;
mod known;
mod layout;
mod map;
mod memory;
mod memory_text;
mod raw;
mod remarks;
mod run;
mod scan;
mod sidecar;
mod source;
mod stored;
mod textdoc;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads ChatGPT exports.
#[derive(Clone, Copy, Debug)]
pub struct ChatGpt;

impl Importer for ChatGpt {
    fn describe() -> Info {
        Info {
            name: "chatgpt",
            version: env!("CARGO_PKG_VERSION"),
            platform: "chatgpt",
            importer_version: "chatgpt-importer/2026.07",
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

export_importer!(ChatGpt);
