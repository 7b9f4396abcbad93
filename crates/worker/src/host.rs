//! What the kernel says about this process: memory in use, CPU quota, throttling.

use std::fs;
use std::path::PathBuf;

/// Resident memory, bytes; `None` where `/proc` does not say.
pub(crate) fn memory_used_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The files of this process's CPU control group.
#[derive(Debug, Clone)]
pub(crate) struct CpuGroup {
    folder: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl CpuGroup {
    /// The group of this process, of either version of the interface; `None` where there is none.
    pub(crate) fn find() -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let candidates = membership.lines().flat_map(folders_of_line);
        candidates
            .map(|(folder, version)| Self { folder, version })
            .find(|group| group.throttled_us().is_some())
    }

    /// Time this process was held back by its quota, microseconds.
    pub(crate) fn throttled_us(&self) -> Option<u64> {
        let stat = fs::read_to_string(self.folder.join("cpu.stat")).ok()?;
        parse_throttled_us(&stat)
    }

    /// Cores the quota allows; `None` without a quota.
    pub(crate) fn quota_cores(&self) -> Option<f64> {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).ok();
        let (quota, period) = match self.version {
            Version::Two => {
                let text = read("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.to_string(), period.to_string())
            }
            Version::One => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
        };
        parse_quota(&quota, &period)
    }
}

/// Folders where the group of one line of `/proc/self/cgroup` may be. Inside a container the path is
/// that of the host or of the container's own view, so the root of the mount is tried too.
fn folders_of_line(line: &str) -> Vec<(PathBuf, Version)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (mounts, version): (&[&str], _) = if controllers.is_empty() {
        (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], Version::Two)
    } else if controllers.split(',').any(|c| c == "cpu") {
        (
            &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
            Version::One,
        )
    } else {
        return Vec::new();
    };
    let below = path.trim_start_matches('/');
    mounts
        .iter()
        .flat_map(|mount| [PathBuf::from(mount).join(below), PathBuf::from(mount)])
        .map(|folder| (folder, version))
        .collect()
}

fn parse_throttled_us(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", us) => us.trim().parse().ok(),
        ("throttled_time", ns) => ns.trim().parse::<u64>().ok().map(|ns| ns / 1000),
        _ => None,
    })
}

fn parse_quota(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::{folders_of_line, parse_quota, parse_throttled_us};

    #[test]
    fn throttling_reads_in_both_units() {
        let two = "usage_usec 5\nnr_throttled 2\nthrottled_usec 1500\n";
        let one = "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000\n";
        assert_eq!(parse_throttled_us(two), Some(1500));
        assert_eq!(parse_throttled_us(one), Some(1500));
        assert_eq!(parse_throttled_us("usage_usec 5\n"), None);
    }

    #[test]
    fn a_quota_is_cores_and_none_is_none() {
        assert_eq!(parse_quota("400000", "100000"), Some(4.0));
        assert_eq!(parse_quota("max", "100000"), None);
        assert_eq!(parse_quota("-1\n", "100000\n"), None);
    }

    #[test]
    fn the_group_is_sought_below_its_own_path_first() {
        let folders = folders_of_line("0::/box/a");
        assert_eq!(folders[0].0.to_str(), Some("/sys/fs/cgroup/box/a"));
        assert_eq!(folders[1].0.to_str(), Some("/sys/fs/cgroup"));
        let folders = folders_of_line("4:cpu,cpuacct:/docker/x");
        assert_eq!(folders[0].0.to_str(), Some("/sys/fs/cgroup/cpu/docker/x"));
        assert!(folders_of_line("3:cpuset:/").is_empty());
    }
}
