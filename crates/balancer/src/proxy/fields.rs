//! Header fields: what belongs to one connection only is removed, what the balancer says is added.

use http::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, VIA,
};
use schema::headers::{CONTAINER, REQUEST_ID, RESERVED_PREFIX};
use std::net::IpAddr;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REQUEST_ID_NAME: HeaderName = HeaderName::from_static(REQUEST_ID);
const VIA_VALUE: HeaderValue = HeaderValue::from_static("1.1 plumbline");

/// Removes what is meant for one connection, and whatever `Connection` names (RFC 9110, 7.6.1).
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter(|v| !is_plain_connection(v))
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    let trailers_wanted = headers
        .get(TE)
        .is_some_and(|te| te.as_bytes().eq_ignore_ascii_case(b"trailers"));
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        TE,
    ] {
        headers.remove(name);
    }
    if trailers_wanted {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// The usual values, which name no other field: they need no parsing.
fn is_plain_connection(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
}

/// Removes names that only the balancer may set.
pub(crate) fn remove_reserved(headers: &mut HeaderMap) {
    let reserved: Vec<HeaderName> = headers
        .keys()
        .filter(|n| n.as_str().starts_with(RESERVED_PREFIX))
        .cloned()
        .collect();
    for name in reserved {
        headers.remove(name);
    }
    headers.remove(CONTAINER);
}

/// Turns a client's fields into what the backend gets. `request_id` goes along exactly once.
pub(crate) fn for_backend(headers: &mut HeaderMap, peer: IpAddr, request_id: &HeaderValue) {
    remove_hop_by_hop(headers);
    remove_reserved(headers);
    // The library has answered or will answer `100-continue` itself.
    headers.remove(EXPECT);
    if let Ok(peer) = HeaderValue::try_from(peer.to_string()) {
        headers.insert(FORWARDED_FOR, peer);
    }
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
    if let Some(host) = headers.get(HOST).cloned() {
        headers.insert(FORWARDED_HOST, host);
    }
    headers.append(VIA, VIA_VALUE);
    headers.insert(REQUEST_ID_NAME, request_id.clone());
}

/// Turns a backend's fields into what the client gets.
pub(crate) fn for_client(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    remove_reserved(headers);
    headers.remove(REQUEST_ID_NAME);
    headers.append(VIA, VIA_VALUE);
}

/// The client's request id if it is a safe one (1 to 128 of `[A-Za-z0-9._-]`).
pub(crate) fn safe_request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut given = headers.get_all(REQUEST_ID_NAME).iter();
    let id = given.next().filter(|_| given.next().is_none())?;
    let safe = |b: &u8| b.is_ascii_alphanumeric() || b"._-".contains(b);
    ((1..=128).contains(&id.len()) && id.as_bytes().iter().all(safe)).then(|| id.clone())
}

#[cfg(test)]
mod tests {
    use super::{for_backend, remove_hop_by_hop, safe_request_id};
    use http::HeaderMap;
    use http::header::{HeaderName, HeaderValue};

    fn map(fields: &[(&str, &str)]) -> HeaderMap {
        let pair = |(n, v): &(&str, &str)| {
            (
                n.parse::<HeaderName>().unwrap(),
                v.parse::<HeaderValue>().unwrap(),
            )
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn fields_named_by_connection_go_with_it() {
        let mut headers = map(&[
            ("connection", "close, X-Foo"),
            ("x-foo", "1"),
            ("te", "gzip"),
            ("keep-alive", "timeout=5"),
            ("x-bar", "2"),
        ]);
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers, map(&[("x-bar", "2")]));
        let mut headers = map(&[("te", "trailers"), ("upgrade", "h2c"), ("trailer", "x")]);
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers, map(&[("te", "trailers")]));
    }

    #[test]
    fn a_backend_sees_the_peer_and_no_forged_names() {
        let mut headers = map(&[
            ("host", "h"),
            ("x-forwarded-for", "9.9.9.9"),
            ("x-plumbline-decision", "container=a"),
            ("x-container", "a"),
            ("x-request-id", "one"),
            ("x-request-id", "two"),
        ]);
        for_backend(
            &mut headers,
            [127, 0, 0, 1].into(),
            &HeaderValue::from_static("id"),
        );
        let expected = map(&[
            ("host", "h"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-host", "h"),
            ("via", "1.1 plumbline"),
            ("x-request-id", "id"),
        ]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn only_one_safe_request_id_is_kept() {
        assert!(safe_request_id(&map(&[("x-request-id", "b01-a1.7_x")])).is_some());
        for bad in [
            vec![],
            vec![("x-request-id", "a b")],
            vec![("x-request-id", "a"), ("x-request-id", "b")],
        ] {
            assert!(safe_request_id(&map(&bad)).is_none(), "{bad:?}");
        }
        assert!(safe_request_id(&map(&[("x-request-id", &"x".repeat(129))])).is_none());
    }
}
