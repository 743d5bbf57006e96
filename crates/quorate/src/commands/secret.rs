//! `quorate secret`: what the members of a group know each other by.

use crate::args::Secret as What;
use crate::failure::OK;
use anyhow::{Context, Result};
use quorate_live::{page, Secret};
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
                "{0} has two secrets now, and both are accepted. To change over without a stop (see {1}):\n\
                 1. Copy the file to all nodes. On each server: FLUSH SSL. Restart loggers, one at a time: they read \
                 the file only when they start. Do the same in steps 2 and 4.\n\
                 2. Move the second line to the first place, on all nodes.\n\
                 3. Make the credentials of all agents and operators anew (quorate operator new), and restart the \
                 agents. The credentials made from the old secret end with step 4.\n\
                 4. Delete the old line, on all nodes.",
                file.display(),
                page!("docs/security.md")
            );
        }
    }
    Ok(OK)
}
