//! Which requests and answers are refused for their framing, beyond what the HTTP library refuses.
//!
//! Two programs that disagree about where a message ends can be played against each other, so
//! anything ambiguous is refused on both sides.

use super::answer;
use super::fields::VIA_NAME;
use gate::MAX_URI_BYTES;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, VIA};
use http::{HeaderMap, Method, Version, request, response};
use schema::headers::TASK_SIZE_MI;

pub(crate) use gate::refusal::Refusal;

const BAD: Refusal = answer::BAD_REQUEST;

/// Balancers that a request passes at most. Chains of two or three make sense; a balancer that is its own
/// backend would go on for ever.
const MAX_HOPS: usize = 8;

/// Checks a request's target and fields. The gate has judged the raw head already; this holds for
/// whatever comes by another way, and for what only the parsed target shows.
pub(crate) fn check_request(head: &request::Parts) -> Result<(), Refusal> {
    if head.method == Method::CONNECT {
        return Err(answer::METHOD);
    }
    let target = head.uri.path_and_query().map_or("", |p| p.as_str());
    if target.len() > MAX_URI_BYTES {
        return Err(answer::URI_TOO_LONG);
    }
    let mut hosts = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(BAD);
    };
    if let Some(scheme) = head.uri.scheme_str()
        && !scheme.eq_ignore_ascii_case("http")
    {
        return Err(BAD);
    }
    if let Some(authority) = head.uri.authority()
        && !host
            .as_bytes()
            .eq_ignore_ascii_case(authority.as_str().as_bytes())
    {
        return Err(BAD);
    }
    if !target.starts_with('/') && target != "*" {
        return Err(BAD);
    }
    if head.version < Version::HTTP_11 && head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(BAD);
    }
    // Whoever reads the first and whoever reads the last would see different work.
    let sizes = head.headers.get_all(TASK_SIZE_MI).iter().count();
    if sizes > 1 || is_ambiguous(&head.headers) {
        return Err(BAD);
    }
    if has_looped(&head.headers) {
        return Err(answer::LOOP);
    }
    Ok(())
}

/// Whether a request has passed so many balancers that it must be going round among them.
fn has_looped(headers: &HeaderMap) -> bool {
    let hops = headers.get_all(VIA).iter().flat_map(|value| {
        let hops = value.as_bytes().split(|b| *b == b',');
        hops.filter(|hop| hop.trim_ascii().ends_with(VIA_NAME.as_bytes()))
    });
    hops.take(MAX_HOPS).count() == MAX_HOPS
}

/// Whether an answer can be passed on: its length is plain, its status one that HTTP has (RFC 9110,
/// section 15), and it is no tunnel.
pub(crate) fn check_answer(answer: &response::Parts) -> bool {
    (200..600).contains(&answer.status.as_u16()) && !is_ambiguous(&answer.headers)
}

/// A body whose length two readers could see differently.
pub(crate) fn is_ambiguous(headers: &HeaderMap) -> bool {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let coding = codings.next();
    let one_chunked = match coding {
        None => true,
        Some(value) => {
            codings.next().is_none() && value.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
    };
    let plain_length = headers
        .get(CONTENT_LENGTH)
        .is_none_or(|v| !v.is_empty() && v.as_bytes().iter().all(u8::is_ascii_digit));
    lengths > 1 || (lengths == 1 && coding.is_some()) || !one_chunked || !plain_length
}

#[cfg(test)]
mod tests {
    use super::{check_answer, check_request};
    use http::{Request, Response, Version};

    fn refused(
        build: impl FnOnce(http::request::Builder) -> http::request::Builder,
    ) -> Option<u16> {
        let (head, ()) = build(Request::builder().uri("/x"))
            .body(())
            .unwrap()
            .into_parts();
        check_request(&head)
            .err()
            .map(|(status, _)| status.as_u16())
    }

    #[test]
    fn a_request_needs_exactly_one_host_and_an_unambiguous_body() {
        assert_eq!(refused(|b| b.header("host", "h")), None);
        assert_eq!(refused(|b| b), Some(400));
        assert_eq!(
            refused(|b| b.header("host", "h").header("host", "h")),
            Some(400)
        );
        let host = |b: http::request::Builder| b.header("host", "h");
        assert_eq!(refused(|b| host(b).header("content-length", "5")), None);
        assert_eq!(
            refused(|b| host(b).header("content-length", "+5")),
            Some(400)
        );
        let both = |b| {
            host(b)
                .header("content-length", "5")
                .header("transfer-encoding", "chunked")
        };
        assert_eq!(refused(both), Some(400));
        assert_eq!(
            refused(|b| host(b).header("transfer-encoding", "chunked")),
            None
        );
        assert_eq!(
            refused(|b| host(b).header("transfer-encoding", "gzip, chunked")),
            Some(400)
        );
        let twice = |b| {
            host(b)
                .header("transfer-encoding", "chunked")
                .header("transfer-encoding", "chunked")
        };
        assert_eq!(refused(twice), Some(400));
        let old = |b: http::request::Builder| {
            host(b)
                .version(Version::HTTP_10)
                .header("transfer-encoding", "chunked")
        };
        assert_eq!(refused(old), Some(400));
    }

    #[test]
    fn an_answer_has_a_status_of_http() {
        for (status, good) in [
            (199, false),
            (101, false),
            (200, true),
            (599, true),
            (600, false),
            (999, false),
        ] {
            let answer = Response::builder().status(status).body(()).unwrap();
            let (answer, ()) = answer.into_parts();
            assert_eq!(check_answer(&answer), good, "{status}");
        }
    }

    #[test]
    fn a_task_size_stands_once_and_a_round_of_balancers_ends() {
        let with = |name: &'static str, value: &'static str, times: usize| {
            refused(|b| (0..times).fold(b.header("host", "h"), |b, _| b.header(name, value)))
        };
        assert_eq!(with("x-task-size-mi", "5", 1), None);
        assert_eq!(with("x-task-size-mi", "5", 2), Some(400));
        assert_eq!(with("via", "1.1 plumbline", 7), None);
        assert_eq!(with("via", "1.1 plumbline", 8), Some(508));
        assert_eq!(with("via", "1.0 plumbline , 1.1 plumbline", 4), Some(508));
        assert_eq!(with("via", "1.1 other, 2 plumbline.example", 9), None);
    }

    #[test]
    fn the_authority_of_an_absolute_target_is_the_host() {
        let absolute = |b: http::request::Builder| b.uri("http://h:1/x");
        assert_eq!(refused(|b| absolute(b).header("host", "h:1")), None);
        assert_eq!(refused(|b| absolute(b).header("host", "other")), Some(400));
        let connect =
            |b: http::request::Builder| b.method("CONNECT").uri("h:1").header("host", "h:1");
        assert_eq!(refused(connect), Some(405));
        let long =
            |b: http::request::Builder| b.uri(format!("/{}", "x".repeat(9000))).header("host", "h");
        assert_eq!(refused(long), Some(414));
    }
}
