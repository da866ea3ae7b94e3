//! Page tokens: sealed positions in a list, which a client can keep but not alter.
//!
//! A token is `version ‖ expiry ‖ revision ‖ cursor ‖ MAC`, in base64url. The MAC also covers the list (store, method
//! and the other fields of the request), so that a token is valid only for the list it was made for.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use prost::Message;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// How long a token is valid, in seconds. The store keeps the versions of a revision at least as long.
pub const TOKEN_SECONDS: u64 = 24 * 60 * 60;
/// Rows of a page if the client does not specify a size.
pub const DEFAULT_PAGE_ROWS: usize = 50;
/// Largest number of rows of a page.
pub const MAX_PAGE_ROWS: usize = 1_000;

const KEY_FILE: &str = "page-token.key";
const VERSION: u8 = 1;
const HEAD_BYTES: usize = 1 + 8 + 8;
/// Half of a SHA-256: forging a MAC takes 2^128 tries.
const MAC_BYTES: usize = 16;
/// Longest token that is examined, in characters. A cursor is a key of the storage engine, which has less than 512
/// bytes.
const MAX_TOKEN_CHARS: usize = 2_048;

/// The key for page tokens of a data directory.
#[derive(Clone)]
pub struct PageKey([u8; 32]);

impl PageKey {
    /// Creates a key from 32 random bytes.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Creates a random key that is valid as long as the process runs.
    #[must_use]
    pub fn random() -> Self {
        let mut hash = Sha256::new();
        // Two UUIDs contain 244 random bits.
        hash.update(Uuid::new_v4());
        hash.update(Uuid::new_v4());
        Self(hash.finalize().into())
    }

    /// Returns the key stored in the folder `keys`, and creates it at the first call. If it can be neither read nor
    /// written, a new key is used: tokens are then invalid after this process ends, and a warning is logged.
    #[must_use]
    pub fn load_or_create(keys: &Path) -> Self {
        let path = keys.join(KEY_FILE);
        if let Ok(key) = read_key(&path) {
            return key;
        }
        let key = Self::random();
        match write_key(keys, &path, &key) {
            Ok(()) => read_key(&path).unwrap_or(key),
            Err(error) => {
                tracing::warn!(?path, %error, "cannot store the key for page tokens; they are invalid after this process ends");
                key
            }
        }
    }
}

fn read_key(path: &Path) -> io::Result<PageKey> {
    let mut key = [0; 32];
    satchel_core::plain_file::open(path)?.read_exact(&mut key)?;
    Ok(PageKey(key))
}

fn write_key(keys: &Path, path: &Path, key: &PageKey) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(keys)?;
    let temporary = keys.join(format!(".{KEY_FILE}.new-{}", Uuid::new_v4()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(&key.0)?;
    fs::rename(&temporary, path)
}

/// The identity of a list: one method with one set of fields, on one store, for one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListId([u8; 32]);

impl ListId {
    /// Returns the list that `request` of the device `device` asks for; an empty id stands for the owner. Page size and
    /// page token must be cleared.
    #[must_use]
    pub fn of(store_id: &str, device: &str, method: &str, request: &impl Message) -> Self {
        let mut hash = Sha256::new();
        for part in [store_id.as_bytes(), device.as_bytes(), method.as_bytes(), &request.encode_to_vec()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// The position at which a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePosition {
    /// The revision that all pages show.
    pub revision: u64,
    /// The last row of the previous page, in the encoding of its list.
    pub cursor: Vec<u8>,
}

/// The token does not belong to this list, or is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not valid for this list: it was changed, is older than 24 hours, or belongs to a request with other fields; \
     request the first page again"
)]
pub struct TokenError;

/// Seals `position` in `list` for 24 hours from `now`, in seconds since the Unix epoch.
#[must_use]
pub fn seal(key: &PageKey, list: ListId, position: &PagePosition, now: u64) -> String {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + position.cursor.len() + MAC_BYTES);
    bytes.push(VERSION);
    bytes.extend(now.saturating_add(TOKEN_SECONDS).to_be_bytes());
    bytes.extend(position.revision.to_be_bytes());
    bytes.extend(&position.cursor);
    let tag = mac(key, list, &bytes).finalize().into_bytes();
    bytes.extend(tag.iter().take(MAC_BYTES));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Opens a token that [`seal`] made for the same list.
///
/// # Errors
/// Any other token, and a token that is older than 24 hours.
pub fn open(key: &PageKey, list: ListId, token: &str, now: u64) -> Result<PagePosition, TokenError> {
    if token.len() > MAX_TOKEN_CHARS {
        return Err(TokenError);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| TokenError)?;
    let (sealed, tag) = bytes.split_last_chunk::<MAC_BYTES>().ok_or(TokenError)?;
    // Check the MAC before any other byte is examined. The comparison takes constant time.
    mac(key, list, sealed).verify_truncated_left(tag).map_err(|_| TokenError)?;
    let (head, cursor) = sealed.split_first_chunk::<HEAD_BYTES>().ok_or(TokenError)?;
    let [version, rest @ ..] = head;
    let (expiry, revision) = rest.split_first_chunk::<8>().ok_or(TokenError)?;
    let revision: [u8; 8] = revision.try_into().map_err(|_| TokenError)?;
    if *version != VERSION || u64::from_be_bytes(*expiry) <= now {
        return Err(TokenError);
    }
    Ok(PagePosition { revision: u64::from_be_bytes(revision), cursor: cursor.to_vec() })
}

fn mac(key: &PageKey, list: ListId, sealed: &[u8]) -> Hmac<Sha256> {
    // One block of the hash; the key is padded with zeros.
    let mut block = [0; 64];
    block[..key.0.len()].copy_from_slice(&key.0);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(&list.0);
    mac.update(sealed);
    mac
}

/// Returns how many rows a page may have; `None` for a negative size.
#[must_use]
pub fn page_size(requested: i32) -> Option<usize> {
    match usize::try_from(requested).ok()? {
        0 => Some(DEFAULT_PAGE_ROWS),
        size => Some(size.min(MAX_PAGE_ROWS)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use satchel_proto::v1::{ListMemoriesRequest, MemoryFilter};

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> PageKey {
        PageKey::new([7; 32])
    }

    fn list(platform: &str) -> ListId {
        let filter = MemoryFilter { platforms: vec![platform.to_owned()], ..MemoryFilter::default() };
        let request = ListMemoriesRequest { filter: Some(filter), ..ListMemoriesRequest::default() };
        ListId::of("store", "", "ListMemories", &request)
    }

    fn position() -> impl Strategy<Value = PagePosition> {
        (any::<u64>(), proptest::collection::vec(any::<u8>(), 0..512))
            .prop_map(|(revision, cursor)| PagePosition { revision, cursor })
    }

    proptest! {
        #[test]
        fn a_token_opens_as_the_position_it_was_made_of(position in position(), age in 0..TOKEN_SECONDS) {
            let token = seal(&key(), list("chatgpt"), &position, NOW);
            prop_assert_eq!(open(&key(), list("chatgpt"), &token, NOW + age), Ok(position));
        }

        #[test]
        fn a_changed_token_does_not_open(position in position(), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let token = seal(&key(), list("chatgpt"), &position, NOW);
            let mut bytes = URL_SAFE_NO_PAD.decode(&token).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(open(&key(), list("chatgpt"), &URL_SAFE_NO_PAD.encode(bytes), NOW), Err(TokenError));
        }

        #[test]
        fn a_cut_token_does_not_open(position in position(), at in any::<prop::sample::Index>()) {
            let token = seal(&key(), list("chatgpt"), &position, NOW);
            let at = at.index(token.len());
            prop_assert_eq!(open(&key(), list("chatgpt"), &token[..at], NOW), Err(TokenError));
        }

        #[test]
        fn a_token_does_not_open_in_another_list(position in position(), other in "[a-z]{1,12}") {
            prop_assume!(other != "chatgpt");
            let token = seal(&key(), list("chatgpt"), &position, NOW);
            prop_assert_eq!(open(&key(), list(&other), &token, NOW), Err(TokenError));
        }

        #[test]
        fn arbitrary_text_is_refused(text in ".{0,200}") {
            prop_assert_eq!(open(&key(), list("chatgpt"), &text, NOW), Err(TokenError));
        }
    }

    #[test]
    fn a_token_does_not_open_after_a_day_or_with_another_key() {
        let position = PagePosition { revision: 3, cursor: vec![1, 2] };
        let token = seal(&key(), list("chatgpt"), &position, NOW);
        assert_eq!(open(&key(), list("chatgpt"), &token, NOW + TOKEN_SECONDS), Err(TokenError));
        assert_eq!(open(&PageKey::new([8; 32]), list("chatgpt"), &token, NOW), Err(TokenError));
    }

    #[test]
    fn a_stored_key_opens_tokens_of_an_earlier_process() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let keys = dir.path().join("keys");
        let position = PagePosition { revision: 3, cursor: vec![1, 2] };
        let token = seal(&PageKey::load_or_create(&keys), list("chatgpt"), &position, NOW);
        assert_eq!(open(&PageKey::load_or_create(&keys), list("chatgpt"), &token, NOW), Ok(position));
        assert_eq!(open(&PageKey::random(), list("chatgpt"), &token, NOW), Err(TokenError));
        Ok(())
    }

    #[test]
    fn a_list_is_bound_to_its_store_caller_and_method() {
        let request = ListMemoriesRequest::default();
        let list_id = ListId::of("a", "", "ListMemories", &request);
        assert_ne!(list_id, ListId::of("b", "", "ListMemories", &request));
        assert_ne!(list_id, ListId::of("a", "", "ListConversations", &request));
        assert_ne!(list_id, ListId::of("a", "device", "ListMemories", &request));
        assert_ne!(ListId::of("ab", "", "c", &request), ListId::of("a", "", "bc", &request));
    }

    #[test]
    fn page_sizes_are_clamped_and_negative_ones_refused() {
        assert_eq!(page_size(0), Some(50));
        assert_eq!(page_size(1), Some(1));
        assert_eq!(page_size(i32::MAX), Some(1_000));
        assert_eq!(page_size(-1), None);
    }
}
