//! A file larger than memory, read as it comes, with a bound on its lines.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use schema::problem::Problem;

/// The bytes of a file whose lines have at most so many; fails at a longer one, so that what is no
/// text of lines is not gathered in memory.
#[derive(Debug)]
pub struct BoundedLines<R> {
    inner: R,
    limit: usize,
    /// Bytes since the last newline.
    in_line: usize,
}

/// Opens a file whose lines have at most `limit` bytes.
///
/// # Errors
/// A file that cannot be opened.
pub fn open_lines(path: &Path, limit: usize) -> Result<BoundedLines<File>, Box<Problem>> {
    super::open(path)
        .map(|file| BoundedLines::new(file, limit))
        .map_err(|error| super::problem(path, format!("cannot read it: {error}")).into())
}

impl<R: Read> BoundedLines<R> {
    fn new(inner: R, limit: usize) -> Self {
        Self {
            inner,
            limit,
            in_line: 0,
        }
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        for line in buffer[..n].split_inclusive(|b| *b == b'\n') {
            self.in_line += line.len();
            if self.in_line > self.limit {
                let what = format!("a line is longer than {} bytes", self.limit);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if line.ends_with(b"\n") {
                self.in_line = 0;
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::BoundedLines;
    use std::io::{BufReader, Read as _};

    #[test]
    fn lines_up_to_the_bound_pass_and_longer_ones_fail_wherever_a_read_ends() {
        for size in 1..8 {
            let read = |text: &str| {
                let mut out = String::new();
                let bounded = BoundedLines::new(text.as_bytes(), 4);
                BufReader::with_capacity(size, bounded).read_to_string(&mut out)
            };
            assert_eq!(read("abc\nabc\n\nab").expect("short"), 11);
            let error = read("abc\nabcd\n").unwrap_err().to_string();
            assert_eq!(error, "a line is longer than 4 bytes");
        }
    }
}
