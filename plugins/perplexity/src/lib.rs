//! Importer for Perplexity threads that browser tools save: as turns, or as responses of the website's interface.

mod detect;
mod map;
mod raw;
mod run;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads saved Perplexity threads.
#[derive(Clone, Copy, Debug)]
pub struct Perplexity;

impl Importer for Perplexity {
    fn describe() -> Info {
        Info {
            name: "perplexity",
            version: env!("CARGO_PKG_VERSION"),
            platform: "perplexity",
            importer_version: detect::ENTRIES,
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

export_importer!(Perplexity);
