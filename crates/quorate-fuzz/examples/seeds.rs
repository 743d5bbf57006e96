//! Writes the seeds of the corpus anew. What was found by fuzzing stays beside them.
//!
//! `cargo run -p quorate-fuzz --example seeds`

use quorate_fuzz::seeds::{all, folder};
use std::{fs, io};

fn main() -> io::Result<()> {
    for (target, _) in quorate_fuzz::TARGETS {
        let folder = folder(target);
        fs::create_dir_all(&folder)?;
        for file in fs::read_dir(&folder)? {
            let file = file?;
            if file.file_name().to_string_lossy().starts_with("seed-") {
                fs::remove_file(file.path())?;
            }
        }
    }
    for seed in all()? {
        fs::write(folder(seed.target).join(seed.name), seed.bytes)?;
    }
    Ok(())
}
