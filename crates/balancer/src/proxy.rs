//! The traffic path: accept, check, pick, forward, stream the answer back.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod fields;
pub(crate) mod forward;
pub(crate) mod framing;
pub(crate) mod pool;
pub(crate) mod server;
