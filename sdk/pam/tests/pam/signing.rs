//! Keys in all their forms, and signatures that do not hold.

use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use p256::ecdsa::{Signature, SigningKey as P256Key, signature::Signer as _};
use satchel_pam::{
    parse,
    sign::{
        self, Algorithm, Payload, PublicKey, SignatureCheck, SignatureError, SignatureFields, SignedFields,
    },
};

use crate::full;

fn signed() -> SignedFields {
    parse::store_reading(&full::store()).signed
}

fn with(change: impl FnOnce(&mut SignedFields)) -> SignatureCheck {
    let mut signed = signed();
    change(&mut signed);
    sign::verify(&signed)
}

fn literal(change: impl FnOnce(&mut SignatureFields)) -> SignatureCheck {
    with(|signed| change(signed.signature.as_mut().unwrap()))
}

#[test]
fn a_store_that_we_sign_is_valid() {
    assert_eq!(with(|_| ()), SignatureCheck::Valid { key: PublicKey::of(&full::key()) });
}

#[test]
fn any_other_string_breaks_the_signature() {
    let changes: [fn(&mut SignedFields); 4] = [
        |signed| signed.checksum.as_mut().unwrap().push('0'),
        |signed| signed.export_id.as_mut().unwrap().push('0'),
        |signed| signed.export_date = Some("2026-02-15T22:00:00+00:00".to_owned()),
        |signed| signed.owner_id.as_mut().unwrap().push(' '),
    ];
    for change in changes {
        assert!(matches!(with(change), SignatureCheck::Invalid(_)));
    }
    let other = PublicKey::of(&sign::SigningKey::from_bytes(&[8; 32])).multibase();
    assert!(matches!(literal(|literal| literal.public_key = other), SignatureCheck::Invalid(_)));
}

#[test]
fn what_is_missing_is_not_signed() {
    let changes: [fn(&mut SignedFields); 5] = [
        |signed| signed.checksum = None,
        |signed| signed.export_id = None,
        |signed| signed.export_id = Some(String::new()),
        |signed| signed.export_date = None,
        |signed| signed.owner_id = None,
    ];
    for change in changes {
        assert!(matches!(with(change), SignatureCheck::Invalid(_)));
    }
    assert_eq!(with(|signed| signed.signature = None), SignatureCheck::Absent);
}

#[test]
fn what_cannot_be_checked_is_not_called_invalid() {
    for algorithm in ["PS256", "ES512", "ed25519", "none", ""] {
        let check = literal(|literal| literal.algorithm = algorithm.to_owned());
        assert!(matches!(check, SignatureCheck::Unsupported(_)), "{algorithm}");
    }
    assert!(matches!(literal(|literal| literal.value = "a.b.c".to_owned()), SignatureCheck::Unsupported(_)));
}

#[test]
fn an_algorithm_that_is_not_the_keys_is_invalid() {
    for algorithm in ["ES256", "ES384", "RS256", "RS384", "RS512"] {
        let check = literal(|literal| literal.algorithm = algorithm.to_owned());
        assert!(matches!(check, SignatureCheck::Invalid(_)), "{algorithm}");
    }
    let value = sign::sign_bytes(&full::key(), b"bytes");
    let check = sign::verify_bytes_as(Algorithm::Rs256, &PublicKey::of(&full::key()), b"bytes", &value);
    assert_eq!(check, Err(SignatureError::Algorithm));
}

#[test]
fn only_base64url_is_a_signature() {
    let key = PublicKey::of(&full::key());
    let value = sign::sign_bytes(&full::key(), b"bytes");
    assert_eq!(sign::verify_bytes(&key, b"bytes", &value), Ok(()));
    assert_eq!(sign::verify_bytes(&key, b"bytes", &format!("{value}==")), Ok(()));
    assert_eq!(sign::verify_bytes(&key, b"byte", &value), Err(SignatureError::Mismatch));
    assert_eq!(sign::verify_bytes(&key, b"bytes", &value[..40]), Err(SignatureError::Length));
    for bad in
        [format!("{value}\n"), format!("{value}="), format!("+{}", &value[1..]), format!("/{}", &value[1..])]
    {
        assert_ne!(sign::verify_bytes(&key, b"bytes", &bad), Ok(()), "{bad:?}");
    }
}

#[test]
fn ed25519_keys_are_read_in_every_form() {
    let key = PublicKey::of(&full::key());
    let bytes = full::key().verifying_key().to_bytes();
    let spki =
        [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00][..], &bytes].concat();
    let forms = [
        key.multibase(),
        key.did_key(),
        key.key_id(),
        bs58::encode(bytes).into_string(),
        URL_SAFE_NO_PAD.encode(bytes),
        format!("{}=", URL_SAFE_NO_PAD.encode(bytes)),
        format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"{}\"}}", URL_SAFE_NO_PAD.encode(bytes)),
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(spki)),
    ];
    for form in forms {
        assert_eq!(PublicKey::parse(&form), Ok(key.clone()), "{form}");
    }
    assert_eq!(PublicKey::from(full::key().verifying_key()).did_key(), key.did_key());
}

#[test]
fn what_is_no_key_is_refused() {
    let long = "z".repeat(100_000);
    for text in [
        "",
        "z",
        "z6Mk",
        "did:key:",
        "did:web:example.org",
        "{}",
        "{",
        "-----BEGIN PUBLIC KEY-----",
        "é",
        &long,
    ] {
        assert!(PublicKey::parse(text).is_err(), "{text:.20}");
    }
}

#[test]
fn es256_signatures_of_other_programs_are_checked() {
    let secret = P256Key::from_slice(&[9; 32]).unwrap();
    let point = secret.verifying_key().to_sec1_point(false);
    let (x, y) = (&point.as_bytes()[1..33], &point.as_bytes()[33..]);
    let prefix = STANDARD.decode("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE").unwrap();
    let spki = [&prefix, x, y].concat();
    let jwk = format!(
        "{{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"{}\",\"y\":\"{}\"}}",
        URL_SAFE_NO_PAD.encode(x),
        URL_SAFE_NO_PAD.encode(y)
    );
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", STANDARD.encode(spki));
    let key = PublicKey::parse(&jwk).unwrap();
    assert_eq!(key.algorithm(), "ES256");
    assert!(key.did_key().starts_with("did:key:zDn"));
    let base = signed();
    let payload = Payload {
        checksum: base.checksum.as_deref().unwrap(),
        export_id: base.export_id.as_deref().unwrap(),
        export_date: base.export_date.as_deref().unwrap(),
        owner_id: base.owner_id.as_deref().unwrap(),
    };
    let signature: Signature = secret.sign(&payload.to_bytes());
    let values =
        [URL_SAFE_NO_PAD.encode(signature.to_bytes()), URL_SAFE_NO_PAD.encode(signature.to_der().as_bytes())];
    for form in [jwk, pem, key.multibase(), key.did_key()] {
        for value in &values {
            let block =
                SignatureFields { algorithm: "ES256".into(), public_key: form.clone(), value: value.clone() };
            let signed = SignedFields { signature: Some(block), ..base.clone() };
            assert_eq!(sign::verify(&signed), SignatureCheck::Valid { key: key.clone() }, "{form}");
        }
    }
    let wrong = SignatureFields {
        algorithm: "Ed25519".into(),
        public_key: key.multibase(),
        value: values[0].clone(),
    };
    assert!(matches!(
        sign::verify(&SignedFields { signature: Some(wrong), ..base }),
        SignatureCheck::Invalid(_)
    ));
}
