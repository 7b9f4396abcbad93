use clap::Parser as _;
use proptest::prelude::*;
use schema::problem::Problems;
use schema::workload::Workload;

use super::{rows, workload};
use crate::cli::{Cli, Command, Import};

fn flags(more: &[&str]) -> Import {
    let words = ["request-generator", "import", "trace"];
    match Cli::parse_from(words.iter().chain(more)).command {
        Command::Import(arguments) => arguments,
        other => panic!("asked for an import: {other:?}"),
    }
}

fn import(more: &[&str], text: &str) -> Result<Workload, Problems> {
    let arguments = flags(more);
    let rows = rows(&arguments, "trace", text)?;
    workload(&arguments, "trace", rows, "").map(|(workload, _)| workload)
}

proptest! {
    #[test]
    fn no_text_makes_an_importer_panic(
        format in prop_oneof![Just("csv"), Just("clf"), Just("azure-llm")],
        skip in any::<bool>(),
        text in "(timestamp,method,url\n|TIMESTAMP,ContextTokens,GeneratedTokens\r\n)?\
                 ([0-9.,/\\[\\]\" \\-:GET\r\nnovZ+%\u{fe}]{0,60}\n){0,8}",
    ) {
        let mut words = vec!["--format", format];
        words.extend(skip.then_some("--skip-bad-rows"));
        let _ = import(&words, &text);
    }

    #[test]
    fn what_is_imported_can_be_read_again(
        calls in prop::collection::vec(
            (0_u32..1_000_000, 0_usize..5, 0_usize..4, 1.0_f64..100_000.0), 1..40
        ),
        sized in any::<bool>(),
        whole in any::<bool>(),
        speed in prop_oneof![Just("1"), Just("0.25"), Just("33")],
    ) {
        let mut text = String::from("timestamp,method,url");
        text.push_str(if sized { ",task_size_mi\n" } else { "\n" });
        for (ms, method, url, size_mi) in &calls {
            let method = ["GET", "POST", "PUT", "DELETE", "PATCH"][*method];
            let url = ["/", "/a", "https://h/b?q=1", "\"/c,d\""][*url];
            let seconds = f64::from(*ms) / 1000.0;
            let seconds = if whole { seconds.floor() } else { seconds };
            text.push_str(&format!("{seconds},{method},{url}"));
            text.push_str(&if sized { format!(",{size_mi}\n") } else { "\n".to_string() });
        }
        let made = import(&["--format", "csv", "--speed", speed], &text);
        let made = made.expect("a good trace");
        prop_assert_eq!(made.requests(), calls.len() as u64);
        prop_assert_eq!(Workload::parse("made", &made.to_text()), Ok(made.clone()));
        let schedule = schema::schedule::expand(&made);
        prop_assert!(schedule.is_sorted_by_key(|due| due.intended_ns));
        if sized {
            let total: f64 = calls.iter().map(|call| call.3).sum();
            let kept: f64 = schedule.iter().map(|due| due.task_size_mi).sum();
            prop_assert!((total - kept).abs() < 1e-9 * total);
        }
    }
}
