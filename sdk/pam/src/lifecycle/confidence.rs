//! Confidence over time (PAM 1.0 §8): fading as a view, and what seeing something again does to it.
//!
//! PAM names the models and leaves the rates to the implementer (rule ). Ours, for a stored score `c` and the time `t`
//! since it was last reinforced:
//!
//! | model | score | default half-life |
//! |---|---|---|
//! | `time_exponential` | `c · 0.5^(t / h)` | 180 days |
//! | `time_linear` | `c · max(0, 1 − t / 2h)`: half at `h`, nothing at `2h` | 365 days |
//! | `none`, or absent | `c` | – |

use std::time::Duration;

use crate::{
    memory::{Confidence, DecayModel, Memory},
    time::Timestamp,
};

/// How long until a score is half of what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfLives {
    /// Of `time_linear`; the score is 0 after twice as long.
    pub linear: Duration,
    /// Of `time_exponential`.
    pub exponential: Duration,
}

/// 365 days and 180 days.
impl Default for HalfLives {
    fn default() -> Self {
        Self { linear: DAY * 365, exponential: DAY * 180 }
    }
}

/// The share of the doubt (1 less the score) that goes each time a statement is seen again.
pub const REINFORCEMENT: f64 = 0.1;
/// Scores are written with four digits: more would be noise, and different on other machines.
const STEPS: f64 = 10_000.0;
const DAY: Duration = Duration::from_hours(24);

/// The score of a memory at `now`, between 0 and the stored one; none if it has no score.
///
/// The stored score is `current`, or `initial` without it. It fades from `last_reinforced` on, or from `created_at`; before
/// that time it is as stored. A half-life of zero means that it is gone at once. A view: exports write stored scores.
#[must_use]
pub fn decayed(memory: &Memory, now: Timestamp, half_lives: &HalfLives) -> Option<f64> {
    let confidence = memory.confidence.as_ref()?;
    let stored = confidence.current.or(confidence.initial)?.clamp(0.0, 1.0);
    let since = confidence.last_reinforced.unwrap_or(memory.temporal.created_at);
    // Of one that is as old as nobody knows, nobody knows how far it has faded.
    let elapsed = if since.known() { now.micros() - since.micros() } else { 0 };
    let elapsed = Duration::from_micros(u64::try_from(elapsed).unwrap_or(0));
    Some(stored * left(confidence.decay_model, elapsed, half_lives))
}

/// The share that is left, 0 to 1.
fn left(model: Option<DecayModel>, elapsed: Duration, half_lives: &HalfLives) -> f64 {
    let lives = |half_life: Duration| -> f64 {
        if elapsed.is_zero() {
            return 0.0;
        }
        // Of a half-life of zero: infinity, so that nothing is left.
        elapsed.as_secs_f64() / half_life.as_secs_f64()
    };
    match model {
        Some(DecayModel::TimeLinear) => (1.0 - lives(half_lives.linear) / 2.0).max(0.0),
        Some(DecayModel::TimeExponential) => 0.5_f64.powf(lives(half_lives.exponential)),
        Some(DecayModel::None) | None => 1.0,
    }
}

/// The confidence after the statement was seen again at `at`: a tenth of the doubt ([`REINFORCEMENT`]) goes, and fading begins anew.
///
/// `initial` stays; without any score it stays without one, as PAM has no score for "seen". Seen again at an older time than
/// the last one, the score rises and the time stays.
#[must_use]
pub fn reinforced(confidence: &Confidence, at: Timestamp) -> Confidence {
    let stored = confidence.current.or(confidence.initial);
    let current = stored.map(|stored| {
        let raised = 1.0 - (1.0 - stored) * (1.0 - REINFORCEMENT);
        // Rounding must not lower what was stored with more digits.
        ((raised * STEPS).round() / STEPS).max(stored).clamp(0.0, 1.0)
    });
    let last = confidence.last_reinforced.filter(|last| last.micros() >= at.micros()).unwrap_or(at);
    Confidence { current, last_reinforced: Some(last), ..confidence.clone() }
}
