//! `quorate status`

use super::no_permission;
use crate::args::Status;
use crate::cluster::Cluster;
use crate::failure::{FAILED, NO_PRIMARY, OK};
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
    Ok(match report.health {
        Health::Synced => OK,
        Health::Degraded => FAILED,
        Health::NoPrimary => match no_permission(&cluster) {
            Some(failure) => return Err(failure.into()),
            None => NO_PRIMARY,
        },
    })
}
