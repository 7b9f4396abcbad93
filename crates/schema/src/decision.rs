//! The balancer's decision record, one response header: what it picked and what it knew then.
//!
//! `key=value` pairs separated by commas in the order of the fields below; what is unknown is left
//! out, so absent never reads as zero. The replay client copies it into its row.

use std::fmt;

/// Longest header value that is read, bytes.
pub const MAX_BYTES: usize = 2048;

/// What the balancer knew of the chosen backend at the pick.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// Strategy, in its canonical spelling; commas inside are written as semicolons.
    pub strategy: Option<String>,
    /// Name of the chosen backend.
    pub container: Option<String>,
    /// Attempts made for the request.
    pub attempts: Option<u32>,
    /// How long the pick took, ns.
    pub pick_ns: Option<u64>,
    /// The balancer's own in_flight there, this request not counted.
    pub in_flight: Option<u32>,
    /// Requests the worker said it held.
    pub active_requests: Option<u32>,
    /// Mean latency of its last 50 responses, ms.
    pub mean_latency_ms_last_50: Option<f64>,
    /// Age of that statement, ms.
    pub stats_age_ms: Option<f64>,
    /// Configured cores.
    pub cores: Option<f64>,
    /// Configured memory, GB of 2^30 bytes.
    pub memory_gb: Option<f64>,
    /// CPU use, 100 = one core.
    pub cpu_percent: Option<f64>,
    /// Memory in use, MiB.
    pub memory_mib: Option<f64>,
    /// Predicted latency, ms.
    pub predicted_ms: Option<f64>,
    /// `trial` or `panic`, when the rules of ejection let it go to a backend they bar.
    pub mark: Option<String>,
}

impl Decision {
    /// Reads a header value. Unknown keys are ignored, so that an older client reads a newer balancer.
    ///
    /// # Errors
    /// A lower-case reason naming the key whose value cannot be read.
    pub fn parse(header: &str) -> Result<Self, String> {
        if header.len() > MAX_BYTES {
            return Err(format!(
                "decision of {} bytes is above {MAX_BYTES}",
                header.len()
            ));
        }
        let mut decision = Self::default();
        for part in header.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("decision part \"{part}\" has no value"))?;
            decision.set(key, value)?;
        }
        Ok(decision)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<Option<T>, String> {
            value
                .parse()
                .map(Some)
                .map_err(|_| format!("decision {key} has the value \"{value}\""))
        }
        match key {
            "strategy" => self.strategy = Some(value.replace(';', ",")),
            "container" => self.container = Some(value.to_string()),
            "attempts" => self.attempts = number(key, value)?,
            "pick_ns" => self.pick_ns = number(key, value)?,
            "in_flight" => self.in_flight = number(key, value)?,
            "active_requests" => self.active_requests = number(key, value)?,
            "mean_latency_ms_last_50" => self.mean_latency_ms_last_50 = number(key, value)?,
            "stats_age_ms" => self.stats_age_ms = number(key, value)?,
            "cores" => self.cores = number(key, value)?,
            "memory_gb" => self.memory_gb = number(key, value)?,
            "cpu_percent" => self.cpu_percent = number(key, value)?,
            "memory_mib" => self.memory_mib = number(key, value)?,
            "predicted_ms" => self.predicted_ms = number(key, value)?,
            "mark" => self.mark = Some(value.to_string()),
            _ => {}
        }
        Ok(())
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut put = |f: &mut fmt::Formatter<'_>, key: &str, value: &dyn fmt::Display| {
            write!(f, "{separator}{key}={value}")?;
            separator = ",";
            Ok(())
        };
        macro_rules! fields {
            ($($field:ident),*) => {$(
                if let Some(value) = &self.$field {
                    put(f, stringify!($field), value)?;
                }
            )*};
        }
        if let Some(strategy) = &self.strategy {
            put(f, "strategy", &strategy.replace(',', ";"))?;
        }
        fields!(
            container,
            attempts,
            pick_ns,
            in_flight,
            active_requests,
            mean_latency_ms_last_50,
            stats_age_ms,
            cores,
            memory_gb,
            cpu_percent,
            memory_mib,
            predicted_ms,
            mark
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Decision;

    #[test]
    fn a_decision_reads_what_it_prints() {
        let decision = Decision {
            strategy: Some("weighted-least-request:offset=0,ties=smooth".into()),
            container: Some("a".into()),
            attempts: Some(1),
            pick_ns: Some(210),
            in_flight: Some(3),
            stats_age_ms: Some(43.125),
            cores: Some(4.0),
            memory_gb: Some(12.0),
            ..Decision::default()
        };
        let text = "strategy=weighted-least-request:offset=0;ties=smooth,container=a,attempts=1,\
                    pick_ns=210,in_flight=3,stats_age_ms=43.125,cores=4,memory_gb=12";
        assert_eq!(decision.to_string(), text);
        assert_eq!(Decision::parse(text), Ok(decision));
    }

    #[test]
    fn damaged_values_are_refused_and_new_keys_ignored() {
        assert!(Decision::parse("attempts=-1").is_err());
        assert!(Decision::parse("attempts").is_err());
        assert!(Decision::parse(&"x=1,".repeat(1000)).is_err());
        assert_eq!(Decision::parse("later=1"), Ok(Decision::default()));
        assert_eq!(Decision::parse(""), Ok(Decision::default()));
    }
}
