//! The HTTP methods of a workload.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

use crate::problem::nearest;

/// The methods a workload may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Read.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Remove.
    Delete,
    /// Change.
    Patch,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Delete, Self::Patch];

    /// As it stands in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Patch => "PATCH",
        }
    }

    /// True for the methods whose requests carry a body here.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|m| m.as_str() == text)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::as_str);
                match nearest(&text.to_uppercase(), known) {
                    Some(near) => format!("unknown method; did you mean \"{near}\"?"),
                    None => "unknown method".to_string(),
                }
            })
    }
}
