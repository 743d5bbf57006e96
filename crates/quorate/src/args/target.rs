//! Which group is meant, if it is not the one in a directory of this machine.

use super::certificate::Certificate;
use super::logger::address;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

#[derive(Args, Clone, Debug, Default)]
#[command(
    next_help_heading = "To work on another group than the one in --dir",
    mut_arg("ssl_cert", |arg| arg.requires("ssl_ca"))
)]
pub struct Target {
    /// Group addresses of some of its members, HOST:PORT (port 4567, or the servers' base_port)
    #[arg(long = "seed", global = true, value_name = "ADDRESSES", value_delimiter = ',', value_parser = address)]
    pub seeds: Vec<String>,

    /// The name of a group that `quorate cluster add` has stored
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "seeds")]
    pub cluster: Option<String>,

    /// Your credential as an operator (`quorate operator new`) [default: what is stored under --cluster, or
    /// $QUORATE_OPERATOR_FILE]
    // Not by `env`: what the environment names would then count as given, before what is kept.
    #[arg(long, global = true, value_name = "FILE")]
    pub operator_file: Option<PathBuf>,

    #[command(flatten)]
    pub certificate: Certificate,
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
        let certificate = match self.certificate.ssl_cert {
            Some(_) => self.certificate,
            None => before.certificate,
        };
        let operator_file = self.operator_file.or(before.operator_file);
        Target { seeds, cluster, operator_file, certificate }
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
