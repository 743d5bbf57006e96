//! `quorate status`

use crate::args::Status;
use crate::cluster::Cluster;
use crate::failure::{Failure, FAILED, NO_PRIMARY, OK};
use crate::view::{Health, Report};
use anyhow::Result;
use std::path::Path;

pub fn status(dir: &Path, args: &Status) -> Result<u8> {
    let cluster = match Cluster::open(dir) {
        Ok(cluster) => cluster,
        // To a script, no cluster is one that accepts no writes.
        Err(error) => return Err(Failure::new(NO_PRIMARY, format!("{error:#}")).into()),
    };
    let report = Report::collect(&cluster);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(match report.health {
        Health::Synced => OK,
        Health::Degraded => FAILED,
        Health::NoPrimary => NO_PRIMARY,
    })
}
