//! Which requests to an admin listener come from somebody else's web page.
//!
//! A page in a browser on this machine can send requests to any port of it. It cannot hide where it
//! comes from (`Origin`), and if its owner points a name at us, that name stands in `Host`. So both
//! are looked at wherever something can be changed without a token.

use std::net::IpAddr;

/// What is wrong with a request's `Host` and `Origin`, if anything is. `any_host`: the listener is meant
/// to be reached by others, under names that we do not know.
pub fn refusal(host: &str, origin: Option<&str>, any_host: bool) -> Option<&'static str> {
    if !any_host && !is_local(host) {
        return Some("host is neither an address nor localhost");
    }
    let site = |origin: &str| origin.split_once("://").map(|(_, site)| site.to_string());
    match origin {
        Some(origin) if site(origin).as_deref() != Some(host) => Some("origin is another site"),
        _ => None,
    }
}

/// An address or `localhost`, with or without a port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn web_pages_of_others_are_refused_and_everybody_else_is_not() {
        let own = Some("http://127.0.0.1:8081");
        for (host, origin, any_host, passes) in [
            ("127.0.0.1:8081", None, false, true),
            ("localhost:8081", None, false, true),
            ("[::1]:8081", None, false, true),
            ("127.0.0.1:8081", own, false, true),
            ("127.0.0.1:8081", Some("http://evil.example"), false, false),
            (
                "127.0.0.1:8081",
                Some("http://127.0.0.1:8080"),
                false,
                false,
            ),
            ("127.0.0.1:8081", Some("null"), false, false),
            ("rebound.example:8081", None, false, false),
            ("rebound.example:8081", None, true, true),
            (
                "rebound.example:8081",
                Some("http://evil.example"),
                true,
                false,
            ),
            ("", None, false, false),
        ] {
            let refused = refusal(host, origin, any_host);
            assert_eq!(refused.is_none(), passes, "{host} {origin:?} {any_host}");
        }
    }
}
