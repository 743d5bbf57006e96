//! Which seeds, and on how many threads: arguments that both simulators take.

use std::ops::Range;

pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("seeds are given as A..B, such as 0..5000")?;
    let number = |s: &str| s.replace('_', "").parse::<u64>().map_err(|e| format!("{s:?}: {e}"));
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("{from}..{to} holds no seed (the last one is excluded)"));
    }
    Ok(from..to)
}
