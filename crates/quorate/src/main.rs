use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use quorate_cli::args::{asks_for_json, Cli};
use quorate_cli::failure::{document, exit_code, USAGE};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let parsed = Cli::command()
        .try_get_matches()
        .and_then(|matches| Ok((asks_for_json(&matches), Cli::from_arg_matches(&matches)?)));
    let (json, cli) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let asked_for =
                matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // As in `tell`.
            let _unread = error.print();
            if !asked_for && std::env::args_os().any(|word| word == "--json") {
                let told = error.to_string();
                let told = told.trim_start_matches("error: ").trim_end();
                tell(io::stdout(), &document(USAGE, told));
            }
            return ExitCode::from(if asked_for { 0 } else { USAGE });
        }
    };
    match quorate_cli::commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let code = exit_code(&error);
            tell(io::stderr(), &format!("quorate: {error:#}"));
            if json {
                tell(io::stdout(), &document(code, &format!("{error:#}")));
            }
            ExitCode::from(code)
        }
    }
}

/// Writing fails only when nobody reads any more; the exit code still tells.
fn tell(mut to: impl Write, line: &dyn Display) {
    let _unread = writeln!(to, "{line}");
}
