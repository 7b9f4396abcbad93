//! `expand`: the schedule of a workload as CSV.

use std::io::{self, Write};

use schema::schedule;
use schema::workload::Workload;

use crate::cli::Expand;
use crate::output;

/// Reads the workload, expands it and writes the CSV.
///
/// # Errors
/// The findings of a bad workload; else a file that cannot be read or written.
pub(crate) fn run(arguments: &Expand) -> anyhow::Result<()> {
    let source = arguments.workload.display().to_string();
    let text = input::read_text(&arguments.workload).map_err(|problem| *problem)?;
    let workload = Workload::parse(&source, &text)?;
    if let Some(out) = &arguments.out {
        input::refuse_same(&arguments.workload, out, "--out").map_err(|problem| *problem)?;
    }
    output::write(arguments.out.as_deref(), |out| csv(&workload, out))
}

fn csv(workload: &Workload, out: &mut dyn Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(out);
    out.write_record([
        "seq",
        "intended_ns",
        "api_id",
        "method",
        "url",
        "task_size_mi",
    ])
    .map_err(plain)?;
    for (seq, due) in schedule::expand(workload).iter().enumerate() {
        let api = &workload.apis[due.api as usize];
        out.write_record([
            seq.to_string().as_str(),
            due.intended_ns.to_string().as_str(),
            &api.id,
            api.method.as_str(),
            &api.url,
            due.task_size_mi.to_string().as_str(),
        ])
        .map_err(plain)?;
    }
    out.flush()
}

/// The failed write itself, which tells a reader that has gone from a full disk.
fn plain(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
