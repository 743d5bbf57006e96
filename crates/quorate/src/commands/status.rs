//! `quorate status`

use crate::args::Status;
use crate::cluster::Cluster;
use crate::view::Report;
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
    Ok(report.health.exit_code())
}
