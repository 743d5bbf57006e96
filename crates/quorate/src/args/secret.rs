//! What is asked for of a secret.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Secret {
    /// Make a new secret in a new file
    New {
        /// The file to make, with mode 600. An existing file is never overwritten
        file: PathBuf,
    },
    /// Add a second secret to a file, to change the secret without a stop
    Add {
        /// The file that quorate.secret_file names
        file: PathBuf,
    },
}
