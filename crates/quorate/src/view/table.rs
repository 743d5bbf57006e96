//! Rows of text under each other.

/// Columns as wide as their longest cell, two spaces between; the first row is the head.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// For a cell without anything in it.
pub fn or_dash(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())
}

pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// To the nearest unit that one still counts in.
pub fn human_age(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(human_bytes(17), "17 B");
        assert_eq!(human_bytes(64 << 20), "64.0 MiB");
        assert_eq!(human_bytes(1536), "1.5 KiB");
    }

    #[test]
    fn ages_read_well() {
        let shown = [0, 119, 120, 7199, 7200, 172_799, 172_800].map(human_age);
        assert_eq!(shown, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]);
    }

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [["A", "B", "C"], ["long", "", "x"], ["é", "yy", ""]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "A     B   C\nlong      x\né     yy\n");
    }
}
