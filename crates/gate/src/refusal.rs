//! Why a head is refused.

use http::StatusCode;

/// The status and the word for the reason.
pub type Refusal = (StatusCode, &'static str);

/// Malformed, or two readers could see different requests in it.
pub const BAD_REQUEST: Refusal = (StatusCode::BAD_REQUEST, "bad_request");
/// The target is longer than [`crate::MAX_URI_BYTES`].
pub const URI_TOO_LONG: Refusal = (StatusCode::URI_TOO_LONG, "uri_too_long");
/// The head is longer than [`crate::MAX_HEAD_BYTES`] or has more fields than [`crate::MAX_FIELDS`].
pub const HEAD_TOO_LARGE: Refusal = (
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head_too_large",
);
/// The end of the head did not come in time.
pub const HEAD_TIMEOUT: Refusal = (StatusCode::REQUEST_TIMEOUT, "head_timeout");
