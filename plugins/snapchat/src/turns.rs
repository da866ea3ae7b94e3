//! Who wrote an entry. The list of My AI does not say it, so it is inferred from the times: My AI answers within seconds.

use satchel_importer::Role;

/// The longest pause between a question and its answer, in microseconds. In exports answers come within five seconds.
const PAUSE: i64 = 15_000_000;

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) time: Option<i64>,
    /// It is words, not a photo or anything else.
    pub(crate) words: bool,
    /// The role, if the export names the sender.
    pub(crate) known: Option<Role>,
}

/// The role of each entry, oldest first.
///
/// Entries without a longer pause between them are an exchange. Of one with words alone, the person's and My AI's entries alternate, and the
/// person begins. A last entry that nobody answers is My AI's, since it also writes unasked. In an exchange with photos, which are the
/// person's, the number of answers says nothing, so all words are My AI's: words of the AI must not pass for the person's.
pub(crate) fn roles(turns: &[Turn]) -> Vec<Role> {
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

fn exchange(turns: &[Turn], roles: &mut Vec<Role>) {
    let words_alone = turns.iter().all(|turn| turn.words);
    for (at, turn) in turns.iter().enumerate() {
        let asks = if words_alone { at % 2 == 0 && at + 1 < turns.len() } else { !turn.words };
        roles.push(turn.known.unwrap_or(if asks { Role::User } else { Role::Assistant }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Roles of entries given as seconds, as letters; negative seconds are photos.
    fn letters(seconds: &[i64]) -> String {
        let turn =
            |second: &i64| Turn { time: Some(second.abs() * 1_000_000), words: *second > 0, known: None };
        let turns: Vec<Turn> = seconds.iter().map(turn).collect();
        roles(&turns).iter().map(|role| if *role == Role::User { 'u' } else { 'a' }).collect()
    }

    #[test]
    fn questions_and_answers_alternate() {
        assert_eq!(letters(&[1, 3, 100, 104, 109, 110]), "uauaua");
    }

    #[test]
    fn unanswered_words_are_not_the_persons() {
        assert_eq!(letters(&[1]), "a");
        assert_eq!(letters(&[1, 2, 5, 60, 61]), "uaaua");
        assert_eq!(letters(&[]), "");
    }

    #[test]
    fn photos_are_the_persons_and_words_beside_them_are_not() {
        assert_eq!(letters(&[-1, 2, -2, -3, 4, 5, 90, 91]), "uauuaaua");
    }

    #[test]
    fn entries_without_a_time_stand_alone_and_named_senders_count() {
        let turn = |time, known| Turn { time, words: true, known };
        let turns = [turn(Some(1), None), turn(None, None), turn(Some(2), Some(Role::User))];
        assert_eq!(roles(&turns), [Role::Assistant, Role::Assistant, Role::User]);
    }
}
