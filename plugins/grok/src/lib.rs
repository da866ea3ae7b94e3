//! Importer for Grok exports: conversations with their branches, sources and files, generated media, projects, tasks.

mod account;
mod assets;
mod detect;
mod layout;
mod map;
mod media;
mod memory;
mod raw;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads Grok exports.
#[derive(Clone, Copy, Debug)]
pub struct Grok;

impl Importer for Grok {
    fn describe() -> Info {
        Info {
            name: "grok",
            version: env!("CARGO_PKG_VERSION"),
            platform: "grok",
            importer_version: detect::MODERN,
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

export_importer!(Grok);
