//! Importer for MemU: memory objects, conversations, the API's answers as files, and rows of its database as JSON.

mod detect;
mod generation;
mod layout;
mod map;
mod memory;
mod raw;
mod run;
mod shape;
mod tables;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads what MemU of July 2025 holds.
#[derive(Clone, Copy, Debug)]
pub struct MemU;

impl Importer for MemU {
    fn describe() -> Info {
        Info {
            name: "memu",
            version: env!("CARGO_PKG_VERSION"),
            platform: "memu",
            importer_version: generation::LISTS,
            formats: &generation::FORMATS,
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        detect::detect(bundle)
    }

    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        run::run(format, bundle, sink)
    }
}

export_importer!(MemU);
