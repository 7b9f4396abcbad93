//! The load report a worker attaches to every response, in the text form of the open request-cost
//! aggregation format: `TEXT cpu_utilization=0.41,rps_fractional=30.5,eps=0,named_metrics.active=3`.

use crate::report::{Report, Source};
use std::fmt;

/// Longest header value that is read, bytes.
pub const MAX_BYTES: usize = 4096;

/// Largest value of a metric. Nothing a worker measures comes near it, and sums of such values stay
/// finite and exact.
pub const MAX_VALUE: f64 = 1e12;

/// A worker's load as it answers. Unknown metrics of a foreign worker are ignored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadReport {
    /// Busy share of its cores over the last second, 0..1 (`cpu_utilization`).
    pub utilization: Option<f64>,
    /// Utilization as the application reports it (`application_utilization`).
    pub application_utilization: Option<f64>,
    /// Completions per second (`rps_fractional`).
    pub qps: Option<f64>,
    /// Failures per second (`eps`).
    pub eps: Option<f64>,
    /// Requests held, this one already gone (`named_metrics.active`).
    pub active: Option<u32>,
    /// Mean latency of the last 50 responses, ms (`named_metrics.mean50`).
    pub mean_latency_50_ms: Option<f64>,
    /// Work done over busy core time, 1 = nominal (`named_metrics.speed`).
    pub speed: Option<f64>,
    /// The worker's running number (`named_metrics.sequence`).
    pub sequence: Option<u64>,
}

impl LoadReport {
    /// Reads the text form.
    ///
    /// # Errors
    /// A lower-case reason naming the metric: another format than `TEXT`, a value that is no
    /// number from 0 to [`MAX_VALUE`], a header longer than [`MAX_BYTES`].
    pub fn parse(header: &str) -> Result<Self, String> {
        if header.len() > MAX_BYTES {
            return Err(format!(
                "load report of {} bytes is above {MAX_BYTES}",
                header.len()
            ));
        }
        let body = header
            .strip_prefix("TEXT ")
            .ok_or_else(|| "load report is not in the TEXT form".to_string())?;
        let mut report = Self::default();
        for part in body.split(',').filter(|p| !p.trim().is_empty()) {
            let (name, text) = part
                .trim()
                .split_once('=')
                .ok_or_else(|| format!("load report metric \"{part}\" has no value"))?;
            let value: f64 = text
                .parse()
                .ok()
                .filter(|v| (0.0..=MAX_VALUE).contains(v))
                .ok_or_else(|| format!("load report metric {name} has the value \"{text}\""))?;
            match name {
                "cpu_utilization" => report.utilization = Some(value),
                "application_utilization" => report.application_utilization = Some(value),
                "rps_fractional" => report.qps = Some(value),
                "eps" => report.eps = Some(value),
                "named_metrics.active" => report.active = Some(value as u32),
                "named_metrics.mean50" => report.mean_latency_50_ms = Some(value),
                "named_metrics.speed" => report.speed = Some(value),
                "named_metrics.sequence" => report.sequence = Some(value as u64),
                _ => {}
            }
        }
        Ok(report)
    }

    /// The same statement as a report that arrived at `now_ns`.
    pub fn to_report(&self, now_ns: u64) -> Report {
        Report {
            sequence: self.sequence,
            active: self.active,
            mean_latency_50_ms: self.mean_latency_50_ms,
            utilization: self.utilization,
            application_utilization: self.application_utilization,
            qps: self.qps,
            eps: self.eps,
            speed: self.speed,
            ..Report::empty(Source::Piggyback, now_ns)
        }
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = [
            ("cpu_utilization", self.utilization),
            ("application_utilization", self.application_utilization),
            ("rps_fractional", self.qps),
            ("eps", self.eps),
            ("named_metrics.active", self.active.map(f64::from)),
            ("named_metrics.mean50", self.mean_latency_50_ms),
            ("named_metrics.speed", self.speed),
            ("named_metrics.sequence", self.sequence.map(|s| s as f64)),
        ];
        f.write_str("TEXT ")?;
        let mut separator = "";
        for (name, value) in metrics {
            if let Some(value) = value {
                write!(f, "{separator}{name}={value}")?;
                separator = ",";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::LoadReport;

    #[test]
    fn a_report_reads_what_it_prints() {
        let report = LoadReport {
            utilization: Some(0.41),
            qps: Some(30.5),
            eps: Some(0.0),
            active: Some(3),
            mean_latency_50_ms: Some(187.2),
            sequence: Some(912),
            ..LoadReport::default()
        };
        let text = "TEXT cpu_utilization=0.41,rps_fractional=30.5,eps=0,named_metrics.active=3,\
                    named_metrics.mean50=187.2,named_metrics.sequence=912";
        assert_eq!(report.to_string(), text);
        assert_eq!(LoadReport::parse(text), Ok(report));
    }

    #[test]
    fn damaged_values_are_refused_and_foreign_metrics_ignored() {
        for bad in [
            "JSON {}",
            "TEXT eps=NaN",
            "TEXT eps=-1",
            "TEXT eps",
            "TEXT eps=inf",
            "TEXT eps=1e300",
        ] {
            assert!(LoadReport::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            LoadReport::parse("TEXT mem_utilization=0.2"),
            Ok(LoadReport::default())
        );
        assert!(LoadReport::parse(&format!("TEXT {}", "x=1,".repeat(2000))).is_err());
    }
}
