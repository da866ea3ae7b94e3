//! Importer for MemU: memory objects, conversations, saved API responses, rows of its database as JSON, and the SQLite database of version 1.

mod database;
mod detect;
mod generation;
mod layout;
mod map;
mod memory;
mod raw;
mod record_type;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads data of MemU of July 2025, and databases of version 1.
#[derive(Clone, Copy, Debug)]
pub struct MemU;

impl Importer for MemU {
    fn describe() -> Info {
        Info {
            name: "memu",
            version: env!("CARGO_PKG_VERSION"),
            platform: "memu",
            importer_version: generation::DATABASE,
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
