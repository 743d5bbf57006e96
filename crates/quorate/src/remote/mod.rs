//! Any group, asked as an operator on its own port: no agent, no SQL.
//!
//! Invariants:
//! - a member that hangs is waited for a few seconds, then the next one is asked;
//! - what was handed to a member as an order is handed to no other, unless that one said it did nothing.

mod clusters;
mod survey;
mod trouble;

pub use clusters::{Clusters, Known};
pub use survey::{NodeSurvey, Survey};

use crate::args::Target;
use crate::cluster::Cluster;
use crate::failure::{Failure, FAILED, NO_PERMISSION, UNREACHABLE, USAGE};
use anyhow::{Context, Result};
use quorate_lab::server::secret_in;
use quorate_live::port::{
    Answer, Asked, Happening, MemberReport, Operating, Refused, Report, Request, Unanswered, Why,
};
use quorate_live::{Credential, OperatorIdentity, Privilege, TlsOptions};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Remote {
    seeds: Vec<String>,
    operating: Arc<Operating>,
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
        let identity = identity(if given.shows_nothing() { &known } else { &given })?;
        let operating = Arc::new(Operating::new(&identity)?);
        Ok(Some(Remote { seeds, operating }))
    }

    /// The cluster in a directory of this machine, asked as others are. Nothing is ordered with that.
    pub fn of_cluster(cluster: &Cluster) -> Result<Remote> {
        let identity = match secret_in(&cluster.dir) {
            None => OperatorIdentity::Anonymous,
            Some(secret) => {
                File::open(&secret).with_context(|| format!("reading {}", secret.display()))?;
                let name = &cluster.account.name;
                let credential = Credential::derive(name, Privilege::Read, &secret)?;
                OperatorIdentity::Credential(credential)
            }
        };
        let seeds = cluster.group_addresses();
        Ok(Remote { seeds, operating: Arc::new(Operating::new(&identity)?) })
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

    /// All members, as far as they answer.
    pub fn survey(&self) -> Result<Survey> {
        Survey::collect(&self.seeds, &self.operating)
    }

    /// Has an order carried out, wherever that is: on the leader, or where it is told. Gives back which
    /// address that was, and its answer.
    pub fn order(&self, request: &Request) -> Result<(String, Asked)> {
        let (address, asked) = self.ask_any(request)?;
        self.follow(address, asked, request)
    }

    /// As [`Remote::order`], on the member of this name.
    pub fn order_at(&self, name: &str, request: &Request) -> Result<(String, Asked)> {
        self.order_by(&self.report()?, name, request)
    }

    /// The same, by what [`Remote::report`] gave back.
    pub fn order_by(
        &self,
        (reached, report): &(String, Report),
        name: &str,
        request: &Request,
    ) -> Result<(String, Asked)> {
        let (by, member) = (&report.own.name, member_named(report, name)?);
        // Where it was reached, if it was: an announced address may be for members alone.
        let address = if *by == member.name { reached } else { &member.address }.clone();
        let asked =
            self.operating.ask(&address, request).map_err(|error| failure(&address, error))?;
        self.follow(address, asked, request)
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
        let forbidden =
            |(_, error): &(&String, Unanswered)| matches!(error, Unanswered::Forbidden(_));
        let code = if failures.iter().any(forbidden) { NO_PERMISSION } else { UNREACHABLE };
        let lines: Vec<String> =
            failures.iter().map(|(address, error)| format!("{address}: {error}")).collect();
        Err(Failure::new(code, format!("no member answers. {}", lines.join("; "))).into())
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

/// The member of this name or id, as who reports knows it.
pub fn member_named<'a>(report: &'a Report, name: &str) -> Result<&'a MemberReport> {
    report.members.iter().find(|member| member.name == name || member.id == name).ok_or_else(|| {
        let names: Vec<&str> = report.members.iter().map(|m| m.name.as_str()).collect();
        let (by, names) = (&report.own.name, names.join(", "));
        let message = format!("{by} knows no member {name}; there are {names}. Nothing was done");
        Failure::new(FAILED, message).into()
    })
}

/// Who asks, as the options say: nothing that is kept of clusters counts.
pub fn operating(target: &Target) -> Result<Operating> {
    Ok(Operating::new(&identity(&Known::of(target)?)?)?)
}

fn code_of(error: &Unanswered) -> u8 {
    match error {
        Unanswered::NotReached(_) => UNREACHABLE,
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
        other => (FAILED, format!("{node} answers something else than was asked: {other:?}")),
    };
    Failure::new(code, message).into()
}

fn identity(known: &Known) -> Result<OperatorIdentity> {
    if let Some(file) = &known.operator_file {
        // So that a file of another account's is told as such.
        File::open(file).with_context(|| format!("reading {}", file.display()))?;
        return Ok(OperatorIdentity::Credential(Credential::read(file)?));
    }
    let Some(cert) = &known.ssl_cert else { return Ok(OperatorIdentity::Anonymous) };
    let key = known.ssl_key.clone().context("a certificate needs its key: --ssl-key")?;
    Ok(OperatorIdentity::Certificate(TlsOptions {
        cert: cert.clone(),
        key,
        ca: known.ssl_ca.clone(),
        names: known.ssl_names.clone(),
        crl: None,
        ciphers: String::new(),
        dynamic: false,
    }))
}

/// For commands that are for the cluster in a directory of this machine.
pub fn only_here(target: &Target) -> Result<()> {
    match target.is_given() {
        false => Ok(()),
        true => {
            let message =
                "--seed and --cluster are for status, watch, history, switchover, pause, resume, member and cluster: this \
                           command is for a cluster on this machine (--dir)";
            Err(Failure::new(USAGE, message).into())
        }
    }
}

/// As it is kept: wherever the command is run.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("the path {}", path.display()))
}
