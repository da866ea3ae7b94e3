//! Random numbers that are the same for the same seed, and texts made of them.

/// A small deterministic random number generator (`SplitMix64`).
pub struct Rng(u64);

impl Rng {
    /// Creates a generator; the same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        // The seed is mixed first. Otherwise seeds that differ by `STEP` would give the same sequence, shifted by one.
        Self(mix(seed.wrapping_add(STEP)))
    }

    /// Returns any number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Like [`Rng::below`], as a floating-point number.
    pub(super) fn below_f64(&mut self, bound: u32) -> f64 {
        u32::try_from(self.below(u64::from(bound))).map_or(0.0, f64::from)
    }

    /// Returns true in `percent` percent of all calls.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn uuid(&mut self) -> String {
        let (one, two) = (self.next_u64(), self.next_u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            one >> 32,
            one >> 16 & 0xffff,
            one & 0xfff,
            two >> 52,
            two & 0xffff_ffff_ffff
        )
    }

    /// Returns a length around `median` with the spread `sigma`, distributed like the lengths of texts.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small numbers"
    )]
    pub(super) fn log_normal(&mut self, median: f64, sigma: f64, least: u64, most: u64) -> u64 {
        let unit = |rng: &mut Self| (rng.below(1 << 30) as f64 + 1.0) / (f64::from(1 << 30) + 1.0);
        let (one, two) = (unit(self), unit(self));
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
        ((median * (sigma * normal).exp()) as u64).clamp(least, most)
    }

    /// Returns about `length` bytes of prose, sometimes with code or an emoji.
    pub(super) fn text(&mut self, length: u64) -> String {
        let words = WORDS[usize::try_from(self.below(100)).unwrap_or(0).saturating_sub(55).min(1)
            + usize::from(self.chance(15))];
        let mut text = String::new();
        while (text.len() as u64) < length {
            let word = words[usize::try_from(self.below(words.len() as u64)).unwrap_or(0)];
            text.push_str(word);
            match self.below(40) {
                0 => text.push_str(".\n\n"),
                1 => text.push_str(", \"so\" \u{1f680} "),
                2 if length > 800 => text.push_str(CODE),
                _ if words == WORDS[2] => {}
                _ => text.push(' '),
            }
        }
        text
    }
}

/// The increment of the state for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(state: u64) -> u64 {
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

pub(super) const CODE: &str =
    "\n```python\nimport math\nfor n in range(10):\n    print(\"n\\t\", math.sqrt(n), {'a': [1, 2]})\n```\n";
const WORDS: [&[&str]; 3] = [
    &[
        "the", "garden", "of", "a", "small", "house", "needs", "water", "and", "light", "when", "seeds",
        "grow", "between", "stones", "while", "people", "read", "letters", "about", "trains", "music",
        "bread", "storage", "engine", "journal", "memory",
    ],
    &[
        "o",
        "jardim",
        "não",
        "precisa",
        "de",
        "água",
        "até",
        "amanhã",
        "porque",
        "a",
        "estação",
        "começa",
        "você",
        "também",
        "lê",
        "cartas",
        "sobre",
        "música",
        "pão",
        "coração",
        "memória",
        "função",
        "página",
    ],
    &[
        "花", "园", "需", "要", "水", "和", "光", "当", "种", "子", "在", "石", "头", "之", "间", "生", "长",
        "人", "们", "读", "信", "音", "乐", "面", "包", "记", "忆",
    ],
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn near_seeds_share_no_numbers() {
        const THROWS: usize = 100;
        let mut seen = BTreeSet::new();
        for seed in (0..1_000).chain([u64::MAX, 1 << 32, 1 << 63]) {
            let mut rng = Rng::new(seed);
            seen.extend((0..THROWS).map(|_| rng.next_u64()));
        }
        assert_eq!(seen.len(), 1_003 * THROWS);
    }
}
