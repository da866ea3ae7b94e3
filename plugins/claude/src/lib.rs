//! Importer for Claude exports: flat ones, linear and branching, and those with one archive for each category.

mod detect;
mod layout;
mod map;
mod memory;
mod raw;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads Claude exports.
#[derive(Clone, Copy, Debug)]
pub struct Claude;

impl Importer for Claude {
    fn describe() -> Info {
        Info {
            name: "claude",
            version: env!("CARGO_PKG_VERSION"),
            platform: "claude",
            importer_version: detect::BATCHED,
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

export_importer!(Claude);
