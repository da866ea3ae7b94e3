//! What can be typed after `keys`.

use clap::Subcommand;

use super::examples;

/// `keys …`.
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// List the keys that sign and signed your exports, and who the exports say that you are
    #[command(after_help = examples::KEYS_LIST)]
    List,
    /// Sign with a new key from now on
    ///
    /// The old key signs that the new one follows it, and every bundle carries that word: whoever trusts the old key can check
    /// the new one. Bundles that were signed before stay valid. The old secret key is erased.
    #[command(after_help = examples::KEYS_ROTATE)]
    Rotate,
    /// Print the public keys with the words that tie them together, for those who check your bundles
    #[command(after_help = examples::KEYS_EXPORT_PUBLIC)]
    ExportPublic,
}
