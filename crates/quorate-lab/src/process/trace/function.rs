//! Where a function stands in a program or a library.

use anyhow::{ensure, Context, Result};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::path::Path;

/// The symbols of a file.
pub struct Functions {
    bytes: Vec<u8>,
}

impl Functions {
    pub fn of(file: &Path) -> Result<Functions> {
        let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        Ok(Functions { bytes })
    }

    /// The place in the file of the one function whose symbol has these parts. An error if there is none,
    /// as in a file without symbols, or several.
    pub fn find(&self, parts: &[&str]) -> Result<u64> {
        let file = object::File::parse(&*self.bytes).context("no program and no library")?;
        let is_meant = |name: &str| parts.iter().all(|part| name.contains(part));
        let mut found: Vec<u64> = file
            .symbols()
            .filter(|symbol| symbol.is_definition() && symbol.name().is_ok_and(is_meant))
            .map(|symbol| symbol.address())
            .collect();
        found.sort_unstable();
        found.dedup();
        ensure!(
            found.len() == 1,
            "{} functions have {} in their symbol",
            found.len(),
            parts.join(" and ")
        );
        let segment = file.segments().find(|segment| {
            (segment.address()..segment.address() + segment.size()).contains(&found[0])
        });
        let segment = segment.context("a symbol is in no segment")?;
        Ok(found[0] - segment.address() + segment.file_range().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_that_is_found() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_function_is_found_by_its_symbol() {
        assert_eq!(a_function_that_is_found(), 7);
        let functions = Functions::of(&std::env::current_exe().unwrap()).unwrap();
        assert!(functions.find(&["a_function_that", "is_found"]).unwrap() > 0);
        let error = functions.find(&["a_function_that", "is_lost"]).unwrap_err().to_string();
        assert!(error.starts_with("0 functions"), "{error}");
        assert!(functions.find(&["core"]).is_err());
    }
}
