//! Who wrote an entry. The list of My AI does not say it, so it is inferred from the times: My AI answers within seconds.

use satchel_importer::Role;

/// The longest pause between a question and its answer, in microseconds. In exports answers come within five seconds.
const PAUSE: i64 = 15_000_000;

/// What an entry shows of its author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text of the chat.
    Words,
    /// A photo or a video.
    Photo,
    /// Another or no type: nothing tells who sends such entries.
    Other,
}

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) time: Option<i64>,
    pub(crate) kind: Kind,
    /// The role, if the export names the sender.
    pub(crate) known: Option<Role>,
}

/// How the role of an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleSource {
    /// The export names the sender.
    Stated,
    /// From the times and types of the entries around it.
    Inferred,
    /// Nothing tells the author, so it is read as My AI's.
    Assumed,
}

impl RoleSource {
    /// The value of `role_source` in the metadata of a message; none if the export names the sender.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Stated => None,
            Self::Inferred => Some("inferred"),
            Self::Assumed => Some("assumed"),
        }
    }
}

/// The role of each entry, oldest first, and how it was found.
///
/// Entries without a longer pause between them are an exchange. If it has only words and an even number of them, the person begins and the
/// two alternate. With an odd number, somebody wrote twice or got no answer, so only the first entry is the person's. A single entry is My
/// AI's, since it also writes unasked. In an exchange with photos, which are the person's, the number of answers says nothing. All entries
/// of which nothing tells the author are My AI's: its words must not be stored as the person's.
pub(crate) fn roles(turns: &[Turn]) -> Vec<(Role, RoleSource)> {
    let mut roles = Vec::with_capacity(turns.len());
    let mut from = 0;
    for at in 0..turns.len() {
        let pause = match (turns.get(at), turns.get(at + 1)) {
            (Some(Turn { time: Some(time), .. }), Some(Turn { time: Some(next), .. })) => {
                next.saturating_sub(*time) > PAUSE
            }
            _ => true,
        };
        if pause {
            exchange(turns.get(from..=at).unwrap_or_default(), &mut roles);
            from = at + 1;
        }
    }
    roles
}

fn exchange(turns: &[Turn], roles: &mut Vec<(Role, RoleSource)>) {
    let words_alone = turns.iter().all(|turn| turn.kind == Kind::Words);
    let alternate = words_alone && turns.len().is_multiple_of(2);
    for (at, turn) in turns.iter().enumerate() {
        let asks = match turn.kind {
            Kind::Photo => true,
            _ if alternate => at.is_multiple_of(2),
            _ => words_alone && at == 0 && turns.len() > 1,
        };
        roles.push(match turn.known {
            Some(role) => (role, RoleSource::Stated),
            None if asks => (Role::User, RoleSource::Inferred),
            None if alternate => (Role::Assistant, RoleSource::Inferred),
            None => (Role::Assistant, RoleSource::Assumed),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFERRED_USER: (Role, RoleSource) = (Role::User, RoleSource::Inferred);
    const INFERRED_AI: (Role, RoleSource) = (Role::Assistant, RoleSource::Inferred);
    const ASSUMED_AI: (Role, RoleSource) = (Role::Assistant, RoleSource::Assumed);

    /// Roles of entries given as seconds, as letters: `?` is assumed. Negative seconds are photos.
    fn letters(seconds: &[i64]) -> String {
        let kind = |second: &i64| if *second > 0 { Kind::Words } else { Kind::Photo };
        let turn =
            |second: &i64| Turn { time: Some(second.abs() * 1_000_000), kind: kind(second), known: None };
        let turns: Vec<Turn> = seconds.iter().map(turn).collect();
        let letter = |role: &(Role, RoleSource)| match *role {
            INFERRED_USER => 'u',
            INFERRED_AI => 'a',
            _ => '?',
        };
        roles(&turns).iter().map(letter).collect()
    }

    #[test]
    fn questions_and_answers_alternate() {
        assert_eq!(letters(&[1, 3, 100, 104, 109, 110]), "uauaua");
    }

    #[test]
    fn words_that_can_be_of_either_are_not_the_persons() {
        assert_eq!(letters(&[1]), "?");
        assert_eq!(letters(&[1, 2, 5, 60, 61]), "u??ua");
        // An answer in two parts, and then another question.
        assert_eq!(letters(&[1, 3, 4, 10, 12]), "u????");
        assert_eq!(letters(&[]), "");
    }

    #[test]
    fn photos_are_the_persons_and_words_beside_them_are_not() {
        assert_eq!(letters(&[-1, 2, -2, -3, 4, 5, 90, 91]), "u?uu??ua");
    }

    #[test]
    fn entries_of_other_types_are_not_the_persons() {
        let turn = |second: i64, kind| Turn { time: Some(second), kind, known: None };
        assert_eq!(roles(&[turn(1, Kind::Other)]), [ASSUMED_AI]);
        let turns = [turn(1, Kind::Words), turn(2, Kind::Other), turn(3, Kind::Photo)];
        assert_eq!(roles(&turns), [ASSUMED_AI, ASSUMED_AI, INFERRED_USER]);
    }

    #[test]
    fn entries_without_a_time_stand_alone_and_named_senders_count() {
        let turn = |time, known| Turn { time, kind: Kind::Words, known };
        let turns = [turn(Some(1), None), turn(None, None), turn(Some(2), Some(Role::User))];
        assert_eq!(roles(&turns), [ASSUMED_AI, ASSUMED_AI, (Role::User, RoleSource::Stated)]);
    }
}
