//! `quorate status`

use super::no_permission;
use crate::args::Status;
use crate::cluster::Cluster;
use crate::view::{Health, Report};
use anyhow::Result;
use std::path::Path;

pub fn status(dir: &Path, args: &Status) -> Result<u8> {
    let cluster = Cluster::open(dir)?;
    let report = Report::collect(&cluster);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    match (report.health, no_permission(&cluster)) {
        (Health::NoPrimary, Some(failure)) => Err(failure.into()),
        (health, _) => Ok(health.exit_code()),
    }
}
