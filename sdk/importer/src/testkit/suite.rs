//! The tests that every importer should have, as macros.

/// Makes the tests that an importer passes without code of its own. Use it in a file of its own below `tests/`:
///
/// ```ignore
/// satchel_importer::importer_tests! { importer: Notes, fuzz_corpus: "/fuzz/corpus", samples: "notes" }
/// ```
///
/// - `importer`: the type that implements [`Importer`](crate::Importer). Each fixture of the crate's folder `fixtures` must give what its
///   `expected.json` says ([`check`](crate::testkit::check)), and no field may be renamed without the receipt showing it
///   ([`renamed`](crate::testkit::renamed)).
/// - `fuzz_corpus` (optional): a folder of inputs, as a path behind the crate's folder, on which the importer must hold
///   ([`replay`](crate::testkit::replay)).
/// - `samples` (optional): the provider's name among the sample exports beside the repository. They must pass the check of renamed fields
///   too, and of the samples of other providers no file may be claimed ([`check_other_samples`](crate::testkit::check_other_samples)).
/// - `secrets` (optional): names of fixtures, a text that the records of each must contain, and texts that they must not contain
///   ([`check_secrets`](crate::testkit::check_secrets)): `secrets: (["whole-export"], "u-1", ["PASSWORD", "example.invalid"])`.
#[macro_export]
macro_rules! importer_tests {
    (
        importer: $importer:ty $(, fuzz_corpus: $corpus:literal)? $(, samples: $provider:literal)?
        $(, secrets: ($fixtures:expr, $present:literal, $secrets:expr $(,)?))? $(,)?
    ) => {
        #[test]
        fn fixtures_give_what_is_expected() -> Result<(), $crate::testkit::FixtureError> {
            $crate::testkit::check::<$importer>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
        }

        #[test]
        fn renamed_fields_of_fixtures_are_found_or_reported() -> Result<(), $crate::testkit::FixtureError> {
            $crate::testkit::renamed::<$importer>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
        }

        $(
            #[test]
            fn inputs_of_the_fuzzer_are_survived() -> Result<(), $crate::testkit::FixtureError> {
                $crate::testkit::replay::<$importer>(concat!(env!("CARGO_MANIFEST_DIR"), $corpus))
            }
        )?

        $(
            #[test]
            fn secrets_of_fixtures_are_not_emitted() -> Result<(), $crate::testkit::FixtureError> {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
                $crate::testkit::check_secrets::<$importer>(folder, &$fixtures, $present, &$secrets)
            }
        )?

        $(
            #[test]
            fn renamed_fields_of_samples_are_found_or_reported() -> Result<(), $crate::testkit::FixtureError> {
                $crate::testkit::renamed_samples::<$importer>(env!("CARGO_MANIFEST_DIR"), $provider)
            }

            #[test]
            fn samples_of_other_providers_are_not_claimed() -> Result<(), $crate::testkit::FixtureError> {
                $crate::testkit::check_other_samples::<$importer>(env!("CARGO_MANIFEST_DIR"), $provider)
            }
        )?
    };
}

/// Makes the tests of the round trip ([`testkit::round`](crate::testkit::round)): what is stored of each conversation has the tree, order,
/// times, roles and text of its file.
///
/// ```ignore
/// satchel_importer::round_trip_tests! {
///     importer: Notes, reader: reader::ROUND, least: (10, 25), undetected: ["order"], samples: "notes"
/// }
/// ```
///
/// - `reader`: the [`Round`](crate::testkit::round::Round) of the provider.
/// - `least`: how many conversations and turns the fixtures have at least.
/// - `undetected`: the changes that the comparison cannot find in any fixture
///   ([`undetected_changes`](crate::testkit::round::Round::undetected_changes)); usually none.
/// - `samples` (optional): the provider's name among the sample exports beside the repository, which are compared too.
#[macro_export]
macro_rules! round_trip_tests {
    (
        importer: $importer:ty, reader: $reader:expr, least: ($chats:literal, $turns:literal), undetected: $undetected:expr
        $(, samples: $provider:literal)? $(,)?
    ) => {
        #[test]
        fn stored_fixtures_match_their_files() -> Result<(), $crate::testkit::FixtureError> {
            let least = $crate::testkit::round::Compared { chats: $chats, turns: $turns };
            $reader.check::<$importer>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), least)
        }

        #[test]
        fn changes_of_what_is_stored_are_found() -> Result<(), $crate::testkit::FixtureError> {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
            let expected: &[&str] = &$undetected;
            assert_eq!($reader.undetected_changes::<$importer>(folder)?, expected);
            Ok(())
        }

        $(
            #[test]
            fn stored_samples_match_their_files() -> Result<(), $crate::testkit::FixtureError> {
                $reader.check_samples::<$importer>(env!("CARGO_MANIFEST_DIR"), $provider)
            }
        )?
    };
}

/// Makes the tests with broken files that an importer passes without code of its own; this needs the feature `property-tests`.
///
/// ```ignore
/// satchel_importer::broken_file_tests! { importer: Notes, format: "notes-importer/2026.01", files: files() }
/// ```
///
/// `files` gives the `testkit::BrokenFiles`: the importer must hold on variants with other bytes and other values, and
/// a run in `format` must end when the host stops it.
#[macro_export]
macro_rules! broken_file_tests {
    (importer: $importer:ty, format: $format:expr, files: $files:expr $(,)?) => {
        #[test]
        fn changed_bytes_never_panic() {
            $files.change_bytes();
        }

        #[test]
        fn changed_values_never_panic() {
            $files.change_values();
        }

        #[test]
        fn the_host_can_stop_a_run() {
            $files.cancel::<$importer>($format);
        }
    };
}
