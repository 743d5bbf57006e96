//! The certificate that a command shows to members, and whose it believes.

use clap::Args;
use std::path::PathBuf;

// `ssl_ca` may be left out where a command says so; an operator's command demands it. No doc comment: it would be read
// as the help of each command that takes a certificate.
#[derive(Args, Clone, Debug, Default)]
pub struct Certificate {
    /// The certificate to show to the members (PEM), if they know each other by certificates
    #[arg(long, global = true, value_name = "FILE", requires = "ssl_key")]
    pub ssl_cert: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "ssl_cert")]
    pub ssl_key: Option<PathBuf>,

    /// The CA that signs the members' certificates (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "ssl_cert")]
    pub ssl_ca: Option<PathBuf>,

    /// The names in the members' certificates (quorate.ssl_names) [default: *, any certificate that the CA signed]
    #[arg(long, global = true, value_name = "NAMES", value_delimiter = ',', requires = "ssl_cert")]
    pub ssl_names: Vec<String>,
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command};
    use clap::{CommandFactory, Parser};

    const LOGGER: &str =
        "logger --name l --cluster-name c --address h:1 --join h:2 --log-dir /var/lib/l";

    fn parsed(line: &str) -> Option<Command> {
        let words = std::iter::once("quorate").chain(line.split(' '));
        Cli::try_parse_from(words).ok().map(|cli| cli.command)
    }

    #[test]
    fn commands_are_put_together_well() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_operator_names_the_ca_and_a_logger_may() {
        for (command, alone) in [("agent", false), ("status --seed h:1", false), (LOGGER, true)] {
            let with = |options: &str| parsed(&format!("{command} {options}")).is_some();
            assert!(with("--ssl-cert c --ssl-key k --ssl-ca a --ssl-names x,y"), "{command}");
            assert_eq!(with("--ssl-cert c --ssl-key k"), alone, "{command}");
            for incomplete in ["--ssl-cert c", "--ssl-key k", "--ssl-ca a", "--ssl-names x"] {
                assert!(!with(incomplete), "{command} {incomplete}");
            }
        }
    }

    #[test]
    fn what_is_told_arrives() {
        let options = "--ssl-cert c --ssl-key k --ssl-ca a --ssl-names x,y";
        let Some(Command::Agent(agent)) = parsed(&format!("agent {options}")) else {
            panic!("no agent")
        };
        let told = agent.certificate;
        assert_eq!((told.ssl_cert, told.ssl_ca), (Some("c".into()), Some("a".into())));
        assert_eq!(told.ssl_names, ["x", "y"]);
    }
}
