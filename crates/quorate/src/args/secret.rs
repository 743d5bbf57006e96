//! What is asked for of a secret.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Secret {
    /// Make a new secret in a new file
    New {
        /// Made for its owner alone (mode 600); one that is there is not touched
        file: PathBuf,
    },
    /// Add a second secret to a file, to change the first one without a stop
    Add {
        /// What quorate.secret_file names
        file: PathBuf,
    },
}
