//! What is made for operators, and kept of their clusters.

use super::Target;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Operator {
    /// Make a credential from the group's secret
    New {
        /// Who it is for: letters, digits and ._-@; orders are noted with this name
        name: String,

        /// Only for looking: no orders are taken from who has it
        #[arg(long)]
        read_only: bool,

        /// The group's secret: the file that quorate.secret_file names on the servers
        #[arg(long, value_name = "FILE")]
        secret_file: PathBuf,

        /// Made for its owner alone (mode 600); one that is there is not touched [default: NAME.operator]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,

        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum Clusters {
    /// Keep a group under a name, for --cluster
    Add {
        name: String,

        /// Print one JSON object: all that are kept then
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        target: Target,
    },
    /// Those that are kept
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Forget one; the group itself is not touched
    Remove {
        name: String,

        /// Print one JSON object: all that are kept then
        #[arg(long)]
        json: bool,
    },
}
