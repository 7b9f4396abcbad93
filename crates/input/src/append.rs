//! Lines appended to what may be full, a pipe or a device.

use std::io::{self, Write};

/// Writes whole lines, `batch`, as far as `out` takes them. Returns how many bytes of whole lines went
/// out, and what stopped it; whatever went out beyond them is for the caller to cut off. No position tells
/// this of a pipe.
///
/// # Errors
/// The second value: `out` takes no more.
pub fn append_lines(out: &mut impl Write, batch: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < batch.len() {
        let error = match out.write(&batch[written..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(step) => {
                written += step;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        let end = batch[..written].iter().rposition(|b| *b == b'\n');
        return (end.map_or(0, |at| at + 1), Err(error));
    }
    (written, Ok(()))
}

/// How many lines end in `bytes`.
pub fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| **b == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::{append_lines, count_lines};
    use std::io::{self, Write};

    /// Takes three bytes at a time and `room` in all; every other call is interrupted.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
        calls: u32,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(2) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let step = bytes.len().min(3).min(self.room - self.taken.len());
            if step == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.taken.extend(&bytes[..step]);
            Ok(step)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_fits_is_told_in_whole_lines() {
        let batch = b"ab\ncdef\ng\n";
        for (room, whole) in [(0, 0), (2, 0), (3, 3), (7, 3), (8, 8), (9, 8), (10, 10)] {
            let mut out = Narrow {
                taken: Vec::new(),
                room,
                calls: 0,
            };
            let (told, result) = append_lines(&mut out, batch);
            assert_eq!((told, result.is_ok()), (whole, room == 10), "{room}");
            assert_eq!(out.taken, &batch[..room]);
        }
        assert_eq!(count_lines(batch), 3);
    }
}
