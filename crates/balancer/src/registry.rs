//! The strategies as this program knows them: listing them, checking how they are spelled.

use input::models::ModelFlag;
use std::process::ExitCode;
use strategies::Spec;
use strategies::registry::{describe, table};

/// Prints the registry, or, where spellings are given, the canonical form of each; exit 2 at the
/// first that is refused.
pub(crate) fn strategies(
    check: &[String],
    models: &[ModelFlag],
    json: bool,
) -> anyhow::Result<ExitCode> {
    if !check.is_empty() {
        return Ok(match checked(check, models) {
            Ok(specs) => {
                for spec in specs {
                    console::say!("{spec}")?;
                }
                ExitCode::SUCCESS
            }
            Err(problem) => {
                console::tell!("error: {problem}");
                ExitCode::from(2)
            }
        });
    }
    if json {
        console::say!("{}", serde_json::to_string_pretty(&describe())?)?;
    } else {
        console::print(format_args!("{}", table()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn checked(texts: &[String], models: &[ModelFlag]) -> Result<Vec<Spec>, String> {
    let models = crate::models::load(models)?;
    texts
        .iter()
        .map(|text| {
            let spec = Spec::parse_live(text).map_err(|e| e.to_string())?;
            if let Some(wanted) = &spec.entry().model {
                models.find(&spec, wanted)?;
            }
            Ok(spec)
        })
        .collect()
}
