//! Judges the bytes of one request head before the HTTP library sees them.
//!
//! The library is laxer than a proxy may be: it accepts a lone line feed, equal lengths given twice,
//! and hides a length that came with a transfer coding. Two programs that disagree on where a
//! message ends can be made to see different requests, so everything ambiguous is refused here
//! (RFC 9112 sections 2.2, 3.2, 5.1, 6.3; RFC 9110 section 7.2). One pass over the bytes, no
//! allocation. What passes is a strict subset of what the library accepts.

use crate::refusal::{self, Refusal};
use crate::{MAX_FIELDS, MAX_HEAD_BYTES, MAX_URI_BYTES};
use memchr::{memchr, memchr3};

/// Longest method name that is passed on, bytes.
const MAX_METHOD_BYTES: usize = 32;

/// How the body after a head is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks until the last one.
    Chunked,
}

/// Where a head ends, or that more bytes are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The head with its blank line has this many bytes.
    Complete(usize),
    /// The blank line has not come yet.
    Partial,
}

/// Looks for the end of the head, continuing after `seen` bytes that earlier calls looked at.
///
/// # Errors
/// `head_too_large` or `uri_too_long` as soon as the bytes at hand show it, `bad_request` for a line
/// that does not end in CR LF.
pub(crate) fn find_end(bytes: &[u8], seen: usize) -> Result<Scan, Refusal> {
    // The blank line may have begun in the bytes seen before.
    let mut at = seen.saturating_sub(3);
    while let Some(offset) = memchr(b'\n', &bytes[at..]) {
        let feed = at + offset;
        if feed == 0 || bytes[feed - 1] != b'\r' {
            return Err(refusal::BAD_REQUEST);
        }
        if feed >= MAX_HEAD_BYTES {
            return Err(refusal::HEAD_TOO_LARGE);
        }
        if feed >= 3 && bytes[feed - 2] == b'\n' {
            return Ok(Scan::Complete(feed + 1));
        }
        at = feed + 1;
    }
    if bytes.len() >= MAX_HEAD_BYTES {
        return Err(if memchr(b'\n', bytes).is_none() {
            refusal::URI_TOO_LONG
        } else {
            refusal::HEAD_TOO_LARGE
        });
    }
    if bytes.len() > MAX_URI_BYTES + MAX_METHOD_BYTES && memchr(b'\n', bytes).is_none() {
        return Err(refusal::URI_TOO_LONG);
    }
    Ok(Scan::Partial)
}

/// Judges a complete head, blank line included.
///
/// # Errors
/// The reason under which it is refused.
pub(crate) fn check(head: &[u8]) -> Result<Framing, Refusal> {
    let mut lines = Lines(head);
    let http_11 = check_request_line(lines.next_line()?)?;
    let mut fields = Fields::default();
    loop {
        let line = lines.next_line()?;
        if line.is_empty() {
            break;
        }
        fields.take(line)?;
    }
    fields.framing(http_11)
}

/// Lines of a head, each without its CR LF.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> Result<&'a [u8], Refusal> {
        let feed = memchr(b'\n', self.0).ok_or(refusal::BAD_REQUEST)?;
        let (line, rest) = self.0.split_at(feed);
        self.0 = &rest[1..];
        let line = line.strip_suffix(b"\r").ok_or(refusal::BAD_REQUEST)?;
        if memchr3(b'\r', 0, 0x7f, line).is_some() {
            return Err(refusal::BAD_REQUEST);
        }
        Ok(line)
    }
}

/// Checks `METHOD SP TARGET SP VERSION`; true for HTTP/1.1, false for HTTP/1.0.
fn check_request_line(line: &[u8]) -> Result<bool, Refusal> {
    let mut parts = line.split(|b| *b == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(refusal::BAD_REQUEST);
    };
    if method.is_empty() || method.len() > MAX_METHOD_BYTES || !method.iter().all(is_token) {
        return Err(refusal::BAD_REQUEST);
    }
    if target.len() > MAX_URI_BYTES {
        return Err(refusal::URI_TOO_LONG);
    }
    if target.is_empty() || target.iter().any(|b| *b <= b' ') {
        return Err(refusal::BAD_REQUEST);
    }
    match version {
        b"HTTP/1.1" => Ok(true),
        b"HTTP/1.0" => Ok(false),
        _ => Err(refusal::BAD_REQUEST),
    }
}

/// What the fields of a head say about its framing.
#[derive(Default)]
struct Fields {
    count: usize,
    hosts: usize,
    length: Option<u64>,
    chunked: bool,
}

impl Fields {
    fn take(&mut self, line: &[u8]) -> Result<(), Refusal> {
        self.count += 1;
        if self.count > MAX_FIELDS {
            return Err(refusal::HEAD_TOO_LARGE);
        }
        // A folded line starts with white space and so has no token before its colon.
        let colon = memchr(b':', line).ok_or(refusal::BAD_REQUEST)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || !name.iter().all(is_token) {
            return Err(refusal::BAD_REQUEST);
        }
        if value.iter().any(|b| *b < b' ' && *b != b'\t') {
            return Err(refusal::BAD_REQUEST);
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.hosts += 1;
                if !value.iter().all(is_host_byte) {
                    return Err(refusal::BAD_REQUEST);
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = parse_length(value)?;
                if self.length.replace(length).is_some() {
                    return Err(refusal::BAD_REQUEST);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(refusal::BAD_REQUEST);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self, http_11: bool) -> Result<Framing, Refusal> {
        if self.hosts != 1 {
            return Err(refusal::BAD_REQUEST);
        }
        match (self.length, self.chunked) {
            (Some(_), true) => Err(refusal::BAD_REQUEST),
            (None, true) if !http_11 => Err(refusal::BAD_REQUEST),
            (None, true) => Ok(Framing::Chunked),
            (None | Some(0), false) => Ok(Framing::None),
            (Some(n), false) => Ok(Framing::Length(n)),
        }
    }
}

/// A length is digits only, at most 2^63 - 1.
fn parse_length(value: &[u8]) -> Result<u64, Refusal> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return Err(refusal::BAD_REQUEST);
    }
    let length = value
        .iter()
        .fold(0_u64, |n, digit| n * 10 + u64::from(digit - b'0'));
    if length > i64::MAX as u64 {
        return Err(refusal::BAD_REQUEST);
    }
    Ok(length)
}

/// Bytes of a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b)
}

/// Bytes of `host[:port]` (RFC 3986 section 3.2.2): no white space, no list, no user part.
fn is_host_byte(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(b)
}

#[cfg(test)]
mod tests;
