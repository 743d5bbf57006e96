//! `quorate member reinit`: a server gives its data up and fetches another's.

use super::member::told;
use super::{down, lock, up};
use crate::args::Reinit;
use crate::cluster::Cluster;
use crate::failure::{Failure, FAILED, OK};
use crate::remote::{NodeSurvey, Remote, Survey, SYNCED};
use anyhow::{Context, Result};
use quorate_live::port::Request;
use std::{fs, io};

pub fn reinit(group: &Remote, args: &Reinit, json: bool) -> Result<u8> {
    let name = &args.name;
    match group.here() {
        Some(cluster) => on_this_machine(group, cluster, args),
        None => told(group, name, &Request::Reinit, json, || {
            format!(
                "{name} has given its data up and ends. Its service starts it again, and it fetches another \
                 server's data: quorate status shows when it is Synced\n"
            )
        }),
    }
}

/// Here is no service that starts it again, and one that is down already is fetched back by that, too.
fn on_this_machine(group: &Remote, cluster: &Cluster, args: &Reinit) -> Result<u8> {
    let (mut cluster, lock) = lock(&cluster.dir)?;
    let node = cluster.find_server(&args.name)?;
    let now = group.reread(cluster.clone()).survey()?;
    if let Some(reason) = reason_against(&now, &node.name) {
        let message = format!("{} keeps its data: {reason}. Nothing was changed", node.name);
        return Err(Failure::new(FAILED, message).into());
    }
    let limit = args.limit;
    match down::stop(&cluster, std::slice::from_ref(&node), limit.timeout, true)? {
        OK => {
            let position = node.data().join("grastate.dat");
            match fs::remove_file(&position) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("removing {}", position.display()))
                }
                _ => {}
            }
            up::start(&mut cluster, lock, vec![node], limit)
        }
        code => Ok(code),
    }
}

fn reason_against(survey: &Survey, name: &str) -> Option<&'static str> {
    let is_donor = |other: &NodeSurvey| other.name != name && other.state == SYNCED && other.ready;
    match () {
        () if survey.leader.is_none() => {
            Some("no member leads, so whether others have the data, is not known")
        }
        () if survey.leader.as_deref() == Some(name) => {
            Some("it leads the group; hand leadership over first (quorate switchover)")
        }
        () if !survey.nodes.iter().any(is_donor) => {
            Some("no other server is Synced that it could fetch the data from")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_given_up_only_where_another_server_has_it() {
        let node = |name: &str, state: &str| NodeSurvey {
            name: name.into(),
            state: state.into(),
            ready: true,
            ..NodeSurvey::default()
        };
        let against = |leader: Option<&str>, state: &str| {
            let mut survey = Survey::unknown("c");
            survey.leader = leader.map(str::to_owned);
            survey.nodes = vec![node("a", state), node("b", "Down")];
            reason_against(&survey, "b")
        };
        assert_eq!(against(Some("a"), "Synced"), None);
        let refused = [
            (Some("b"), "Synced", "hand leadership over first"),
            (Some("a"), "Donor/Desynced", "no other server is Synced"),
            (None, "Synced", "no member leads"),
        ];
        for (leader, state, part) in refused {
            let reason = against(leader, state).unwrap_or_default();
            assert!(reason.contains(part), "{reason}");
        }
    }
}
