//! The recovery phrase: twelve BIP-39 words that encode 128 random bits and a checksum.

use std::io;

use bip39::{Language, Mnemonic};
use zeroize::Zeroizing;

use super::{Secret, VaultError};

/// Random bytes in a phrase of twelve words.
const ENTROPY: usize = 16;

/// Creates a random phrase.
pub(super) fn create() -> io::Result<Secret> {
    let mut entropy = Zeroizing::new([0; ENTROPY]);
    getrandom::fill(entropy.as_mut_slice())?;
    let phrase = Mnemonic::from_entropy_in(Language::English, entropy.as_slice());
    let phrase = phrase.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Secret::new(phrase.to_string()))
}

/// Returns the key that is derived from a phrase, regardless of its spacing and letter case.
pub(super) fn key(phrase: &Secret) -> Result<Zeroizing<[u8; 32]>, VaultError> {
    let words: Vec<String> = phrase.expose().split_whitespace().map(str::to_lowercase).collect();
    let text = Zeroizing::new(words.join(" "));
    let parsed = Mnemonic::parse_in_normalized(Language::English, &text);
    let parsed = parsed.map_err(|_| VaultError::InvalidPhrase { words: words.len() })?;
    let entropy = Zeroizing::new(parsed.to_entropy());
    Ok(Zeroizing::new(blake3::derive_key("satchel vault v1: recovery phrase", &entropy)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_has_twelve_words_and_survives_being_copied_by_hand() {
        let phrase = create().unwrap();
        assert_eq!(phrase.expose().split(' ').count(), 12);
        let copied = format!("  {}\n", phrase.expose().to_uppercase().replace(' ', "\n  "));
        assert_eq!(*key(&Secret::new(copied)).unwrap(), *key(&phrase).unwrap());
        assert_ne!(*key(&create().unwrap()).unwrap(), *key(&phrase).unwrap());
    }

    #[test]
    fn a_mistyped_word_is_distinguished_from_the_phrase_of_another_store() {
        let known = "legal winner thank year wave sausage worth useful legal winner thank yellow";
        assert!(key(&Secret::new(known.to_owned())).is_ok());
        for wrong in [known.replace("yellow", "year"), known.replace("legal", "lagel"), "legal".to_owned()] {
            assert!(matches!(key(&Secret::new(wrong)), Err(VaultError::InvalidPhrase { .. })));
        }
    }
}
