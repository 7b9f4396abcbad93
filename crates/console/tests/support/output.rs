//! What every program must do when standard output takes nothing; included by their own tests.

use std::process::{Command, Stdio};

/// Runs `command` with standard output full, with both outputs full, and with a reader that has gone.
pub(crate) fn a_full_or_closed_output_is_no_panic(mut command: Command) {
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let output = command.stdout(full()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
    let line = "error: cannot write to standard output: No space left";
    assert!(text.contains(line), "{arguments:?}: {text}");

    let status = command.stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}: nobody can be told");

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: the reader had enough"
    );
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("error") && !text.contains("panic"), "{text}");
}
