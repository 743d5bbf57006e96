//! Which group is meant, if it is not the one in a directory of this machine.

use super::logger::address;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Another group than the one in --dir")]
pub struct Target {
    /// Group addresses of some of its members, HOST:PORT (with quorate.base_port, or 4567)
    #[arg(long = "seed", global = true, value_name = "ADDRESSES", value_delimiter = ',', value_parser = address)]
    pub seeds: Vec<String>,

    /// Its name, as `quorate cluster add` keeps it
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "seeds")]
    pub cluster: Option<String>,

    /// This operator's credential (`quorate operator new`)
    #[arg(long, global = true, env = "QUORATE_OPERATOR_FILE", value_name = "FILE")]
    pub operator_file: Option<PathBuf>,

    /// This operator's certificate (PEM), if the members know each other by certificates
    #[arg(long, global = true, value_name = "FILE", requires_all = ["ssl_key", "ssl_ca"])]
    pub ssl_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "ssl_cert")]
    pub ssl_key: Option<PathBuf>,

    /// Who signs the members' certificates (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "ssl_cert")]
    pub ssl_ca: Option<PathBuf>,

    /// The names that members' certificates are for (quorate.ssl_names) [default: whatever the CA signed]
    #[arg(long, global = true, value_name = "NAMES", value_delimiter = ',', requires = "ssl_cert")]
    pub ssl_names: Vec<String>,
}

impl Target {
    /// Whether another group is meant.
    pub fn is_given(&self) -> bool {
        !self.seeds.is_empty() || self.cluster.is_some()
    }

    /// What stands behind the command's name counts, then what stands before it.
    pub fn or(self, before: Target) -> Target {
        let (seeds, cluster) = match self.is_given() {
            true => (self.seeds, self.cluster),
            false => (before.seeds, before.cluster),
        };
        let certificate = match self.ssl_cert {
            Some(_) => (self.ssl_cert, self.ssl_key, self.ssl_ca, self.ssl_names),
            None => (before.ssl_cert, before.ssl_key, before.ssl_ca, before.ssl_names),
        };
        let (ssl_cert, ssl_key, ssl_ca, ssl_names) = certificate;
        let operator_file = self.operator_file.or(before.operator_file);
        Target { seeds, cluster, operator_file, ssl_cert, ssl_key, ssl_ca, ssl_names }
    }
}

/// The same before the command's name, where it is not handed on: `chaos --seed` means something else.
#[derive(Clone, Debug, Default)]
pub struct Before(pub Target);

impl FromArgMatches for Before {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Target::from_arg_matches(matches).map(Before)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for Before {
    fn augment_args(command: Command) -> Command {
        let own = Target::augment_args(Command::new("target"));
        command.args(own.get_arguments().map(|argument| argument.clone().global(false)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Before::augment_args(command)
    }
}
