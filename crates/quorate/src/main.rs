use clap::error::ErrorKind;
use clap::Parser;
use quorate_cli::args::Cli;
use quorate_cli::failure::{exit_code, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let asked_for =
                matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // Printing fails only when nobody reads any more; the exit code still tells.
            let _ = error.print();
            return ExitCode::from(if asked_for { 0 } else { USAGE });
        }
    };
    match quorate_cli::commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("quorate: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}
