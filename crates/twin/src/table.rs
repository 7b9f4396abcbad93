//! Text in columns.

/// Rows as lines: the first column and those named in `left` begin at their left, all others end at
/// their right.
pub(crate) fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let texts = rows.iter().filter_map(|row| row.get(at));
        texts.map(|t| t.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (text, width))| match at == 0 || left.contains(&at) {
            true => format!("{text:<width$}"),
            false => format!("{text:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn numbers_end_and_names_begin_in_one_column() {
        let rows = [["", "mean", "why"], ["a", "1.25", "x"], ["long", "10", ""]];
        let rows = rows.map(|row| row.map(String::from).to_vec());
        let expected = "      mean  why\na     1.25  x\nlong    10\n";
        assert_eq!(aligned(&rows, &[2]), expected);
    }
}
