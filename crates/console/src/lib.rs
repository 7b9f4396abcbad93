//! What a program is told on its command line, and what it says on standard output and standard error,
//! without a panic.
//!
//! `println!` panics when standard output is full and when its reader has gone. Here a reader that
//! has had enough, such as `head`, is no error (the program ends as it would have), and a full disk is
//! an error like any other: exit code 1. Standard error is where errors are told, so one of its own
//! cannot be told and is passed over. What is told there may repeat words of an input, so it is told
//! escaped and within a bound. The linter refuses the standard macros everywhere else.

mod command_line;

pub use command_line::{arguments, arguments_from};

use schema::problem::escaped;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// Longest line that is told, in characters.
const MAX_LINE_CHARS: usize = 16 * 1024;

/// Prints a line to standard output: `io::Result<()>`.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::print(format_args!("{}\n", format_args!($($words)*))) };
}

/// Prints a line to standard error, or nothing if that cannot be.
#[macro_export]
macro_rules! tell {
    ($($words:tt)*) => { $crate::print_aside(format_args!("{}\n", format_args!($($words)*))) };
}

/// Lets the program log to standard error what the variable `RUST_LOG` names, or `otherwise`, such as
/// `info`; call once. A reader that has gone and a full disk stop nothing.
pub fn start_log(otherwise: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| otherwise.into()))
        .with_writer(io::stderr)
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

/// Prints to standard output, whole, now.
///
/// # Errors
/// Standard output takes no more, and not because its reader has gone.
pub fn print(words: Arguments<'_>) -> io::Result<()> {
    print_to(&mut io::stdout().lock(), words)
}

/// Prints to standard error, or nothing if that cannot be; each line escaped and cut.
pub fn print_aside(words: Arguments<'_>) {
    let _ = io::stderr()
        .lock()
        .write_all(told(&words.to_string()).as_bytes());
}

fn told(words: &str) -> String {
    let lines = words.split('\n').map(|line| escaped(line, MAX_LINE_CHARS));
    lines.collect::<Vec<_>>().join("\n")
}

fn print_to(out: &mut impl Write, words: Arguments<'_>) -> io::Result<()> {
    // In one piece, since a line is looked at by whoever reads along.
    let text = words.to_string();
    heard(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The result of writing to standard output, where a reader that has gone is no error.
///
/// # Errors
/// Any other failure, named.
pub fn heard(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => {
            let text = format!("cannot write to standard output: {e}");
            Err(io::Error::new(e.kind(), text))
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{print_to, told};
    use std::fs::File;
    use std::io::{self, ErrorKind, Write};

    /// Takes some bytes, then fails in this way.
    struct Failing(usize, ErrorKind);

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let step = bytes.len().min(self.0);
            self.0 -= step;
            if step == 0 {
                Err(self.1.into())
            } else {
                Ok(step)
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_told_cannot_steer_a_terminal_and_has_a_bound() {
        assert_eq!(told("a\u{1b}[2Jb\rc\nd\n"), "a\\u{1b}[2Jb\\rc\nd\n");
        assert_eq!(told(&"x".repeat(1 << 20)).len(), 16 * 1024 + 3);
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is_one() {
        for room in [0, 3] {
            let gone = print_to(
                &mut Failing(room, ErrorKind::BrokenPipe),
                format_args!("words"),
            );
            assert!(gone.is_ok());
            let full = print_to(
                &mut Failing(room, ErrorKind::StorageFull),
                format_args!("words"),
            );
            let error = full.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            assert!(
                error
                    .to_string()
                    .starts_with("cannot write to standard output: ")
            );
        }
        let full = File::create("/dev/full").map(|mut f| print_to(&mut f, format_args!("x")));
        assert!(full.unwrap().is_err());
    }
}
