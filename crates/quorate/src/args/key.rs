//! What is asked for of a key.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Key {
    /// Make a key in a new file
    New {
        /// Made for its owner alone (mode 600); one that is there is not touched
        file: PathBuf,
    },
    /// Put a new key before those of a file, for what is written after the next start
    Add {
        /// What quorate.encrypt_key_file names
        file: PathBuf,
    },
}
