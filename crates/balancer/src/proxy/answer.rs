//! Answers the balancer gives itself: a status, a reason header and one line of text.

use super::body::ResponseBody;
use super::framing::Refusal;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use schema::headers;

pub(crate) const CONNECT_REFUSED: Refusal = (StatusCode::BAD_GATEWAY, "connect_refused");
pub(crate) const CONNECT_UNREACHABLE: Refusal = (StatusCode::BAD_GATEWAY, "connect_unreachable");
pub(crate) const BACKEND_RESET: Refusal = (StatusCode::BAD_GATEWAY, "backend_reset");
pub(crate) const BAD_RESPONSE: Refusal = (StatusCode::BAD_GATEWAY, "backend_bad_response");
pub(crate) const CONNECT_TIMEOUT: Refusal = (StatusCode::GATEWAY_TIMEOUT, "connect_timeout");
pub(crate) const PER_TRY_TIMEOUT: Refusal = (StatusCode::GATEWAY_TIMEOUT, "per_try_timeout");
pub(crate) const TOTAL_TIMEOUT: Refusal = (StatusCode::GATEWAY_TIMEOUT, "total_timeout");
pub(crate) const NO_BACKEND: Refusal = (StatusCode::SERVICE_UNAVAILABLE, "no_backend");
pub(crate) const SHED: Refusal = (StatusCode::SERVICE_UNAVAILABLE, "shed");
pub(crate) const BAD_REQUEST: Refusal = (StatusCode::BAD_REQUEST, "bad_request");
pub(crate) const BODY_TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
pub(crate) const BODY_TIMEOUT: Refusal = (StatusCode::REQUEST_TIMEOUT, "body_timeout");

/// The answer for a refusal; `attempts` were made before it.
pub(crate) fn refuse((status, reason): Refusal, attempts: u32) -> Response<ResponseBody> {
    let text = Bytes::from(format!("{} {reason}\n", status.as_u16()));
    let mut answer = Response::new(ResponseBody::Own(Some(text)));
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    fields.insert(headers::REASON, HeaderValue::from_static(reason));
    fields.insert(headers::ATTEMPTS, HeaderValue::from(attempts));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}
