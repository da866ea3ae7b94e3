//! `ssh` keys as recipients and identities of age: only keys of the type `ssh-ed25519`.

use std::str::FromStr as _;

use age::{
    secrecy::SecretString,
    ssh::{Identity, Recipient},
};

use super::EnvelopeError;

/// The start of a private key.
const PRIVATE: &str = "-----BEGIN ";

const LOCKED: &str = "the ssh key is locked by a passphrase; give that with --passphrase, --passphrase-file FILE or SATCHEL_PASSPHRASE";
const OTHER_PASSPHRASE: &str = "the passphrase is not the one of the ssh key";
const OTHER_KEY_TYPE: &str = "the ssh key is no ssh-ed25519 key, the only kind of ssh that opens an export";
const UNREADABLE: &str = "the ssh key cannot be read; give the private key that `ssh-keygen` wrote";

/// Returns whether a text is an `ssh` public key of any type.
pub(super) fn is_public(text: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| text.starts_with(kind))
}

/// Returns the key in an `ssh` public key, if it has the right type.
pub(super) fn recipient(text: &str) -> Option<Recipient> {
    match Recipient::from_str(text) {
        Ok(key @ Recipient::SshEd25519(..)) => Some(key),
        Ok(Recipient::SshRsa(..)) | Err(_) => None,
    }
}

/// Returns whether the text of a file is an `ssh` private key.
pub(super) fn is_private(file: &str) -> bool {
    file.trim_start().starts_with(PRIVATE)
}

/// Returns the key in the text of a file, unlocked.
pub(super) fn identity(file: &str, passphrase: Option<&SecretString>) -> Result<Identity, EnvelopeError> {
    let key = match Identity::from_buffer(file.trim_start().as_bytes(), None) {
        Ok(Identity::Encrypted(locked)) => {
            let passphrase = passphrase.ok_or(EnvelopeError::Ssh(LOCKED))?;
            let open = locked.decrypt(passphrase.clone());
            Identity::from(open.map_err(|_| EnvelopeError::Ssh(OTHER_PASSPHRASE))?)
        }
        Ok(key) => key,
        Err(_) => return Err(EnvelopeError::Ssh(UNREADABLE)),
    };
    // RSA keys must not be used for decryption here, because the time that it takes reveals information about the key.
    match Recipient::try_from(key.clone()) {
        Ok(Recipient::SshEd25519(..)) => Ok(key),
        Ok(Recipient::SshRsa(..)) | Err(_) => Err(EnvelopeError::Ssh(OTHER_KEY_TYPE)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Seek as _, Write as _},
    };

    use super::super::{DecryptionKeys, ExportEncryption};
    use super::*;

    const UNLOCKED: [&str; 2] = [include_str!("keys/open.pub"), include_str!("keys/open")];
    const LOCKED: [&str; 2] = [include_str!("keys/locked.pub"), include_str!("keys/locked")];
    const RSA: [&str; 2] = [include_str!("keys/rsa.pub"), include_str!("keys/rsa")];
    const PASSPHRASE: &str = "correct horse battery";

    fn encrypted_file(recipients: &[&str]) -> File {
        let recipients: Vec<String> = recipients.iter().map(|text| (*text).to_owned()).collect();
        let lock = ExportEncryption::parse(&recipients, None).unwrap().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let mut out = lock.encrypt(&mut file).unwrap();
        out.write_all(b"Keeps bees").unwrap();
        out.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    fn keys(identity: &str, passphrase: Option<&str>) -> Result<DecryptionKeys, EnvelopeError> {
        DecryptionKeys::parse(&[identity.to_owned()], passphrase.map(str::to_owned))
    }

    fn read(keys: &DecryptionKeys, file: &File) -> Option<String> {
        let mut file = file.try_clone().unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        keys.open(file).ok()?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn a_file_for_keys_of_ssh_opens_by_either_and_by_no_other() {
        let age = age::x25519::Identity::generate();
        let file = encrypted_file(&[UNLOCKED[0], LOCKED[0], &age.to_public().to_string()]);
        let bees = Some("Keeps bees".to_owned());
        assert_eq!(read(&keys(UNLOCKED[1], None).unwrap(), &file), bees);
        assert_eq!(read(&keys(LOCKED[1], Some(PASSPHRASE)).unwrap(), &file), bees);
        let alone = encrypted_file(&[LOCKED[0]]);
        assert_eq!(read(&keys(UNLOCKED[1], None).unwrap(), &alone), None);
        assert_eq!(read(&keys(LOCKED[1], Some(PASSPHRASE)).unwrap(), &alone), bees);
    }

    #[test]
    fn other_key_types_and_locked_keys_are_reported_without_showing_them() {
        let error =
            |recipient: &str| ExportEncryption::parse(&[recipient.to_owned()], None).unwrap_err().to_string();
        assert!(error(RSA[0]).contains("ssh-ed25519"), "{}", error(RSA[0]));
        assert!(error("ssh-ed25519 AAAA").contains("ssh-ed25519"));
        assert!(
            !error(UNLOCKED[1]).contains("OPENSSH"),
            "a private key is not shown: {}",
            error(UNLOCKED[1])
        );
        let errors = [
            (keys(LOCKED[1], None), "locked by a passphrase"),
            (keys(LOCKED[1], Some("another passphrase")), "not the one of the ssh key"),
            (keys(RSA[1], None), "no ssh-ed25519 key"),
            (keys("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", None), "cannot be read"),
        ];
        for (refused, words) in errors {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("passphrase\""), "{error}");
        }
    }

    #[test]
    fn the_comment_of_a_key_does_not_change_the_recipient() {
        let bare: Vec<&str> = UNLOCKED[0].split_whitespace().take(2).collect();
        let digest =
            |text: &str| ExportEncryption::parse(&[text.to_owned()], None).unwrap().unwrap().digest();
        assert_eq!(digest(&bare.join(" ")), digest(UNLOCKED[0]));
        assert_ne!(digest(LOCKED[0]), digest(UNLOCKED[0]));
    }
}
