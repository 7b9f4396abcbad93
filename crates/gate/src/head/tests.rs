use super::{Framing, MAX_HEAD_BYTES, Scan, check, find_end};
use crate::refusal::{self, Refusal};

fn judge(fields: &str) -> Result<Framing, Refusal> {
    check(format!("GET /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())
}

#[test]
fn plain_heads_pass_with_their_framing() {
    assert_eq!(judge(""), Ok(Framing::None));
    assert_eq!(judge("Content-Length: 0\r\n"), Ok(Framing::None));
    assert_eq!(judge("content-length:\t5 \r\n"), Ok(Framing::Length(5)));
    assert_eq!(
        judge("Transfer-Encoding: Chunked\r\n"),
        Ok(Framing::Chunked)
    );
    assert_eq!(
        judge("Content-Length: 9223372036854775807\r\n"),
        Ok(Framing::Length(i64::MAX as u64))
    );
}

#[test]
fn ambiguous_framing_is_refused() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 1 0\r\n",
        "Content-Length:\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
    ] {
        assert_eq!(judge(fields), Err(refusal::BAD_REQUEST), "{fields:?}");
    }
    let http_10 = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(check(http_10), Err(refusal::BAD_REQUEST));
}

#[test]
fn malformed_lines_are_refused() {
    for head in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@b\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET /\r\nHost: a\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(
            check(head.as_bytes()),
            Err(refusal::BAD_REQUEST),
            "{head:?}"
        );
    }
}

#[test]
fn sizes_have_their_own_reasons() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    assert_eq!(check(long.as_bytes()), Err(refusal::URI_TOO_LONG));
    let fields: String = (0..100).map(|i| format!("x-{i}: 1\r\n")).collect();
    assert_eq!(judge(&fields), Err(refusal::HEAD_TOO_LARGE));
    let unfinished = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD_BYTES));
    assert_eq!(
        find_end(unfinished.as_bytes(), 0),
        Err(refusal::HEAD_TOO_LARGE)
    );
    let target = format!("GET /{}", "x".repeat(9000));
    assert_eq!(find_end(target.as_bytes(), 0), Err(refusal::URI_TOO_LONG));
}

#[test]
fn the_end_is_found_wherever_the_bytes_were_split() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for split in 0..head.len() {
        assert_eq!(find_end(&head[..split], 0), Ok(Scan::Partial), "{split}");
        assert_eq!(
            find_end(head, split),
            Ok(Scan::Complete(head.len())),
            "{split}"
        );
    }
}
