//! Follows a chunked body to its end, so that the next head is found, and refuses broken chunks.
//!
//! Stricter than the library behind it: every line ends in CR LF, sizes are bare hexadecimal digits,
//! extensions and trailers are bounded. RFC 9112 section 7.1.

/// Longest line of size and extensions, bytes.
const MAX_SIZE_LINE_BYTES: usize = 4096;
/// All trailers together, bytes.
const MAX_TRAILER_BYTES: usize = 16 * 1024;
/// Digits of a size: 15 keep it below 2^60.
const MAX_SIZE_DIGITS: usize = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Digits of a size; `line` counts the bytes of the line.
    Size {
        digits: usize,
    },
    /// After the digits, up to the CR.
    Extension,
    /// The LF after a size line.
    SizeFeed,
    Data,
    DataReturn,
    DataFeed,
    /// At the start of a trailer line.
    TrailerStart,
    /// Within a trailer line.
    Trailer,
    TrailerFeed,
    /// The LF of the blank line that ends the body.
    LastFeed,
    Done,
}

/// A chunked body is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokenChunk;

/// Where in a chunked body the bytes seen so far end.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
    size: u64,
    line_bytes: usize,
    trailer_bytes: usize,
}

impl Default for Chunks {
    fn default() -> Self {
        Self {
            state: State::Size { digits: 0 },
            size: 0,
            line_bytes: 0,
            trailer_bytes: 0,
        }
    }
}

impl Chunks {
    /// True after the last byte of the body.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the next bytes and says how many of them belong to the body.
    ///
    /// # Errors
    /// The framing is broken.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<usize, BrokenChunk> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if self.state == State::Data {
                let step = self.size.min((bytes.len() - at) as u64);
                self.size -= step;
                at += step as usize;
                if self.size == 0 {
                    self.state = State::DataReturn;
                }
                continue;
            }
            self.state = self.step(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<State, BrokenChunk> {
        use State::{
            Data, DataFeed, DataReturn, Done, Extension, LastFeed, Size, SizeFeed, Trailer,
            TrailerFeed, TrailerStart,
        };
        self.count()?;
        let expect = |wanted: u8, next: State| (byte == wanted).then_some(next).ok_or(BrokenChunk);
        match self.state {
            Size { digits } if byte.is_ascii_hexdigit() => {
                if digits == MAX_SIZE_DIGITS {
                    return Err(BrokenChunk);
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                self.size = self.size * 16 + u64::from(digit);
                Ok(Size { digits: digits + 1 })
            }
            Size { digits: 0 } => Err(BrokenChunk),
            Size { .. } => match byte {
                b'\r' => Ok(SizeFeed),
                b';' | b' ' | b'\t' => Ok(Extension),
                _ => Err(BrokenChunk),
            },
            Extension if byte == b'\r' => Ok(SizeFeed),
            Extension => text(byte, Extension),
            SizeFeed => {
                self.line_bytes = 0;
                let next = if self.size == 0 { TrailerStart } else { Data };
                expect(b'\n', next)
            }
            DataReturn => expect(b'\r', DataFeed),
            DataFeed => expect(b'\n', Size { digits: 0 }),
            TrailerStart if byte == b'\r' => Ok(LastFeed),
            TrailerStart if super::head::is_token(&byte) => Ok(Trailer),
            TrailerStart => Err(BrokenChunk),
            Trailer if byte == b'\r' => Ok(TrailerFeed),
            Trailer => text(byte, Trailer),
            TrailerFeed => expect(b'\n', TrailerStart),
            LastFeed => expect(b'\n', Done),
            Data | Done => unreachable!("handled by the caller"),
        }
    }

    fn count(&mut self) -> Result<(), BrokenChunk> {
        match self.state {
            State::Size { .. } | State::Extension => {
                self.line_bytes += 1;
                (self.line_bytes <= MAX_SIZE_LINE_BYTES)
                    .then_some(())
                    .ok_or(BrokenChunk)
            }
            State::Trailer | State::TrailerStart => {
                self.trailer_bytes += 1;
                (self.trailer_bytes <= MAX_TRAILER_BYTES)
                    .then_some(())
                    .ok_or(BrokenChunk)
            }
            _ => Ok(()),
        }
    }
}

/// Text may hold anything but control characters; a tab is allowed.
fn text(byte: u8, next: State) -> Result<State, BrokenChunk> {
    if (byte < b' ' && byte != b'\t') || byte == 0x7f {
        Err(BrokenChunk)
    } else {
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::{BrokenChunk, Chunks};

    #[test]
    fn the_end_is_found_whatever_the_split() {
        let body = b"5;x=\"y\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\nGET";
        for split in 0..body.len() {
            let mut chunks = Chunks::default();
            let first = chunks.advance(&body[..split]).unwrap();
            let rest = chunks.advance(&body[first..]).unwrap();
            assert!(chunks.is_done());
            assert_eq!(first + rest, body.len() - 3, "{split}");
        }
    }

    #[test]
    fn broken_chunks_are_refused() {
        for body in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "5\nhello\r\n",
            "5\r\nhelloX\r\n",
            "5\r\nhello\rX",
            "1000000000000000\r\n",
            "5;\0\r\n",
            "5 x\n",
            "0\r\n X: folded\r\n",
            "0\r\nX: a\n",
        ] {
            let result = Chunks::default().advance(body.as_bytes());
            assert_eq!(result, Err(BrokenChunk), "{body:?}");
        }
        let long = format!("5;{}", "x".repeat(5000));
        assert!(Chunks::default().advance(long.as_bytes()).is_err());
        let trailers = format!("0\r\nX: {}", "x".repeat(20_000));
        assert!(Chunks::default().advance(trailers.as_bytes()).is_err());
    }
}
