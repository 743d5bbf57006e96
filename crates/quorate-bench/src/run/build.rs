//! What is measured, as a name that changes with it.

use anyhow::{Context, Result};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufReader, Read};
use std::path::Path;

const BLOCK_BYTES: usize = 1 << 16;

/// Sixteen digits that are the same for the same content of these files. It is no proof: nobody is to be
/// kept from making two of the same.
pub fn build_id<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for path in files {
        let reading = || format!("reading {}", path.display());
        let mut file = BufReader::new(File::open(path).with_context(reading)?);
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match file.read(&mut block).with_context(reading)? {
                0 => break,
                length => hasher.write(&block[..length]),
            }
        }
        hasher.write_u8(0);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_build_is_told_by_its_content() {
        let folder = std::env::temp_dir().join(format!("quorate-build-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let large = vec![7; BLOCK_BYTES + 1];
        let (one, same, other) = (file("a", &large), file("b", &large), file("c", b"other"));
        let id = |files: [&Path; 2]| build_id(files).unwrap();
        assert_eq!(id([&one, &other]), id([&same, &other]));
        assert_ne!(id([&one, &other]), id([&other, &one]));
        assert!(build_id([folder.join("nothing").as_path()]).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
