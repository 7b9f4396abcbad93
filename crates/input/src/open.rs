//! Opening what may be a pipe: a named one makes whoever opens it wait for its other end, for ever if
//! nobody comes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// A pipe's other end may come this late: a shell starts both ends at about the same time.
const OTHER_END_WAIT: Duration = Duration::from_secs(5);

/// Opens a file for reading; a pipe needs a writer within five seconds.
///
/// # Errors
/// Those of the system, and a pipe that nobody writes to.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file as `options` say; a pipe needs its other end within five seconds.
///
/// # Errors
/// Those of the system, and a pipe whose other end does not come.
pub fn open_with(path: &Path, options: &OpenOptions) -> io::Result<File> {
    open_within(path, options, OTHER_END_WAIT)
}

fn open_within(path: &Path, options: &OpenOptions, wait: Duration) -> io::Result<File> {
    if !fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return options.open(path);
    }
    let (sender, opened) = sync_channel(1);
    let (path, options) = (path.to_path_buf(), options.clone());
    // A call that waits for the other end cannot be ended: its thread stays behind.
    std::thread::spawn(move || sender.send(options.open(path)));
    opened.recv_timeout(wait).unwrap_or_else(|_| {
        let seconds = wait.as_secs_f64();
        let what = format!("it is a pipe, and for {seconds} s nobody opened its other end");
        Err(io::Error::new(io::ErrorKind::TimedOut, what))
    })
}

#[cfg(test)]
mod tests {
    use super::open_within;
    use std::fs::{File, OpenOptions};
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    fn pipe(path: &Path) {
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.expect("a pipe").success());
    }

    #[test]
    fn a_pipe_without_another_end_is_refused_in_time_both_ways() {
        let folder = tempfile::tempdir().expect("folder");
        let mut ways = [OpenOptions::new(), OpenOptions::new()];
        ways[0].read(true);
        ways[1].write(true).create(true).truncate(true);
        for (number, way) in ways.iter().enumerate() {
            // Each has its own: the thread that is left behind would be the other's other end.
            let path = folder.path().join(format!("pipe{number}"));
            pipe(&path);
            let error = open_within(&path, way, Duration::from_millis(50)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(error.to_string().contains("it is a pipe"), "{error}");
        }
    }

    #[test]
    fn a_pipe_with_a_late_writer_and_a_plain_file_are_read() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("pipe");
        pipe(&path);
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut end = OpenOptions::new().write(true).open(path).expect("opened");
                end.write_all(b"words").expect("written");
            })
        };
        let mut reading = OpenOptions::new();
        reading.read(true);
        let mut text = String::new();
        let opened = open_within(&path, &reading, Duration::from_secs(60));
        opened
            .expect("a writer")
            .read_to_string(&mut text)
            .expect("text");
        writer.join().expect("ended");
        assert_eq!(text, "words");
        let plain = folder.path().join("plain");
        File::create(&plain).expect("made");
        assert!(open_within(&plain, &reading, Duration::ZERO).is_ok());
    }
}
