//! `quorate key`: what a node encrypts its log with.

use crate::args::Key as What;
use crate::failure::OK;
use anyhow::{Context, Result};
use quorate_live::DiskKey;
use std::path::absolute;

pub fn key(what: &What) -> Result<u8> {
    let key = DiskKey::new()?;
    let id = key.id();
    match what {
        What::New { file } => {
            let file = absolute(file)?;
            key.write(&file).with_context(|| format!("making {}", file.display()))?;
            println!(
                "A new key ({id}) is in {0}. Next:\n\
                 1. Only the server's account may read it:\n   chown mysql {0}; chmod 600 {0}\n\
                 2. In this node's wsrep_provider_options: quorate.encrypt_key_file={0}\n   \
                 (of a logger: --encrypt-key-file {0})\n\
                 3. Restart the node. What its log has in the clear goes in time.\n\
                 Each node has a key of its own. Keep a copy where the disk of the node is not: without the \
                 key its log is lost, and the node has to fetch the state from the others.",
                file.display()
            );
        }
        What::Add { file } => {
            let file = absolute(file)?;
            key.prepend(&file)?;
            println!(
                "{} begins with a new key ({id}) now, which is used from the node's next start on. The old \
                 lines stay needed until the error log of a start names their keys no more; then delete them.",
                file.display()
            );
        }
    }
    Ok(OK)
}
