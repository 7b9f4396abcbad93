//! What a request target may look like.

use super::MAX_URL_BYTES;

/// What is wrong with a request target, if anything.
pub fn target_fault(url: &str) -> Option<&'static str> {
    if !url.starts_with('/') {
        Some("does not start with a slash")
    } else if url.len() > MAX_URL_BYTES {
        Some("too long")
    } else if url.bytes().any(|b| b.is_ascii_control()) {
        Some("has control characters")
    } else if !url.bytes().all(|b| b.is_ascii_graphic()) || url.contains(['#', '"', '<', '>', '\\'])
    {
        Some("has characters that must be percent-encoded")
    } else {
        None
    }
}
