//! Bytes to table and back.

use sha2::{Digest, Sha256};

use super::LatencyTable;
use crate::header::Header;
use crate::refusal::Refusal;

/// First bytes of a table file; the digits are the layout's version.
pub const MAGIC: &[u8; 8] = b"PLBTAB01";
/// Largest table file, bytes.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// Longest header, bytes.
pub const MAX_HEADER_BYTES: usize = 16 * 1024 * 1024;

const LENGTH: std::ops::Range<usize> = 8..12;
const DIGEST_BYTES: usize = 32;
const CELL_BYTES: usize = size_of::<f64>();
const EXPORT_AGAIN: &str = "the file is damaged or cut short; export the model again";

impl LatencyTable {
    /// Reads a table file.
    ///
    /// # Errors
    /// Whatever is not exactly a table of this version: the place, the value, the bound, the next step.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        let header_bytes = header_range(bytes)?;
        let body = check_digest(bytes)?;
        let header = body
            .get(header_bytes.clone())
            .ok_or_else(|| cut_short(bytes.len()))?;
        let header: Header = serde_json::from_slice(header)
            .map_err(|e| Refusal::new("header", format!("not as expected: {e}")))?;
        let expected = header.check()?;

        let start = header_bytes.end.next_multiple_of(CELL_BYTES);
        let padding = body
            .get(header_bytes.end..start)
            .ok_or_else(|| cut_short(bytes.len()))?;
        if padding.iter().any(|byte| *byte != 0) {
            let place = format!("bytes {}..{start}", header_bytes.end);
            return Err(Refusal::new(place, "the padding must be zeros").next(EXPORT_AGAIN));
        }
        let cells = &body[start..];
        if expected.checked_mul(CELL_BYTES) != Some(cells.len()) {
            return Err(
                Refusal::new("cells", "differ in size from what the header makes")
                    .value(format!("{} bytes", cells.len()))
                    .allowed(format!("{expected} cells of {CELL_BYTES} bytes"))
                    .next(EXPORT_AGAIN),
            );
        }
        let cells = cells.chunks_exact(CELL_BYTES).map(|cell| {
            f64::from_le_bytes(cell.try_into().expect("a chunk has the bytes of a cell"))
        });
        Self::new(header, cells.collect())
    }

    /// The file's bytes; reading them gives an equal table.
    ///
    /// # Errors
    /// A table larger than [`MAX_FILE_BYTES`].
    ///
    /// # Panics
    /// Never: a header has a JSON form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let header = serde_json::to_vec(&self.header).expect("a header has a JSON form");
        if header.len() > MAX_HEADER_BYTES {
            return Err(header_length(header.len()));
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.resize(bytes.len().next_multiple_of(CELL_BYTES), 0);
        bytes.extend(self.cells().iter().flat_map(|cell| cell.to_le_bytes()));
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        check_size(&bytes)?;
        Ok(bytes)
    }
}

/// Where the header is, by a length that is within bounds but not yet trusted.
fn header_range(bytes: &[u8]) -> Result<std::ops::Range<usize>, Refusal> {
    check_size(bytes)?;
    if !bytes.starts_with(MAGIC) {
        return Err(Refusal::new("bytes 0..8", "this is no latency table")
            .allowed("PLBTAB01")
            .next("name the table file that training writes beside the model"));
    }
    let length = bytes.get(LENGTH).ok_or_else(|| cut_short(bytes.len()))?;
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    if !(2..=MAX_HEADER_BYTES).contains(&length) {
        return Err(header_length(length));
    }
    Ok(LENGTH.end..LENGTH.end + length)
}

fn check_size(bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.len() <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(Refusal::new("", "the table is too large")
        .value(format!("{} bytes", bytes.len()))
        .allowed(format!("at most {MAX_FILE_BYTES}"))
        .next("train with a smaller border_count, such as 128"))
}

/// Everything before the digest, if the digest is right.
fn check_digest(bytes: &[u8]) -> Result<&[u8], Refusal> {
    let end = bytes
        .len()
        .checked_sub(DIGEST_BYTES)
        .ok_or_else(|| cut_short(bytes.len()))?;
    let (body, digest) = bytes.split_at(end);
    if Sha256::digest(body).as_slice() == digest {
        return Ok(body);
    }
    Err(Refusal::new(
        format!("bytes {end}..{}", bytes.len()),
        "the SHA-256 at the end is not that of the file",
    )
    .next(EXPORT_AGAIN))
}

fn cut_short(length: usize) -> Refusal {
    Refusal::new("", "the file ends too early")
        .value(format!("{length} bytes"))
        .next(EXPORT_AGAIN)
}

fn header_length(length: usize) -> Refusal {
    Refusal::new("bytes 8..12", "the header's length is out of range")
        .value(length)
        .allowed(format!("2 to {MAX_HEADER_BYTES}"))
        .next(EXPORT_AGAIN)
}
