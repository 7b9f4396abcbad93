//! The proxy path: HTTP/1 in, HTTP/1 out, streaming both ways.
//!
//! A client connection is read through a checking gate (crate `gate`) and served by hyper; each request on it is
//! checked, placed, sent and answered by [`forward`]. Every way out passes two drop guards, the
//! ticket of the dispatch and the [`receipt`] of the request, so counts cannot leak.

mod answer;
mod body;
mod fields;
pub(crate) mod forward;
mod framing;
mod pool;
mod receipt;
pub(crate) mod server;
