//! Crockford's base32, and a check character that finds typing errors.
//!
//! The check character is the sum of all characters in GF(32), the character at place `i` times `α^i`. Since the powers
//! of `α` differ at the first 31 places, it finds every wrong character, and every two characters that are swapped,
//! also when others stand between them.

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// `x^5 + x^2 + 1`, a primitive polynomial: `α = x` has the order 31.
const POLYNOMIAL: u8 = 0b10_0101;
/// The longest text with a check character, without it: powers of `α` repeat after this.
pub(crate) const MAX_CHECKED: usize = 30;

/// Encodes bytes. Bits that fill up the last character are zero.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut symbols = Vec::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut buffer, mut bits) = (0_u16, 0_u32);
    for byte in bytes {
        buffer = (buffer << 8) | u16::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            symbols.push(low_five(buffer >> bits));
        }
    }
    if bits > 0 {
        symbols.push(low_five(buffer << (5 - bits)));
    }
    symbols
}

/// Decodes values of characters to as many whole bytes as they hold.
pub(crate) fn decode(symbols: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(symbols.len() * 5 / 8);
    let (mut buffer, mut bits) = (0_u16, 0_u32);
    for symbol in symbols {
        buffer = (buffer << 5) | u16::from(symbol & 31);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits).to_be_bytes()[1]);
        }
    }
    bytes
}

/// Returns the value of the check character for these values.
pub(crate) fn check_symbol(symbols: &[u8]) -> u8 {
    debug_assert!(symbols.len() <= MAX_CHECKED);
    // Horner's rule: the last character is multiplied once, the first most often.
    symbols.iter().fold(0, |sum, symbol| times_alpha(sum ^ (symbol & 31)))
}

/// Returns the value of a character as people type it: `O` is read as 0, `I` and `L` as 1, case does not matter.
pub(crate) fn symbol_of(character: char) -> Option<u8> {
    let upper = match character.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    let found = ALPHABET.iter().position(|letter| char::from(*letter) == upper)?;
    u8::try_from(found).ok()
}

/// Returns the text of these values.
pub(crate) fn text(symbols: &[u8]) -> String {
    symbols
        .iter()
        .filter_map(|symbol| ALPHABET.get(usize::from(symbol & 31)))
        .map(|it| char::from(*it))
        .collect()
}

/// Puts a hyphen after each `size` characters.
pub(crate) fn grouped(text: &str, size: usize) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for (at, character) in text.chars().enumerate() {
        if at > 0 && at % size == 0 {
            out.push('-');
        }
        out.push(character);
    }
    out
}

fn low_five(value: u16) -> u8 {
    value.to_be_bytes()[1] & 31
}

fn times_alpha(value: u8) -> u8 {
    let doubled = value << 1;
    if doubled & 0b10_0000 == 0 { doubled } else { doubled ^ POLYNOMIAL }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_examples_are_encoded() {
        assert_eq!(text(&encode(&[0x08, 0x42, 0x10, 0x84, 0x21])), "11111111");
        assert_eq!(text(&encode(&[0xff; 5])), "ZZZZZZZZ");
        assert_eq!(text(&encode(&[0xff])), "ZW");
        assert_eq!(text(&encode(b"")), "");
        assert_eq!(grouped("ABCDEFG", 3), "ABC-DEF-G");
    }

    #[test]
    fn alpha_has_the_order_31() {
        let mut value = 1;
        let powers: std::collections::BTreeSet<u8> = (0..31)
            .map(|_| {
                value = times_alpha(value);
                value
            })
            .collect();
        assert_eq!((powers.len(), value), (31, 1));
    }

    proptest! {
        #[test]
        fn encoded_bytes_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let symbols = encode(&bytes);
            let read: Vec<u8> = text(&symbols).to_lowercase().chars().map(|it| symbol_of(it).unwrap()).collect();
            prop_assert_eq!(&read, &symbols);
            prop_assert_eq!(decode(&read), bytes);
        }

        #[test]
        fn every_wrong_and_every_swapped_character_is_found(
            symbols in prop::collection::vec(0..32_u8, 1..=MAX_CHECKED),
        ) {
            let mut whole = symbols.clone();
            whole.push(check_symbol(&symbols));
            let valid = |text: &[u8]| text.split_last().is_some_and(|(check, rest)| check_symbol(rest) == *check);
            prop_assert!(valid(&whole));
            for at in 0..whole.len() {
                for other in (0..32).filter(|other| *other != whole[at]) {
                    let mut wrong = whole.clone();
                    wrong[at] = other;
                    prop_assert!(!valid(&wrong), "place {}", at);
                }
                for second in at + 1..whole.len() {
                    let mut swapped = whole.clone();
                    swapped.swap(at, second);
                    prop_assert_eq!(valid(&swapped), swapped == whole, "places {} and {}", at, second);
                }
            }
        }
    }
}
