//! The worker as its users see it: started as a process, asked over sockets, stopped by signals.

mod burn;
mod process;
mod serving;
mod stopping;
