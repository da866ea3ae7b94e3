//! Macros that make the tests that every importer should have.

/// Makes the tests that need no code of the importer's author. Use it in a file in `tests/`:
///
/// ```ignore
/// satchel_importer::importer_tests! { importer: Notes, fuzz_corpus: "/fuzz/corpus", samples: "notes" }
/// ```
///
/// - `importer`: the type that implements [`Importer`](crate::Importer). Each fixture in the crate's folder `fixtures` must give its
///   `expected.json` ([`check`](crate::testkit::check)), and the receipt must show each renamed field
///   ([`check_renamed_fields`](crate::testkit::check_renamed_fields)).
/// - `fuzz_corpus` (optional): a folder of fuzzer inputs, relative to the crate's folder and with a leading `/`
///   ([`replay`](crate::testkit::replay)).
/// - `samples` (optional): the provider's name among the sample exports beside the repository. The check of renamed fields covers them too,
///   and no file of another provider's samples may be claimed ([`check_other_samples`](crate::testkit::check_other_samples)).
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
            $crate::testkit::check_renamed_fields::<$importer>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
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
                $crate::testkit::check_renamed_samples::<$importer>(env!("CARGO_MANIFEST_DIR"), $provider)
            }

            #[test]
            fn samples_of_other_providers_are_not_claimed() -> Result<(), $crate::testkit::FixtureError> {
                $crate::testkit::check_other_samples::<$importer>(env!("CARGO_MANIFEST_DIR"), $provider)
            }
        )?
    };
}

/// Makes the tests of [`testkit::round_trip`](crate::testkit::round_trip): each stored conversation has the tree, order, times, roles and
/// text of its file.
///
/// ```ignore
/// satchel_importer::round_trip_tests! {
///     importer: Notes, reader: reader::ROUND, least: (10, 25), undetected: ["order"], samples: "notes"
/// }
/// ```
///
/// - `reader`: the [`RoundTrip`](crate::testkit::round_trip::RoundTrip) of the provider.
/// - `least`: the least number of conversations and turns in the fixtures.
/// - `undetected`: the changes that the comparison does not detect in any fixture
///   ([`undetected_changes`](crate::testkit::round_trip::RoundTrip::undetected_changes)); usually none.
/// - `samples` (optional): the provider's name among the sample exports beside the repository, which are compared too.
#[macro_export]
macro_rules! round_trip_tests {
    (
        importer: $importer:ty, reader: $reader:expr, least: ($chats:literal, $turns:literal), undetected: $undetected:expr
        $(, samples: $provider:literal)? $(,)?
    ) => {
        #[test]
        fn stored_fixtures_match_their_files() -> Result<(), $crate::testkit::FixtureError> {
            let least = $crate::testkit::round_trip::Compared { chats: $chats, turns: $turns };
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

/// Makes the tests with broken files. This needs the feature `property-tests`.
///
/// ```ignore
/// satchel_importer::broken_file_tests! { importer: Notes, format: "notes-importer/2026.01", files: files() }
/// ```
///
/// `files` is a `testkit::BrokenFiles`. The importer must not panic on variants with other bytes and other values, and a run in `format` must
/// end when the host stops it.
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
