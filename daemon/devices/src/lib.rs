//! Paired devices of a daemon: their identities, pairing, and the rules for what each may read and change.
//!
//! The daemon has its own [`CertificateAuthority`]. An owner opens a pairing window ([`PairingWindows`]) and shows its
//! [`PairingCode`] or [`PairingUri`]; the new device checks the daemon's key by it, sends a certificate request, and is
//! listed in the [`DeviceRegistry`] with a [`Policy`]. On its own machine it keeps [`Credentials`].
//!
//! All times are microseconds since the Unix epoch and are passed in; only TLS handshakes read the clock.

pub mod audit;
pub mod authority;
mod base32;
mod certificate;
pub mod credentials;
mod error;
mod files;
pub mod identity;
pub mod pairing;
pub mod pairing_code;
pub mod policy;
pub mod registry;

#[cfg(test)]
mod handshake_tests;

pub use audit::{AuditEntry, AuditLog, AuditPage};
pub use authority::{CertificateAuthority, IssuedCertificate, SERVER_NAME, key_hash_of};
pub use credentials::{
    ClientKey, Credentials, HandshakeError, PairingConfig, generate_key_and_csr, pairing_config,
};
pub use error::DevicesError;
pub use identity::{DeviceId, Fingerprint, FingerprintPrefix, KeyHash};
pub use pairing::{
    Grant, OpenWindow, Opener, PairingError, PairingId, PairingRefused, PairingWindows, WindowState,
};
pub use pairing_code::{PairingCode, PairingCodeError, PairingSecret, PairingToken, PairingUri};
pub use policy::{MemoryAccess, MemoryFacts, Period, Policy, RecordFacts, Role, Scope, Selection};
pub use registry::{Device, DeviceKind, DeviceRegistry, NewDevice, TokenSecret};
