//! `quorate operator`, `quorate cluster`: what an operator is known by, and the groups that it has named.

use super::say;
use crate::args::{Clusters as ClustersWhat, Operator as What, Target};
use crate::failure::{readable, Failure, USAGE};
use crate::remote::{Clusters, Known};
use crate::view::table::{or_dash, table};
use anyhow::{Context, Result};
use quorate_live::{Credential, GroupError, Privilege};
use serde_json::{json, Value};
use std::path::absolute;

pub fn operator(what: &What) -> Result<u8> {
    let What::New { name, read_only, secret_file, out, json } = what;
    let privilege = if *read_only { Privilege::Read } else { Privilege::All };
    readable(secret_file)?;
    let credential =
        Credential::derive(name, privilege, secret_file).map_err(|error| match error {
            GroupError::OperatorName { .. } => Failure::new(USAGE, error.to_string()).into(),
            other => anyhow::Error::from(other),
        })?;
    let file = out.clone().unwrap_or_else(|| format!("{name}.operator").into());
    let file = absolute(file)?;
    credential.write(&file).with_context(|| format!("making {}", file.display()))?;
    let may = match privilege {
        Privilege::Read => "may look at the group, and gives no orders",
        Privilege::All => "may look at the group and give it orders",
    };
    let document = json!({ "operator": name, "privilege": privilege.word(), "file": file });
    say(*json, document, || {
        format!(
            "The credential of {name} is in {0}: whoever has it {may}. Keep it like a password. Next:\n  \
             quorate status --seed HOST:4567 --operator-file {0}\n\
             It ends with the group's secret, or where quorate.operators does not list {name}.\n",
            file.display()
        )
    })
}

pub fn cluster(what: &ClustersWhat, before: &Target) -> Result<u8> {
    let mut clusters = Clusters::read()?;
    match what {
        ClustersWhat::Add { name, json, target } => {
            let target = target.clone().or(before.clone());
            clusters.add(name, Known::of(&target)?)?;
            say(*json, kept(&clusters), || {
                format!("{name} is kept; quorate status --cluster {name}\n")
            })
        }
        ClustersWhat::Remove { name, json } => {
            clusters.remove(name)?;
            say(*json, kept(&clusters), || {
                format!("{name} is forgotten; the group itself was not touched\n")
            })
        }
        ClustersWhat::List { json } => say(*json, kept(&clusters), || list(&clusters)),
    }
}

/// See docs/run/json.md.
fn kept(clusters: &Clusters) -> Value {
    json!({ "clusters": clusters.all })
}

fn list(clusters: &Clusters) -> String {
    let mut rows = vec![["NAME", "SEEDS", "OPERATOR"].map(String::from)];
    rows.extend(clusters.all.iter().map(|(name, known)| {
        let shows = known.operator_file.as_ref().or(known.ssl_cert.as_ref());
        let shows = or_dash(shows.map(|path| path.display().to_string()));
        [name.clone(), known.seeds.join(","), shows]
    }));
    table(&rows)
}
