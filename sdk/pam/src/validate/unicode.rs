//! Where content hashes of programs with different Unicode versions may differ.

/// Ranges of characters whose lower case, composition or combining class was added after Unicode 14, the version of Python 3.11.
/// Computed by comparing both over all scalar values.
const NEWER: &[(u32, u32)] = &[
    (0x05c8, 0x05c9),
    (0x0897, 0x0897),
    (0x1acf, 0x1af0),
    (0x1c89, 0x1c89),
    (0xa7cb, 0xa7cc),
    (0xa7ce, 0xa7ce),
    (0xa7d2, 0xa7d2),
    (0xa7d4, 0xa7d4),
    (0xa7da, 0xa7da),
    (0xa7dc, 0xa7dc),
    (0x105c9, 0x105c9),
    (0x105e4, 0x105e4),
    (0x10d50, 0x10d65),
    (0x10d69, 0x10d6d),
    (0x10ecb, 0x10ecf),
    (0x10ef0, 0x10eff),
    (0x11383, 0x11391),
    (0x113c5, 0x113d0),
    (0x11f41, 0x11f42),
    (0x16121, 0x1612f),
    (0x16d68, 0x16d6a),
    (0x16ea0, 0x16eb8),
    (0x1d127, 0x1d128),
    (0x1d250, 0x1d281),
    (0x1e08f, 0x1e08f),
    (0x1e4ec, 0x1e4ef),
    (0x1e5ee, 0x1e5ef),
    (0x1e6e3, 0x1e6f5),
];

/// Letters for which versions differ in whether an adjacent sigma ends a word.
const BESIDE_SIGMA: [char; 2] = ['\u{295}', '\u{1171e}'];

/// Whether another Unicode version may normalise the content differently.
pub(super) fn depends_on_version(content: &str) -> bool {
    !content.is_ascii()
        && (content.chars().any(newer) || (content.contains('Σ') && content.contains(BESIDE_SIGMA)))
}

fn newer(c: char) -> bool {
    let code = u32::from(c);
    code >= NEWER[0].0 && NEWER.iter().any(|(first, last)| (*first..=*last).contains(&code))
}
