//! Importer for ChatGPT exports since 2023: single files and shards, full nodes and slim ones.

mod annotations;
mod assets;
mod codex;
mod detect;
mod group;
mod layout;
mod map;
mod memory;
mod memory_text;
mod raw;
mod record_list;
mod reuse;
mod run;
mod saved_memories;
mod scan;
mod sidecar;
mod textdoc;
mod turn_list;

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
