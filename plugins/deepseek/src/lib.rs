//! Importer for DeepSeek exports: conversations with their branches, thoughts, searches and sources.

mod detect;
mod map;
mod raw;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads DeepSeek exports.
#[derive(Clone, Copy, Debug)]
pub struct DeepSeek;

impl Importer for DeepSeek {
    fn describe() -> Info {
        Info {
            name: "deepseek",
            version: env!("CARGO_PKG_VERSION"),
            platform: "deepseek",
            importer_version: detect::FRAGMENTS,
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

export_importer!(DeepSeek);
