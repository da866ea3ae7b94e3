//! Tests the definition of the command line, and the examples in its help.

use clap::CommandFactory;

use super::*;

fn walk(command: &clap::Command, check: &mut impl FnMut(&clap::Command)) {
    check(command);
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        walk(inner, check);
    }
}

#[test]
fn the_definition_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_a_description_and_an_example() {
    let mut seen = 0;
    let mut root = Cli::command();
    root.build();
    walk(&root, &mut |command| {
        seen += 1;
        let help = command.clone().render_long_help().to_string();
        assert!(
            command.get_about().is_some_and(|about| about.to_string().len() > 10),
            "{}",
            command.get_name()
        );
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains("satchel "), "{help}");
    });
    assert!(seen > 20, "{seen} commands");
}

/// Splits a line into words as a shell does; quoted text is one word.
fn words(typed: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in typed.trim().chars() {
        match (c, words.last_mut()) {
            (c, _) if Some(c) == quote => quote = None,
            ('"' | '\'', _) if quote.is_none() => quote = Some(c),
            (c, _) if c.is_whitespace() && quote.is_none() => words.push(String::new()),
            (c, Some(word)) => word.push(c),
            (_, None) => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_example_parses() {
    let mut root = Cli::command();
    root.build();
    walk(&root, &mut |command| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.lines().filter_map(|line| line.strip_prefix("  satchel "));
        for example in examples {
            let typed = example.split(['|', '>']).next().unwrap_or_default();
            let parsed = Cli::try_parse_from(std::iter::once("satchel".to_owned()).chain(words(typed)));
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    });
}

#[test]
fn options_of_linked_memories_are_read() {
    let parse = |words: &[&str]| Cli::try_parse_from(["satchel", "memories"].iter().chain(words));
    let read = |words: &[&str]| parse(words).unwrap().command;
    assert!(matches!(
        read(&["related", "9c41", "--depth", "3", "--via", "relation,superseded-by"]),
        Command::Memories(Memories::Related(args))
            if args.depth == 3 && args.via == [LinkArg::Relation, LinkArg::SupersededBy] && args.types.is_empty()
    ));
    assert!(matches!(
        read(&["related", "9c41"]),
        Command::Memories(Memories::Related(args)) if args.depth == 2 && args.via.is_empty()
    ));
    assert!(matches!(
        read(&["duplicates", "--threshold", "0.75"]),
        Command::Memories(Memories::Duplicates(args)) if args.threshold == Some(0.75) && args.paging.limit == 50
    ));
    assert!(matches!(
        read(&["contradictions", "--settled", "--all"]),
        Command::Memories(Memories::Contradictions(args)) if args.settled && args.paging.all
    ));
    for refused in [
        &["related"][..],
        &["related", "9c41", "--depth", "0"],
        &["related", "9c41", "--depth", "6"],
        &["duplicates", "--threshold", "0.4"],
        &["duplicates", "--threshold", "NaN"],
    ] {
        assert!(parse(refused).is_err(), "{refused:?}");
    }
}

#[test]
fn global_options_may_follow_the_command() {
    let cli =
        Cli::try_parse_from(["satchel", "memories", "list", "--json", "--data-dir", "/d", "-vv"]).unwrap();
    assert!(cli.global.json);
    assert_eq!((cli.global.data_dir, cli.global.verbose), (Some("/d".into()), 2));
}

#[test]
fn a_context_has_a_budget_and_a_query() {
    let parse = |options: &[&str]| {
        let cli = Cli::try_parse_from(["satchel", "context"].iter().chain(options));
        cli.map(|cli| match cli.command {
            Command::Context(args) => args,
            _ => unreachable!(),
        })
    };
    let args = parse(&["baking", "bread"]).unwrap();
    assert_eq!(
        (args.query.join(" "), args.tokens, args.messages, args.at),
        ("baking bread".to_owned(), 1_000, false, None)
    );
    let args = parse(&["bread", "--tokens", "250", "--messages", "--at", "2025-06"]).unwrap();
    assert_eq!((args.tokens, args.messages, args.at.as_deref()), (250, true, Some("2025-06")));
    for wrong in [&[][..], &["bread", "--tokens", "0"], &["bread", "--tokens", "100001"], &["bread", "--at"]]
    {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}
