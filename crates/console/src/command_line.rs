//! How a program reads its command line.
//!
//! A value may be a negative number for every argument of every command: it is then refused like any
//! other wrong value, with what is allowed, and not taken for an unknown flag.

use clap::{Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// The arguments that this process was started with; ends it, as clap does, when they are refused
/// (exit code 2) or ask for help or the version (0).
pub fn arguments<A: CommandFactory + FromArgMatches>() -> A {
    arguments_from(std::env::args_os()).unwrap_or_else(|refusal| refusal.exit())
}

/// The arguments of `line`, whose first word is the program.
///
/// # Errors
/// What clap refuses, and what it answers to `--help` and `--version`.
pub fn arguments_from<A: CommandFactory + FromArgMatches>(
    line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<A, clap::Error> {
    let mut command = with_negative_numbers(A::command());
    let mut given = command.try_get_matches_from_mut(line)?;
    A::from_arg_matches_mut(&mut given).map_err(|refusal| refusal.format(&mut command))
}

fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let takes_values = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes_values)
        })
        .mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use super::arguments_from;
    use clap::{Parser, Subcommand};

    #[derive(Debug, Parser)]
    struct Program {
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
        threads: Option<u16>,
        #[command(subcommand)]
        command: Option<Outer>,
    }

    #[derive(Debug, Subcommand)]
    enum Outer {
        #[command(subcommand)]
        Fault(Inner),
    }

    #[derive(Debug, Subcommand)]
    enum Inner {
        Add {
            #[arg(long, value_parser = clap::value_parser!(u16).range(1..=60))]
            seconds: u16,
            #[arg(long)]
            json: bool,
            #[arg(value_parser = clap::value_parser!(u16).range(1..=9))]
            workers: Vec<u16>,
        },
    }

    fn refusal(words: &[&str]) -> String {
        let refusal = arguments_from::<Program>([&["program"], words].concat());
        let refusal = refusal.expect_err("refused");
        assert_eq!(refusal.exit_code(), 2);
        refusal.to_string()
    }

    #[test]
    fn a_negative_number_is_refused_with_the_bound_at_any_depth() {
        for (words, bound) in [
            (&["--threads", "-1"][..], "-1 is not in 1..=256"),
            (&["--threads", "-0.5"], "'-0.5' for '--threads"),
            (&["fault", "add", "--seconds", "-1"], "-1 is not in 1..=60"),
            (
                &["fault", "add", "--seconds", "1", "-2"],
                "-2 is not in 1..=9",
            ),
        ] {
            let told = refusal(words);
            assert!(told.contains(bound), "{words:?}: {told}");
        }
        for unknown in [
            &["--thread", "1"][..],
            &["fault", "add", "--seconds", "--json"],
        ] {
            assert!(!refusal(unknown).contains("is not in"));
        }
    }

    #[test]
    fn what_is_within_the_bounds_is_read() {
        let line = "program --threads 4 fault add --seconds 60 --json 1 9";
        let given: Program = arguments_from(line.split(' ')).expect("good");
        let Some(Outer::Fault(Inner::Add {
            seconds,
            json,
            workers,
        })) = given.command
        else {
            panic!("a command was given")
        };
        assert_eq!((given.threads, seconds, json), (Some(4), 60, true));
        assert_eq!(workers, [1, 9]);
    }
}
