//! Reads keys, periods and signatures of certificates, and prepares new ones.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SerialNumber, SubjectPublicKeyInfo,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use x509_parser::{
    certification_request::X509CertificationRequest,
    prelude::{FromDer as _, X509Certificate},
};

use crate::error::DevicesError;

/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400_000_000;
/// How much earlier than now certificates begin: the clock of the other machine may be slow.
const BACKDATED: i64 = 2 * DAY;
const SECOND: i64 = 1_000_000;
/// The year 9000, in seconds: the type of the library ends in the year 9999.
const MAX_SECONDS: i64 = 221_845_392_000;
/// Largest certificate or certificate request that is read, in bytes. Ours have less than 600.
const MAX_DER_BYTES: usize = 8 << 10;
/// Bytes of a serial number. The first bit is cleared, since serial numbers are positive.
const SERIAL_BYTES: usize = 16;

/// The public key and the period of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateFacts {
    /// `SubjectPublicKeyInfo`, DER.
    pub(crate) public_key: Vec<u8>,
    /// Microseconds since the Unix epoch.
    pub(crate) not_before: i64,
    /// Microseconds since the Unix epoch.
    pub(crate) not_after: i64,
    /// Whether it may sign others.
    pub(crate) authority: bool,
}

/// Reads a certificate. Its signature is not checked.
pub(crate) fn read(der: &[u8]) -> Result<CertificateFacts, DevicesError> {
    let certificate = parse(der)?;
    Ok(CertificateFacts {
        public_key: certificate.public_key().raw.to_vec(),
        not_before: certificate.validity().not_before.timestamp().saturating_mul(SECOND),
        not_after: certificate.validity().not_after.timestamp().saturating_mul(SECOND),
        authority: certificate.is_ca(),
    })
}

/// Returns whether `authority` signed the certificate.
pub(crate) fn signed_by(der: &[u8], authority: &[u8]) -> Result<bool, DevicesError> {
    let (certificate, authority) = (parse(der)?, parse(authority)?);
    Ok(certificate.verify_signature(Some(authority.public_key())).is_ok())
}

/// Returns the public key of a certificate request that is signed by this key; the rest of the request is not used.
pub(crate) fn public_key_of_request(der: &[u8]) -> Result<SubjectPublicKeyInfo, DevicesError> {
    let wrong = |reason: String| DevicesError::Request { reason };
    if der.len() > MAX_DER_BYTES {
        return Err(wrong(format!("it has more than {MAX_DER_BYTES} bytes")));
    }
    let (rest, request) =
        X509CertificationRequest::from_der(der).map_err(|error| wrong(error.to_string()))?;
    if !rest.is_empty() {
        return Err(wrong("bytes follow its end".to_owned()));
    }
    request.verify_signature().map_err(|_| wrong("its signature is wrong".to_owned()))?;
    let key = request.certification_request_info.subject_pki.raw;
    SubjectPublicKeyInfo::from_der(key).map_err(|_| wrong("its key is of an unknown kind".to_owned()))
}

/// Makes an ECDSA P-256 key. Every TLS library knows this kind; `BoringSSL`, which is in most gRPC libraries, refuses
/// certificates with Ed25519.
pub(crate) fn new_key() -> Result<KeyPair, DevicesError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// Reads an ECDSA P-256 key from PKCS#8 DER.
pub(crate) fn read_key(der: &[u8]) -> Result<KeyPair, DevicesError> {
    let der = PrivatePkcs8KeyDer::from(der);
    KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ECDSA_P256_SHA256).map_err(|error| {
        match KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519) {
            Ok(_) => DevicesError::Ed25519Key,
            Err(_) => DevicesError::Key { reason: error.to_string() },
        }
    })
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Signs the other two.
    Authority,
    /// Identifies the daemon.
    Server,
    /// Identifies a device.
    Client,
}

/// Returns what a certificate contains beside its key. It begins two days before `now` and ends `days` after that.
pub(crate) fn parameters(
    purpose: Purpose,
    server_name: &str,
    days: i64,
    now: i64,
) -> Result<CertificateParams, DevicesError> {
    let begin = now.saturating_sub(BACKDATED);
    let names = if purpose == Purpose::Server { vec![server_name.to_owned()] } else { Vec::new() };
    let mut parameters = CertificateParams::new(names)?;
    // The library's epoch; adding to it needs no other date library.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + since_epoch(begin)?;
    parameters.not_after = epoch + since_epoch(begin.saturating_add(days.saturating_mul(DAY)))?;
    let mut serial = [0; SERIAL_BYTES];
    getrandom::fill(&mut serial)?;
    // The first bit is the sign; the second keeps the length, since leading zeros are not written.
    let [first, ..] = &mut serial;
    *first = *first & 0x7f | 0x40;
    parameters.serial_number = Some(SerialNumber::from_slice(&serial));
    parameters.distinguished_name = DistinguishedName::new();
    let name = match purpose {
        Purpose::Authority => "Satchel authority",
        Purpose::Server => "Satchel daemon",
        Purpose::Client => "Satchel device",
    };
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.use_authority_key_identifier_extension = true;
    let extended = match purpose {
        Purpose::Authority => None,
        Purpose::Server => Some(ExtendedKeyUsagePurpose::ServerAuth),
        Purpose::Client => Some(ExtendedKeyUsagePurpose::ClientAuth),
    };
    parameters.is_ca = match extended {
        None => IsCa::Ca(BasicConstraints::Constrained(0)),
        Some(_) => IsCa::ExplicitNoCa,
    };
    parameters.key_usages = match extended {
        None => vec![KeyUsagePurpose::KeyCertSign],
        Some(_) => vec![KeyUsagePurpose::DigitalSignature],
    };
    parameters.extended_key_usages = extended.into_iter().collect();
    Ok(parameters)
}

fn since_epoch(micros: i64) -> Result<std::time::Duration, DevicesError> {
    let seconds = micros.div_euclid(SECOND);
    if seconds > MAX_SECONDS {
        return Err(DevicesError::Clock);
    }
    u64::try_from(seconds).map(std::time::Duration::from_secs).map_err(|_| DevicesError::Clock)
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, DevicesError> {
    if der.len() > MAX_DER_BYTES {
        return Err(DevicesError::certificate(format!("it has more than {MAX_DER_BYTES} bytes")));
    }
    let (rest, certificate) = X509Certificate::from_der(der).map_err(DevicesError::certificate)?;
    if !rest.is_empty() {
        return Err(DevicesError::certificate("bytes follow its end"));
    }
    Ok(certificate)
}
