//! The section `[confidence]`: how long it takes until a decaying score is half of its value.

use std::{collections::BTreeMap, time::Duration};

use satchel_pam::{lifecycle::HalfLives, memory::MemoryType};
use serde::{Deserialize, Serialize};

use super::{ConfigError, check_range};

/// Longest half-life, in days: a hundred years.
const MAX_DAYS: u64 = 36_500;
const DAY: Duration = Duration::from_hours(24);

/// The decay of scores on reads: by model, and by memory type where a type has its own half-life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfidenceDecay {
    half_lives: HalfLives,
    types: BTreeMap<MemoryType, Duration>,
}

impl ConfidenceDecay {
    /// Returns the half-lives of one type.
    #[must_use]
    pub fn half_lives(&self, memory_type: MemoryType) -> HalfLives {
        match self.types.get(&memory_type) {
            Some(days) => HalfLives { linear: *days, exponential: *days },
            None => self.half_lives,
        }
    }
}

/// The section as it is typed.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ConfidenceSection {
    linear_half_life_days: Option<u64>,
    exponential_half_life_days: Option<u64>,
    /// Days by memory type, for every model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    half_life_days: BTreeMap<MemoryType, u64>,
}

impl ConfidenceSection {
    pub(super) fn of(decay: &ConfidenceDecay) -> Self {
        let days = |duration: Duration| duration.as_secs() / DAY.as_secs();
        Self {
            linear_half_life_days: Some(days(decay.half_lives.linear)),
            exponential_half_life_days: Some(days(decay.half_lives.exponential)),
            half_life_days: decay.types.iter().map(|(kind, half)| (*kind, days(*half))).collect(),
        }
    }

    pub(super) fn read(self) -> Result<ConfidenceDecay, ConfigError> {
        let Self { linear_half_life_days, exponential_half_life_days, half_life_days } = self;
        let half_life = |key: &'static str, days: u64| {
            check_range(key, days, MAX_DAYS).map(|()| DAY * u32::try_from(days).unwrap_or(u32::MAX))
        };
        let mut decay = ConfidenceDecay::default();
        if let Some(days) = linear_half_life_days {
            decay.half_lives.linear = half_life("[confidence] linear-half-life-days", days)?;
        }
        if let Some(days) = exponential_half_life_days {
            decay.half_lives.exponential = half_life("[confidence] exponential-half-life-days", days)?;
        }
        for (kind, days) in half_life_days {
            decay.types.insert(kind, half_life("[confidence] half-life-days", days)?);
        }
        Ok(decay)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ConfidenceDecay, ConfigError> {
        toml::from_str::<ConfidenceSection>(text).unwrap().read()
    }

    #[test]
    fn a_memory_type_may_have_its_own_half_life() {
        let decay = read("exponential-half-life-days = 90\nhalf-life-days = { context = 30 }").unwrap();
        assert_eq!(decay.half_lives(MemoryType::Context).linear, DAY * 30);
        assert_eq!(
            decay.half_lives(MemoryType::Fact),
            HalfLives { exponential: DAY * 90, ..HalfLives::default() }
        );
        let typed = toml::to_string(&ConfidenceSection::of(&decay)).unwrap();
        assert_eq!(read(&typed).unwrap(), decay);
    }

    #[test]
    fn half_lives_out_of_range_are_refused() {
        for text in ["linear-half-life-days = 0", "half-life-days = { fact = 40000 }"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(toml::from_str::<ConfidenceSection>("half-life-days = { mood = 3 }").is_err());
    }
}
