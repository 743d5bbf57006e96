//! In which order members are shown: their ids are random.

/// By this, names stand as people count: node2 before node10.
pub fn by_name(name: &str) -> impl Ord + '_ {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].trim_start_matches('0');
    // Of two numbers without leading zeros the longer one is higher. The name itself tells 07 from 7.
    (stem, number.len(), number, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_end_counts_as_a_number() {
        let order = [
            "",
            "7",
            "10",
            "db",
            "db0",
            "db07",
            "db7",
            "db18446744073709551616",
            "db2a",
            "node2",
            "node10",
        ];
        let mut shuffled = order.to_vec();
        shuffled.reverse();
        shuffled.sort_by(|one, other| by_name(one).cmp(&by_name(other)));
        assert_eq!(shuffled, order);
    }
}
