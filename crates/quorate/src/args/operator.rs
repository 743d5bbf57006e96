//! What is made for operators, and kept of their clusters.

use super::Target;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Operator {
    /// Make a credential from the group's secret
    New {
        /// The operator's name (letters, digits and ._-@). Orders are recorded with it
        name: String,

        /// The operator may only look at the group, and give no orders
        #[arg(long)]
        read_only: bool,

        /// The group's secret: the file that quorate.secret_file names on the servers
        #[arg(long, value_name = "FILE")]
        secret_file: PathBuf,

        /// The file to make, with mode 600. An existing file is never overwritten [default: NAME.operator]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,

        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum Clusters {
    /// Store a group under a name, for --cluster
    Add {
        /// The name, without spaces
        name: String,

        /// Print one JSON object, with all clusters that are then stored
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        target: Target,
    },
    /// List the groups that are stored
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Forget a name; the group itself is not touched
    Remove {
        /// The name, as `cluster list` shows it
        name: String,

        /// Print one JSON object, with all clusters that are then stored
        #[arg(long)]
        json: bool,
    },
}
