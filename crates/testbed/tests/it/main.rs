//! The whole line with real programs, on short workloads.

mod bad_input;
mod compare_twin;
mod documents;
mod ground;
mod stopping;
mod tables;
mod whole_line;
