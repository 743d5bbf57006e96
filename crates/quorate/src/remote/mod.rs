//! Any group, asked as an operator on its own port, the cluster of this machine too: no agent, no SQL.
//!
//! Invariants:
//! - a member that hangs is waited for a few seconds, then the next one is asked;
//! - what was handed to a member as an order is handed to no other, unless that one said it did nothing.

mod asked;
mod between;
mod clusters;
mod here;
mod identity;
mod order;
mod shown;
mod survey;
mod trouble;
mod voters;

pub use between::{Cut, End as CutEnd, Levels};
pub use clusters::{Clusters, Known};
pub use survey::{Health, NodeSurvey, Survey, SYNCED};
pub use trouble::{nobody_writes, recent_fault, CERTIFICATE_DAYS};
pub use voters::{Voter, Voters};

use crate::args::Target;
use crate::cluster::Cluster;
use crate::failure::{Failure, FAILED, NO_PERMISSION, UNREACHABLE, USAGE};
use crate::server::Activity;
use anyhow::{Context, Result};
use asked::{kind, nobody};
use quorate_live::port::{
    Answer, Asked, Happening, MemberReport, Operating, Refused, Report, Request, Unanswered, Why,
};
use quorate_live::Privilege;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Remote {
    seeds: Vec<String>,
    operating: Arc<Operating>,
    /// If it is the one of a directory of this machine.
    here: Option<Cluster>,
}

impl Remote {
    /// `None`: no other group is meant.
    pub fn of(target: &Target) -> Result<Option<Remote>> {
        if !target.is_given() {
            return Ok(None);
        }
        let known = match &target.cluster {
            Some(name) => Clusters::read()?.find(name)?,
            None => Known::default(),
        };
        let given = Known::of(target)?;
        let seeds = if given.seeds.is_empty() { known.seeds.clone() } else { given.seeds.clone() };
        let identity = identity::shown(&given, &known)?;
        let operating = Arc::new(Operating::new(&identity)?);
        Ok(Some(Remote { seeds, operating, here: None }))
    }

    /// The cluster in a directory of this machine, by those of its nodes that can answer. `target` may say who asks.
    pub fn of_cluster(cluster: Cluster, target: &Target) -> Result<Remote> {
        let identity = identity::on_this_machine(&cluster, &Known::of(target)?)?;
        Ok(Remote::by_what_runs(cluster, Arc::new(Operating::new(&identity)?)))
    }

    /// The same cluster of this machine, as it is now.
    pub fn reread(&self, cluster: Cluster) -> Remote {
        Remote::by_what_runs(cluster, self.operating.clone())
    }

    fn by_what_runs(cluster: Cluster, operating: Arc<Operating>) -> Remote {
        let nodes = cluster.nodes().into_iter().filter(|_| cluster.is_of_quorate());
        let running = nodes.filter(|node| cluster.activity(node) == Activity::Running);
        let seeds = running.map(|node| node.group_address()).collect();
        Remote { seeds, operating, here: Some(cluster) }
    }

    /// The cluster of this machine, if it is that one.
    pub fn here(&self) -> Option<&Cluster> {
        self.here.as_ref()
    }

    /// A node of this machine may be called by its number.
    pub fn name(&self, given: &str) -> String {
        let node = self.here.as_ref().and_then(|cluster| cluster.find(given).ok());
        node.map_or_else(|| given.to_owned(), |node| node.name)
    }

    /// What happened to the group, as the first member shows it that answers; and its name.
    pub fn history(&self) -> Result<(String, Vec<Happening>)> {
        let (_, Asked { node, answer }) = self.ask_any(&Request::History)?;
        match answer {
            Answer::History(history) => Ok((node, history)),
            other => Err(refused(&node, other)),
        }
    }

    /// What the first member says that answers, and at which address it does.
    pub fn report(&self) -> Result<(String, Report)> {
        let (address, Asked { node, answer }) = self.ask_any(&Request::Status)?;
        match answer {
            Answer::Status(report) => Ok((address, *report)),
            other => Err(refused(&node, other)),
        }
    }

    /// What the leader says, if the first member that answers knows one, and that one answers: others may hear of what
    /// has changed later.
    pub fn leaders_report(&self) -> Result<(String, Report)> {
        let first = self.report()?;
        let leader = first.1.leading().filter(|leader| leader.id != first.1.own.id);
        let Some(address) = leader.map(|leader| leader.address.clone()) else { return Ok(first) };
        Ok(self.report_of(&address).map_or(first, |report| (address, report)))
    }

    /// All members, as far as they answer.
    pub fn survey(&self) -> Result<Survey> {
        match &self.here {
            Some(cluster) => here::survey(cluster, &self.seeds, &self.operating),
            None => Survey::collect(&self.seeds, &self.operating),
        }
    }

    /// Has an order carried out, wherever that is: on the leader, or where it is told. Gives back which
    /// address that was, and its answer.
    pub fn order(&self, request: &Request) -> Result<(String, Asked)> {
        let (address, asked) = self.ask_any(request)?;
        self.follow(address, asked, request)
    }

    /// As [`Remote::order`], on the member of this name or id.
    pub fn order_at(&self, name: &str, request: &Request) -> Result<(String, Asked)> {
        let reported = self.report()?;
        let member = member_named(&reported.1, name)?;
        self.order_to(address_of(&reported, member), request)
    }

    /// As [`Remote::order`], on the member at this address.
    pub fn order_to(&self, address: &str, request: &Request) -> Result<(String, Asked)> {
        let asked =
            self.operating.ask(address, request).map_err(|error| failure(address, error))?;
        self.follow(address.to_owned(), asked, request)
    }

    /// What the member at this address says now.
    pub fn report_of(&self, address: &str) -> Result<Report> {
        let asked = self.operating.ask(address, &Request::Status);
        let Asked { node, answer } = asked.map_err(|error| failure(address, error))?;
        match answer {
            Answer::Status(report) => Ok(*report),
            other => Err(refused(&node, other)),
        }
    }

    /// The first seed that answers. An order that may have been carried out is not given again.
    fn ask_any(&self, request: &Request) -> Result<(String, Asked)> {
        let mut failures = Vec::new();
        for address in &self.seeds {
            match self.operating.ask(address, request) {
                Ok(asked) => return Ok((address.clone(), asked)),
                Err(error @ Unanswered::Lost(_)) if request.is_order() => {
                    return Err(failure(address, error));
                }
                Err(error) => failures.push((address, error)),
            }
        }
        match &self.here {
            Some(cluster) if failures.is_empty() => {
                let dir = cluster.dir.display();
                let message = format!(
                    "no node of the cluster in {dir} runs that could be asked: `quorate up` starts them"
                );
                Err(Failure::new(UNREACHABLE, message).into())
            }
            _ => Err(nobody(failures.iter().map(|(address, error)| (*address, error)))),
        }
    }

    fn follow(&self, address: String, asked: Asked, request: &Request) -> Result<(String, Asked)> {
        let followed = self.operating.follow(address, asked, request);
        let (address, asked) =
            followed.map_err(|error| Failure::new(code_of(&error), error.to_string()))?;
        match asked.answer {
            Answer::Refused(_) => Err(refused(&asked.node, asked.answer)),
            answer => Ok((address, Asked { answer, ..asked })),
        }
    }
}

/// The member of this name or id, as who reports knows it. Names may repeat, ids do not.
pub fn member_named<'a>(report: &'a Report, name: &str) -> Result<&'a MemberReport> {
    let is_meant = |member: &&MemberReport| member.name == name || member.id == name;
    let found: Vec<&MemberReport> = report.members.iter().filter(is_meant).collect();
    let message = match &found[..] {
        [member] => return Ok(member),
        [] => {
            let names: Vec<&str> = report.members.iter().map(|m| m.name.as_str()).collect();
            let (by, names) = (&report.own.name, names.join(", "));
            format!("{by} knows no member {name}; there are {names}. Nothing was done")
        }
        several => {
            let ids = several.iter().map(|member| format!("{} ({})", member.id, member.address));
            let ids: Vec<String> = ids.collect();
            let ids = ids.join(", ");
            format!(
                "several members are called {name}: give the id, one of {ids}. Nothing was done"
            )
        }
    };
    Err(Failure::new(USAGE, message).into())
}

/// Where a member is reached: where it was, if it was the one that reported, since an announced address may be for
/// members alone.
pub fn address_of<'a>(
    (reached, report): &'a (String, Report),
    member: &'a MemberReport,
) -> &'a str {
    if report.own.id == member.id {
        reached
    } else {
        &member.address
    }
}

/// An error if who asked may only look.
pub fn may_order(report: &Report) -> Result<()> {
    if report.privilege == Privilege::All.word() {
        return Ok(());
    }
    let message = format!("operator {} may only look at this group", report.operator);
    Err(Failure::new(NO_PERMISSION, message).into())
}

/// Who asks, as the options or the environment say: nothing that is kept of clusters counts.
pub fn operating(target: &Target) -> Result<Operating> {
    Ok(Operating::new(&identity::shown(&Known::of(target)?, &Known::default())?)?)
}

fn code_of(error: &Unanswered) -> u8 {
    match error {
        Unanswered::NotReached(_) | Unanswered::Busy(_) => UNREACHABLE,
        Unanswered::Forbidden(_) => NO_PERMISSION,
        Unanswered::Lost(_) => FAILED,
    }
}

fn failure(address: &str, error: Unanswered) -> anyhow::Error {
    Failure::new(code_of(&error), format!("{address}: {error}")).into()
}

/// An answer that is not the one to this request.
pub fn refused(node: &str, answer: Answer) -> anyhow::Error {
    let (code, message) = match answer {
        Answer::Refused(Refused { why: Why::Permission, reason }) => (NO_PERMISSION, reason),
        Answer::Refused(Refused { reason, .. }) => (FAILED, reason),
        other => {
            let message = format!(
                "{node} was asked something else, and says {}. If it was an order, whether that was carried out is not \
                 known: look at quorate history before it is given again",
                kind(&other)
            );
            (FAILED, message)
        }
    };
    Failure::new(code, message).into()
}

/// The commands that take `--seed` and `--cluster`.
const FOR_ANY_GROUP: &str = "status, watch, history, check, switchover, pause, resume, member, rules, force-quorum, reinit and cluster";

/// For commands that are for the cluster in a directory of this machine.
pub fn only_here(target: &Target) -> Result<()> {
    match target.is_given() {
        false => Ok(()),
        true => {
            let message = format!(
                "--seed and --cluster are for {FOR_ANY_GROUP}: this command is for a cluster on this machine (--dir)"
            );
            Err(Failure::new(USAGE, message).into())
        }
    }
}

/// As it is kept: wherever the command is run.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("the path {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{Command, CommandFactory};
    use quorate_live::port::OwnReport;

    #[test]
    fn of_several_members_with_a_name_the_one_with_the_id_is_told() {
        let member = |id: &str, name: &str| MemberReport {
            id: id.into(),
            name: name.into(),
            address: format!("{id}.lan:4567"),
            ..MemberReport::default()
        };
        let report = Report {
            members: vec![member("a1", "db1"), member("b2", "db1"), member("c3", "db3")],
            own: OwnReport { id: "a1".into(), name: "db1".into(), ..OwnReport::default() },
            ..Report::default()
        };
        let reported = ("127.0.0.1:4567".to_owned(), report);
        let at = |name| member_named(&reported.1, name).map(|found| address_of(&reported, found));
        assert_eq!(at("a1").unwrap(), "127.0.0.1:4567");
        assert_eq!(at("b2").unwrap(), "b2.lan:4567");
        assert_eq!(at("db3").unwrap(), "c3.lan:4567");
        let several = at("db1").unwrap_err().to_string();
        for part in ["several members are called db1: give the id", "a1 (a1.lan", "b2 (b2.lan"] {
            assert!(several.contains(part), "{several}");
        }
        let none = at("db9").unwrap_err().to_string();
        assert!(none.starts_with("db1 knows no member db9; there are db1, db1, db3"), "{none}");
    }

    #[test]
    fn of_an_answer_to_something_else_only_the_kind_is_told() {
        let told = refused("db1", Answer::Status(Box::default())).to_string();
        let begins = "db1 was asked something else, and says how the group is.";
        assert!(told.starts_with(begins) && !told.contains("Report"), "{told}");
    }

    #[test]
    fn the_commands_for_any_group_are_those_that_take_a_seed() {
        fn takes_seed(command: &Command) -> bool {
            let own = command.get_arguments().any(|argument| argument.get_id() == "seeds");
            own || command.get_subcommands().any(takes_seed)
        }
        let cli = Cli::command();
        let taking = cli.get_subcommands().filter(|command| takes_seed(command));
        let mut taking: Vec<&str> = taking.map(Command::get_name).collect();
        let mut named: Vec<&str> =
            FOR_ANY_GROUP.split(", ").flat_map(|names| names.split(" and ")).collect();
        taking.sort_unstable();
        named.sort_unstable();
        assert_eq!(taking, named);
    }
}
