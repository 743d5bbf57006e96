//! What is asked for of a key.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Key {
    /// Make a new key in a new file
    New {
        /// The file to make, with mode 600. An existing file is never overwritten
        file: PathBuf,
    },
    /// Put a new key in front of those of a file, to be used from the node's next start on
    Add {
        /// The file that quorate.encrypt_key_file names
        file: PathBuf,
    },
}
