use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use quorate_cli::args::{asks_for_json, Cli};
use quorate_cli::failure::{document, exit_code, USAGE};
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
            // Printing fails only when nobody reads any more; the exit code still tells.
            let _ = error.print();
            if !asked_for && std::env::args_os().any(|word| word == "--json") {
                let told = error.to_string();
                println!("{}", document(USAGE, told.trim_start_matches("error: ").trim_end()));
            }
            return ExitCode::from(if asked_for { 0 } else { USAGE });
        }
    };
    match quorate_cli::commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let code = exit_code(&error);
            eprintln!("quorate: {error:#}");
            if json {
                println!("{}", document(code, &format!("{error:#}")));
            }
            ExitCode::from(code)
        }
    }
}
