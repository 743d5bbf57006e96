//! `quorate secret`: what the members of a group know each other by.

use crate::args::Secret as What;
use crate::failure::OK;
use anyhow::{Context, Result};
use quorate_live::Secret;
use std::path::absolute;

pub fn secret(what: &What) -> Result<u8> {
    match what {
        What::New { file } => {
            let file = absolute(file)?;
            Secret::new()?.write(&file).with_context(|| format!("making {}", file.display()))?;
            println!(
                "A new secret is in {0}. Next:\n\
                 1. Copy it to the same place on all nodes, where nobody but the server's account can \
                 read it:\n   chown mysql {0}; chmod 600 {0}\n\
                 2. On all nodes, in wsrep_provider_options: quorate.secret_file={0}\n\
                 Whoever has the file can join the group and read all data: keep it like a root password.",
                file.display()
            );
        }
        What::Add { file } => {
            let file = absolute(file)?;
            Secret::new()?.append(&file)?;
            println!(
                "{0} has two secrets now, and both are accepted. To change over without a stop:\n\
                 1. Copy the file to all nodes. On each: FLUSH SSL (a logger: restart it).\n\
                 2. Put the second line in the place of the first, on all nodes; FLUSH SSL on each.\n\
                 3. Delete the old line, on all nodes; FLUSH SSL on each.",
                file.display()
            );
        }
    }
    Ok(OK)
}
