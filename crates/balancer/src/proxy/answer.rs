//! Answers the balancer gives itself: a status, a reason header and one line of text.

use super::body::ResponseBody;
use super::framing::Refusal;
use super::receipt::Receipt;
use bytes::Bytes;
pub(crate) use gate::refusal::{BAD_REQUEST, URI_TOO_LONG};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
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
pub(crate) const LOOP: Refusal = (StatusCode::LOOP_DETECTED, "loop");
pub(crate) const SHED: Refusal = (StatusCode::SERVICE_UNAVAILABLE, "shed");
pub(crate) const METHOD: Refusal = (StatusCode::METHOD_NOT_ALLOWED, "method");
pub(crate) const BODY_TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large");
pub(crate) const BODY_TIMEOUT: Refusal = (StatusCode::REQUEST_TIMEOUT, "body_timeout");

/// How a request ends whose client went away; nobody hears it.
pub(crate) const CLIENT_GONE: &str = "client_gone";
/// The same, found within the request's body. 499 is not registered, and nobody reads it.
pub(crate) const GONE: Refusal = (StatusCode::BAD_REQUEST, CLIENT_GONE);
/// The backend ended its answer early; the client's connection was cut.
pub(crate) const BODY_TRUNCATED: &str = "body_truncated";
/// The backend stalled within its answer; the client's connection was cut.
pub(crate) const BODY_IDLE: &str = "body_idle";

/// The answer for a refusal; `attempts` were made before it.
pub(crate) fn refuse(
    (status, reason): Refusal,
    attempts: u32,
    receipt: Option<Receipt>,
) -> Response<ResponseBody> {
    let text = match reason {
        "loop" => {
            "508 loop: the request goes round among balancers; is one of them its own --backend?\n"
                .into()
        }
        _ => format!("{} {reason}\n", status.as_u16()),
    };
    let mut answer = Response::new(ResponseBody::Own {
        text: Some(Bytes::from(text)),
        _receipt: receipt,
    });
    *answer.status_mut() = status;
    let fields = answer.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    fields.insert(headers::REASON, HeaderValue::from_static(reason));
    fields.insert(headers::ATTEMPTS, HeaderValue::from(attempts));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let offered = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE";
        fields.insert(ALLOW, HeaderValue::from_static(offered));
    }
    if status.is_client_error() {
        // What is left of a broken request cannot be told from the next one.
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
