//! The door of the programs that serve HTTP/1: every listener takes its connections in through it.
//!
//! A [`Door`] accepts connections, bounds their number and gives each a checking reader
//! ([`reader`]) in front of the HTTP library: it judges whole heads ([`head`]), follows bodies to their
//! end ([`chunks`]) and keeps the clocks of a connection. What a head is refused for comes to the
//! service by [`Conn::begin`], which answers it like any other request.

mod chunks;
mod connections;
mod head;
mod reader;
pub mod refusal;

pub use connections::{
    Door, Ending, Exchange, Room, UntilSent, bind, block_on_one_thread, until_sent,
};
pub use reader::{Clocks, Conn};

/// Longest head of a message, bytes.
pub const MAX_HEAD_BYTES: usize = 64 << 10;
/// Header fields of a message at most.
pub const MAX_FIELDS: usize = 100;
/// Longest request target, bytes.
pub const MAX_URI_BYTES: usize = 8 << 10;
/// First to last byte of a request's head, unless told otherwise.
pub const HEAD_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);
/// A client connection may be silent this long between requests, unless told otherwise.
pub const CLIENT_IDLE: std::time::Duration = std::time::Duration::from_secs(60);
