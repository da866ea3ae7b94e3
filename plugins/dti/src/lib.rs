//! Importer for the AI conversation history of the Data Transfer Initiative, which any service can export.

mod arrange;
mod contact;
mod detect;
mod map;
mod order;
mod raw;
mod run;
mod senders;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads AI conversation histories in the format of the Data Transfer Initiative.
#[derive(Clone, Copy, Debug)]
pub struct Dti;

impl Importer for Dti {
    fn describe() -> Info {
        Info {
            name: "dti",
            version: env!("CARGO_PKG_VERSION"),
            platform: "dti",
            importer_version: detect::FORMAT,
            formats: &[detect::FORMAT],
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        detect::detect(bundle)
    }

    fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        run::run(format, bundle, sink)
    }
}

export_importer!(Dti);
