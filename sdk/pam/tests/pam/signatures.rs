//! Signatures of all six algorithms that another library made, and what is none.

use std::collections::BTreeSet;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use proptest::{collection::vec, prelude::*};
use satchel_pam::sign::{
    self, Algorithm, KeyError, Payload, PublicKey, SignatureCheck, SignatureFields, SignedFields,
};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/signatures.json")).unwrap()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap()
}

fn check(vectors: &Value, algorithm: &str, public_key: &str, value: &str) -> SignatureCheck {
    let payload = |key: &str| Some(text(&vectors["payload"], key).to_owned());
    sign::verify(&SignedFields {
        checksum: payload("checksum"),
        export_id: payload("export_id"),
        export_date: payload("export_date"),
        owner_id: payload("owner_id"),
        signature: Some(SignatureFields {
            algorithm: algorithm.to_owned(),
            public_key: public_key.to_owned(),
            value: value.to_owned(),
        }),
    })
}

#[test]
fn every_algorithm_is_checked_with_keys_in_every_form() {
    let vectors = vectors();
    let mut seen = BTreeSet::new();
    for case in vectors["valid"].as_array().unwrap() {
        let algorithm = text(case, "algorithm");
        seen.insert(algorithm);
        let key = PublicKey::parse(text(&case["public_key"], "jwk")).unwrap();
        for (form, public_key) in case["public_key"].as_object().unwrap() {
            for value in case["values"].as_array().unwrap() {
                let found = check(&vectors, algorithm, public_key.as_str().unwrap(), value.as_str().unwrap());
                assert_eq!(found, SignatureCheck::Valid { key: key.clone() }, "{} {form}", case["name"]);
            }
        }
    }
    let all: BTreeSet<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.as_str()).collect();
    assert_eq!(seen, all);
}

#[test]
fn keys_are_written_as_others_write_them() {
    for case in vectors()["valid"].as_array().unwrap() {
        let key = PublicKey::parse(text(&case["public_key"], "pem")).unwrap();
        assert_eq!(key.multibase(), text(&case["public_key"], "multibase"), "{}", case["name"]);
        assert_eq!(key.did_key(), text(&case["public_key"], "did_key"), "{}", case["name"]);
    }
}

#[test]
fn the_payload_is_what_was_signed() {
    let vectors = vectors();
    let part = |key: &str| text(&vectors["payload"], key);
    let payload = Payload {
        checksum: part("checksum"),
        export_id: part("export_id"),
        export_date: part("export_date"),
        owner_id: part("owner_id"),
    };
    assert_eq!(payload.to_bytes(), text(&vectors, "canonical").as_bytes());
}

#[test]
fn what_proves_nothing_is_refused() {
    let vectors = vectors();
    for case in vectors["refused"].as_array().unwrap() {
        let found = check(&vectors, text(case, "algorithm"), text(case, "public_key"), text(case, "value"));
        let outcome = match found {
            SignatureCheck::Invalid(_) => "invalid",
            SignatureCheck::Unsupported(_) => "unsupported",
            SignatureCheck::Valid { .. } | SignatureCheck::Absent => "accepted",
        };
        assert_eq!(outcome, text(case, "outcome"), "{}: {found:?}", case["name"]);
    }
}

#[test]
fn a_signature_with_any_byte_changed_is_refused() {
    let vectors = vectors();
    for case in vectors["valid"].as_array().unwrap() {
        let jwk = text(&case["public_key"], "jwk");
        for value in case["values"].as_array().unwrap() {
            let bytes = URL_SAFE_NO_PAD.decode(value.as_str().unwrap()).unwrap();
            // Every byte of the short ones; of RSA's some, as each check takes a while.
            for at in (0..bytes.len()).step_by(1 + bytes.len() / 64) {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                let changed = URL_SAFE_NO_PAD.encode(changed);
                let found = check(&vectors, text(case, "algorithm"), jwk, &changed);
                assert!(matches!(found, SignatureCheck::Invalid(_)), "{} byte {at}", case["name"]);
            }
            for cut in [0, 1, bytes.len() - 1] {
                let found =
                    check(&vectors, text(case, "algorithm"), jwk, &URL_SAFE_NO_PAD.encode(&bytes[..cut]));
                assert!(matches!(found, SignatureCheck::Invalid(_)), "{} cut to {cut}", case["name"]);
            }
            let longer = URL_SAFE_NO_PAD.encode([&[0][..], &bytes].concat());
            let found = check(&vectors, text(case, "algorithm"), jwk, &longer);
            assert!(matches!(found, SignatureCheck::Invalid(_)), "{} with a zero before it", case["name"]);
        }
    }
}

#[test]
fn another_payload_is_refused_by_every_algorithm() {
    let mut vectors = vectors();
    vectors["payload"]["owner_id"] = "somebody else".into();
    for case in vectors["valid"].as_array().unwrap() {
        let value = case["values"][0].as_str().unwrap();
        let found = check(&vectors, text(case, "algorithm"), text(&case["public_key"], "jwk"), value);
        assert!(matches!(found, SignatureCheck::Invalid(_)), "{}", case["name"]);
    }
}

/// A key of the greatest size and one byte more, in every form: the bound is on the key, before any arithmetic.
#[test]
fn a_key_that_is_cut_or_swollen_is_refused() {
    let vectors = vectors();
    for case in vectors["valid"].as_array().unwrap() {
        for (form, key) in case["public_key"].as_object().unwrap() {
            let key = key.as_str().unwrap();
            let half = key.len() / 2;
            let swollen = format!("{}{}{}", &key[..half], "A".repeat(5000), &key[half..]);
            for broken in [&key[..half], swollen.as_str()] {
                assert!(PublicKey::parse(broken).is_err(), "{} {form}", case["name"]);
            }
        }
    }
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

fn der_of(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(body).unwrap()
}

/// The type of the parameters says which algorithm it is: nothing else may stand in their place.
#[test]
fn an_rsa_key_has_null_for_parameters_or_none() {
    let vectors = vectors();
    let case = vectors["valid"].as_array().unwrap().iter().find(|case| case["algorithm"] == "RS256").unwrap();
    let mut der = der_of(text(&case["public_key"], "pem"));
    let null = der.windows(2).position(|pair| pair == [0x05, 0x00]).unwrap();
    assert!(PublicKey::parse(&pem(&der)).is_ok());
    der[null] = 0x31;
    assert_eq!(PublicKey::parse(&pem(&der)), Err(KeyError::Form));
}

/// A JWK of any numbers, of sizes around both bounds.
fn any_rsa_key() -> impl Strategy<Value = String> {
    let size = prop_oneof![0..4_usize, 254..260_usize, 1020..1030_usize];
    let modulus = size.prop_flat_map(|size| vec(any::<u8>(), size));
    (modulus, vec(any::<u8>(), 0..6), any::<bool>()).prop_map(|(mut modulus, exponent, odd)| {
        modulus.last_mut().into_iter().for_each(|last| *last |= u8::from(odd));
        let (n, e) = (URL_SAFE_NO_PAD.encode(modulus), URL_SAFE_NO_PAD.encode(exponent));
        format!("{{\"kty\":\"RSA\",\"n\":\"{n}\",\"e\":\"{e}\"}}")
    })
}

proptest! {
    #[test]
    fn no_numbers_make_a_key_that_panics_or_accepts_anything(
        jwk in any_rsa_key(),
        algorithm in prop::sample::select(Algorithm::ALL),
        value in prop_oneof![vec(any::<u8>(), 0..8), vec(any::<u8>(), 256), vec(any::<u8>(), 1024)],
    ) {
        let found = check(&vectors(), algorithm.as_str(), &jwk, &URL_SAFE_NO_PAD.encode(value));
        prop_assert!(matches!(found, SignatureCheck::Invalid(_) | SignatureCheck::Unsupported(_)), "{:?}", found);
    }

    #[test]
    fn no_text_is_a_key_that_panics(
        start in prop::sample::select(vec!["", "z", "did:key:z", "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"", "-----BEGIN PUBLIC KEY-----\n"]),
        text in "[0-9A-Za-z+/=_\"{}:,-]{0,2000}",
    ) {
        if let Ok(key) = PublicKey::parse(&format!("{start}{text}")) {
            prop_assert_eq!(PublicKey::parse(&key.multibase()), Ok(key));
        }
    }

    #[test]
    fn no_der_is_a_key_that_panics(der in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), byte: u8) {
        prop_assert!(PublicKey::parse(&pem(&der)).is_err());
        // A real one with one byte changed: another key, or none.
        let vectors = vectors();
        for case in vectors["valid"].as_array().unwrap() {
            let text = text(&case["public_key"], "pem");
            let mut changed = der_of(text);
            let place = at.index(changed.len());
            changed[place] ^= byte;
            if let Ok(key) = PublicKey::parse(&pem(&changed)) {
                prop_assert!(byte == 0 || key != PublicKey::parse(text).unwrap(), "{} byte {}", case["name"], place);
            }
        }
    }
}
