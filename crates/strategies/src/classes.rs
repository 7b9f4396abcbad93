//! Dense numbers for pairs of method and path.

use std::collections::BTreeMap;

/// Numbers given at most; every pair beyond shares the last one, so that a client inventing paths
/// cannot grow the table.
pub const MAX_CLASSES: u32 = 65_536;

/// Gives each (method, path) a number, in order of first sight.
#[derive(Debug, Clone, Default)]
pub struct Classes {
    by_method: BTreeMap<String, BTreeMap<String, u32>>,
    known: u32,
}

impl Classes {
    /// The number of `method` and `url`; a query (`?...`) is not part of the class. Allocates only
    /// at first sight.
    pub fn class_of(&mut self, method: &str, url: &str) -> u32 {
        let path = url.split('?').next().unwrap_or(url);
        if let Some(class) = self.by_method.get(method).and_then(|p| p.get(path)) {
            return *class;
        }
        if self.known + 1 >= MAX_CLASSES {
            return MAX_CLASSES - 1;
        }
        let class = self.known;
        self.known += 1;
        self.by_method
            .entry(method.to_string())
            .or_default()
            .insert(path.to_string(), class);
        class
    }
}

#[cfg(test)]
mod tests {
    use super::{Classes, MAX_CLASSES};

    #[test]
    fn a_class_is_method_and_path_without_query() {
        let mut classes = Classes::default();
        assert_eq!(classes.class_of("GET", "/a?x=1"), 0);
        assert_eq!(classes.class_of("POST", "/a"), 1);
        assert_eq!(classes.class_of("GET", "/a"), 0);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut classes = Classes::default();
        for i in 0..MAX_CLASSES + 10 {
            assert!(classes.class_of("GET", &format!("/{i}")) < MAX_CLASSES);
        }
        assert_eq!(classes.class_of("GET", "/0"), 0);
        assert_eq!(classes.class_of("GET", "/new"), MAX_CLASSES - 1);
    }
}
