//! Importer for the chat sessions of VS Code, which is where GitHub Copilot Chat keeps its conversations.

mod database;
mod detect;
mod fields;
mod log;
mod map;
mod repeated;
mod run;
mod session;
mod uri;
mod workspace;

use satchel_importer::{Bundle, Detection, ImportError, Importer, Info, Sink, Summary, export_importer};

/// Reads the chat sessions of VS Code, and chats that were exported from it.
#[derive(Clone, Copy, Debug)]
pub struct VsCodeCopilot;

impl Importer for VsCodeCopilot {
    fn describe() -> Info {
        Info {
            name: "vscode-copilot",
            version: env!("CARGO_PKG_VERSION"),
            platform: "vscode-copilot",
            importer_version: detect::LOG,
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

export_importer!(VsCodeCopilot);
