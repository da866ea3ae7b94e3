//! Confidence over time (PAM 1.0 §8): decay and reinforcement.
//!
//! PAM defines the models and leaves the rates to the implementation. For a stored score `c`, the half-life `h` and the
//! time `t` since the last reinforcement:
//!
//! | model | score | default half-life |
//! |---|---|---|
//! | `time_exponential` | `c · 0.5^(t / h)` | 180 days |
//! | `time_linear` | `c · max(0, 1 − t / 2h)`, which is 0 from `2h` on | 365 days |
//! | `none`, or absent | `c` | – |

use std::time::Duration;

use crate::{
    memory::{Confidence, DecayModel, Memory},
    time::Timestamp,
};

/// The times after which a score has decayed to half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfLives {
    /// Half-life of `time_linear`; the score is 0 after twice this time.
    pub linear: Duration,
    /// Half-life of `time_exponential`.
    pub exponential: Duration,
}

/// 365 days and 180 days.
impl Default for HalfLives {
    fn default() -> Self {
        Self { linear: DAY * 365, exponential: DAY * 180 }
    }
}

/// The share of the doubt (1 − score) that each reinforcement removes.
pub const REINFORCEMENT: f64 = 0.1;
/// Reinforced scores are rounded to four digits; more would be noise, and differ between machines.
const PRECISION: f64 = 10_000.0;
const DAY: Duration = Duration::from_hours(24);

/// The decayed score of a memory at `now`, between 0 and the stored score; none if it has no score.
///
/// The stored score is `current`, or else `initial`. It decays from `last_reinforced` on, or else from `created_at`. With a
/// half-life of zero, it is 0 immediately after. Exports contain stored scores, never decayed ones.
#[must_use]
pub fn decayed(memory: &Memory, now: Timestamp, half_lives: &HalfLives) -> Option<f64> {
    let confidence = memory.confidence.as_ref()?;
    let stored = confidence.current.or(confidence.initial)?.clamp(0.0, 1.0);
    let since = confidence.last_reinforced.unwrap_or(memory.temporal.created_at);
    // Without a known start, the score does not decay.
    let elapsed = if since.known() { now.micros() - since.micros() } else { 0 };
    let elapsed = Duration::from_micros(u64::try_from(elapsed).unwrap_or(0));
    Some(stored * remaining(confidence.decay_model, elapsed, half_lives))
}

/// The share of a score that remains, 0 to 1.
fn remaining(model: Option<DecayModel>, elapsed: Duration, half_lives: &HalfLives) -> f64 {
    let periods = |half_life: Duration| -> f64 {
        if elapsed.is_zero() {
            return 0.0;
        }
        // Infinite for a half-life of zero, so that nothing remains.
        elapsed.as_secs_f64() / half_life.as_secs_f64()
    };
    match model {
        Some(DecayModel::TimeLinear) => (1.0 - periods(half_lives.linear) / 2.0).max(0.0),
        Some(DecayModel::TimeExponential) => 0.5_f64.powf(periods(half_lives.exponential)),
        Some(DecayModel::None) | None => 1.0,
    }
}

/// The confidence after a statement was confirmed at `at`: the doubt shrinks by [`REINFORCEMENT`], and the decay restarts.
///
/// `initial` does not change, and a memory without score gets none. If `at` is before the last reinforcement, the score rises but the
/// time does not change.
#[must_use]
pub fn reinforced(confidence: &Confidence, at: Timestamp) -> Confidence {
    let stored = confidence.current.or(confidence.initial);
    let current = stored.map(|stored| {
        let raised = 1.0 - (1.0 - stored) * (1.0 - REINFORCEMENT);
        // Rounding must not lower a score that was stored with more digits.
        ((raised * PRECISION).round() / PRECISION).max(stored).clamp(0.0, 1.0)
    });
    let last = confidence.last_reinforced.filter(|last| last.micros() >= at.micros()).unwrap_or(at);
    Confidence { current, last_reinforced: Some(last), ..confidence.clone() }
}
