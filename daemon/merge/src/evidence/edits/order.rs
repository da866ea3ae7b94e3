//! Which step of an edit had seen which other one.
//!
//! | this step | the other step | seen |
//! |---|---|---|
//! | no dot | no dot | if the other is earlier by time, then by text: both are from one store, which wrote them in this order |
//! | a dot of any kind | no dot | always: a store numbers all its old steps before it exchanges or records any |
//! | no dot | a dot of any kind | never |
//! | assigned dots | assigned dots | if one store had both, and the other is earlier by time, then by text |
//! | assigned dots | recorded dot | never: it was written without knowing of any series |
//! | recorded dot | assigned dots | if its version vector contains any of them |
//! | recorded dot | recorded dot | if its version vector contains the other dot, or the other is earlier in the same series |
//!
//! Times are compared only between steps that one store wrote before it began its series. A store makes sure that its
//! own times increase, so its clock decides nothing either.
//!
//! A copy of a store numbers the steps that it has in common with the original again. A store that has received only one
//! of the two series knows only one of the dots; a step that was seen under the other one counts as unseen until the
//! other series arrives. Its value is kept longer than necessary, never dropped too early.
//!
//! The relation holds between two steps directly. It is not extended through a third one, because a store may have
//! received a step without everything that its author had seen. For the steps of correct stores it has no circles; a
//! hostile store can write vectors that make some. [`OrderedStep::covers`] therefore ignores pairs that claim to have
//! seen each other, and no caller relies on the absence of longer circles.

use std::{borrow::Cow, cell::OnceCell, cmp::Ordering, collections::BTreeSet};

use super::EditStep;
use crate::causality::{Causality, Dot, OriginId};

/// A step and its position among all steps.
pub(super) struct OrderedStep<'a> {
    pub(super) step: &'a EditStep,
    /// All that is known of it, if the step was given several times.
    causality: Cow<'a, Causality>,
    /// The rank by time, then by text.
    pub(super) position: usize,
    text: OnceCell<String>,
}

/// Sorts `steps` by time, then by text, and unites equal ones.
pub(super) fn ordered<'a>(steps: impl IntoIterator<Item = &'a EditStep>) -> Vec<OrderedStep<'a>> {
    let mut ordered: Vec<OrderedStep<'_>> = steps.into_iter().map(OrderedStep::new).collect();
    ordered.sort_by(OrderedStep::by_time);
    ordered.dedup_by(|one, kept| {
        let same = one.by_time(kept).is_eq();
        if same {
            kept.causality.to_mut().unite(&one.causality);
        }
        same
    });
    for (position, one) in ordered.iter_mut().enumerate() {
        one.position = position;
    }
    ordered
}

/// Returns the steps that no other one of `steps` covers: the values that are left. If all of them are covered, which
/// takes a circle of false version vectors, all of them are left, because nothing tells which is older.
pub(super) fn surviving<'s, 'a>(steps: &[&'s OrderedStep<'a>]) -> Vec<&'s OrderedStep<'a>> {
    // Later steps are more likely to cover a step, so they are compared first.
    let covered = |step: &OrderedStep<'_>| steps.iter().rev().any(|other| other.covers(step));
    let left: Vec<&OrderedStep<'_>> = steps.iter().copied().filter(|step| !covered(step)).collect();
    if left.is_empty() { steps.to_vec() } else { left }
}

/// Returns whether two of `steps` are concurrent.
pub(super) fn any_concurrent(steps: &[&OrderedStep<'_>]) -> bool {
    let concurrent = |one: &OrderedStep<'_>, other: &OrderedStep<'_>| {
        one.position != other.position && !one.saw(other) && !other.saw(one)
    };
    steps.iter().enumerate().any(|(at, one)| steps[at + 1..].iter().any(|other| concurrent(one, other)))
}

impl<'a> OrderedStep<'a> {
    fn new(step: &'a EditStep) -> Self {
        Self { step, causality: Cow::Borrowed(&step.causality), position: 0, text: OnceCell::new() }
    }

    /// Returns whether the author of this step had seen `other`.
    pub(super) fn saw(&self, other: &Self) -> bool {
        let after = self.position > other.position;
        match (&*self.causality, &*other.causality) {
            (Causality::Unnumbered, Causality::Unnumbered) => after,
            (_, Causality::Unnumbered) => true,
            (Causality::Unnumbered, _) => false,
            (Causality::Assigned(own), Causality::Assigned(dots)) => after && share_origin(own, dots),
            (Causality::Assigned(_), Causality::Recorded { .. }) => false,
            (Causality::Recorded { dot, seen }, known) => {
                let earlier = |other: Dot| other.origin == dot.origin && other.counter < dot.counter;
                let contained = |other: Dot| other.origin != dot.origin && seen.contains(other);
                known.dots().any(|other| earlier(other) || contained(other))
            }
        }
    }

    /// Returns whether this step replaces `other` if both do the same thing.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.saw(other) && !other.saw(self)
    }

    /// Returns the greatest origin that gave the step a dot.
    pub(super) fn origin(&self) -> Option<OriginId> {
        self.causality.dots().map(|dot| dot.origin).max()
    }

    fn by_time(&self, other: &Self) -> Ordering {
        self.step.at.cmp(&other.step.at).then_with(|| self.text().cmp(other.text()))
    }

    fn text(&self) -> &str {
        self.text.get_or_init(|| serde_json::to_string(self.step).unwrap_or_default())
    }
}

fn share_origin(one: &BTreeSet<Dot>, other: &BTreeSet<Dot>) -> bool {
    let origins: BTreeSet<OriginId> = one.iter().map(|dot| dot.origin).collect();
    other.iter().any(|dot| origins.contains(&dot.origin))
}
