//! The systems that are compared. Each is a description: what differs between them stands here, and the
//! code that makes hosts, starts servers and drives them is the same for all.
//!
//! Every system gets [`quorate_lab::server::common_options`], what it needs to replicate, and what decides
//! on durability, written out though it may be a default. Everything else is what its users get by default, but in
//! [`VARIANTS`].
//! Connections between members are encrypted where that is the default: in Quorate alone.

mod group_replication;
mod mariadb;
mod program;
mod wsrep;

pub use program::Program;

use crate::fleet::Fleet;
use anyhow::{bail, Context, Result};
use group_replication::GroupReplication;
use mariadb::{MariaDb, Replication};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_lab::server::{Account, Node};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wsrep::Wsrep;

/// An account of the servers for replication. It is in every system that needs one.
const REPLICATION_USER: &str = "replication";
const REPLICATION_PASSWORD: &str = "replication";

/// Where what is compared is found.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// None: beside this program.
    pub provider: Option<PathBuf>,
    /// The folder that MySQL is installed in, as a whole system.
    pub mysql_root: Option<PathBuf>,
}

/// What a member's options are made of.
pub struct Ground<'a> {
    /// All members.
    pub nodes: &'a [Node],
    pub account: &'a Account,
    /// The fleet's folder.
    pub folder: &'a Path,
}

/// A system under comparison. Members are counted from 0.
pub trait System: Send + Sync {
    /// As `--systems` names it.
    fn name(&self) -> &'static str;

    fn title(&self) -> &'static str;

    /// Whether what members say to each other is encrypted.
    fn encrypts(&self) -> bool {
        false
    }

    fn program(&self) -> &Program;

    /// An error that says what is missing on this machine, and how to get it.
    fn check(&self) -> Result<()> {
        self.program().check()
    }

    /// How many members it has if `asked` for so many.
    fn members(&self, asked: usize) -> usize {
        asked
    }

    /// What a member's server gets beside the options of all.
    fn options(&self, ground: &Ground, member: usize) -> Result<Vec<(String, String)>>;

    /// Starts all members, on datadirs of equal content, and makes a group of them.
    fn form(&self, fleet: &Fleet) -> Result<()>;

    /// Starts a member that was stopped or killed, by the book. It need not be up when this returns. If no
    /// other member runs, the group goes on with this one.
    fn start_again(&self, fleet: &Fleet, member: usize) -> Result<()>;

    /// What is installed before a member can join whose folders are empty.
    fn make_joiner(&self, _fleet: &Fleet, _member: usize) -> Result<()> {
        Ok(())
    }

    /// Lets such a member in, so that it gets the data of the others.
    fn join(&self, fleet: &Fleet, member: usize) -> Result<()>;

    /// Whether a member that answers takes part, with all that it had missed before it came.
    fn is_up(&self, connection: &mut Conn) -> Result<bool>;

    /// None unless the member says that it is the one to write to; of several that say so, the one of
    /// the highest number is.
    fn primacy(&self, connection: &mut Conn) -> Result<Option<u64>>;

    /// What the member sees of its group, in words that change once it notices that another is gone.
    fn view(&self, connection: &mut Conn) -> Result<String>;

    /// How many transactions the member has applied since the group began. Members that have the same
    /// are equal.
    fn applied(&self, connection: &mut Conn) -> Result<u64>;

    /// The server's version is asked otherwise; this is what it has loaded to replicate.
    fn provider_version(&self, _connection: &mut Conn) -> Result<Option<String>> {
        Ok(None)
    }

    /// Variables that decide on durability, with the values that they are to have on every member.
    fn durability(&self) -> Vec<(&'static str, &'static str)>;

    /// Those that members can change while they run, with their values where durability is given up for
    /// speed. Empty where there is nothing to give up.
    fn relaxed(&self) -> Vec<(&'static str, &'static str)>;

    /// Whether members agree on each transaction by way of a log that all of them have.
    fn has_group_log(&self) -> bool {
        false
    }

    /// Statements for each member by which the primary is slowed down as soon as a member is `threshold`
    /// transactions behind; none: as it is by its options. Empty where nobody is slowed down.
    fn flow_control(&self, _threshold: Option<u32>) -> Vec<String> {
        Vec::new()
    }

    /// Variables that differ between members, to be shown beside those.
    fn roles(&self) -> &'static [&'static str] {
        &[]
    }

    /// Variables that decide on figures, besides durability: what the first member has of them is shown.
    fn tells(&self) -> &'static [&'static str];

    /// Whether another member takes the primary's place by itself.
    fn fails_over(&self) -> bool;

    /// Who is to lead rather than others, from 0 to 100 for each member, where a system has that.
    fn weigh(&self, _fleet: &Fleet, _weights: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Whether all members take writes.
    fn is_multi_primary(&self) -> bool;

    /// How a member is kept from applying what it receives. None where nobody could write meanwhile, or
    /// there is nobody to receive.
    fn hold(&self) -> Option<Hold>;
}

/// Statements for one connection, which may not end between them.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    pub hold: &'static str,
    pub release: &'static str,
}

impl Hold {
    /// No transaction can be committed.
    const READ_LOCK: Self = Self { hold: "FLUSH TABLES WITH READ LOCK", release: "UNLOCK TABLES" };
}

/// Those that replicate, and lose no commit when all of their servers crash. The others show what that costs.
pub const PEERS: [&str; 7] =
    ["quorate", "galera", "async", "semisync", "gr-eventual", "gr-tuned", "gr-after"];

/// Quorate with other settings. They say something only beside Quorate, so they are measured only where they are named.
pub const VARIANTS: [&str; 2] = ["quorate-plain", "quorate-sealed"];

/// All of them, in the order in which they are shown.
pub fn all(sources: &Sources) -> Vec<Arc<dyn System>> {
    let provider = sources.provider.clone();
    let root = sources.mysql_root.clone();
    vec![
        Arc::new(Wsrep::quorate(provider.clone())),
        Arc::new(Wsrep::quorate_plain(provider.clone())),
        Arc::new(Wsrep::quorate_sealed(provider)),
        Arc::new(Wsrep::galera()),
        Arc::new(Wsrep::galera_relaxed()),
        Arc::new(MariaDb::new(Replication::Asynchronous, true)),
        Arc::new(MariaDb::new(Replication::SemiSynchronous, true)),
        Arc::new(MariaDb::new(Replication::None, true)),
        Arc::new(MariaDb::new(Replication::None, false)),
        Arc::new(GroupReplication::eventual(root.clone())),
        Arc::new(GroupReplication::tuned(root.clone())),
        Arc::new(GroupReplication::after(root)),
    ]
}

/// The system of this name.
pub fn named(name: &str, sources: &Sources) -> Result<Arc<dyn System>> {
    let all = all(sources);
    match all.iter().find(|system| system.name() == name) {
        Some(system) => Ok(system.clone()),
        None => {
            let names: Vec<&str> = all.iter().map(|system| system.name()).collect();
            bail!("no system {name:?}; there are {}", names.join(", "))
        }
    }
}

fn owned<const N: usize>(options: [(&str, &str); N]) -> Vec<(String, String)> {
    options.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The first field of a statement's first row.
fn ask(connection: &mut Conn, statement: &str) -> Result<String> {
    let answer: Option<String> = connection.query_first(statement)?;
    answer.with_context(|| format!("{statement} has no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_lab::server::Ports;
    use std::collections::BTreeMap;

    fn options(system: &dyn System, member: usize) -> BTreeMap<String, String> {
        let folder = Path::new("/nowhere");
        let nodes: Vec<Node> =
            (1..=3).map(|number| Node::new(folder, number, Ports::USUAL)).collect();
        let account = Account::choose().unwrap();
        let ground = Ground { nodes: &nodes, account: &account, folder };
        system.options(&ground, member).unwrap().into_iter().collect()
    }

    fn system(name: &str) -> Arc<dyn System> {
        // Any file will do for a provider.
        let provider = std::env::current_exe().ok();
        named(name, &Sources { provider, mysql_root: Some("/mysql".into()) }).unwrap()
    }

    #[test]
    fn systems_are_found_by_name() {
        for found in all(&Sources::default()) {
            assert_eq!(named(found.name(), &Sources::default()).unwrap().title(), found.title());
        }
        let error = named("pxc", &Sources::default()).err().unwrap().to_string();
        assert!(error.contains("galera-relaxed, async, semisync"), "{error}");
    }

    /// Else two of them would not be told apart by what was read back.
    #[test]
    fn what_decides_on_durability_is_written_out() {
        let names =
            ["async", "semisync", "standalone", "standalone-relaxed", "gr-after", "gr-tuned"];
        for name in names {
            let (system, given) = (system(name), options(&*system(name), 0));
            for (variable, value) in system.durability() {
                // A file's name in the options, ON when it is asked.
                if variable != "log_bin" {
                    assert_eq!(given.get(variable).map(String::as_str), Some(value), "{name}");
                }
            }
        }
    }

    #[test]
    fn variants_of_quorate_differ_in_what_protects_them() {
        let folder = std::env::temp_dir().join(format!("quorate-variants-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // By its name it is known to be ours.
        let provider = folder.join("libquorate.so");
        std::fs::write(&provider, "").unwrap();
        let sources = Sources { provider: Some(provider), mysql_root: None };
        let nodes = [Node::new(&folder, 1, Ports::USUAL)];
        let ground =
            Ground { nodes: &nodes, account: &Account::choose().unwrap(), folder: &folder };
        let protection = |name: &str| {
            let system = named(name, &sources).unwrap();
            let options = system
                .options(&ground, 0)
                .unwrap()
                .into_iter()
                .find(|(name, _)| name == "wsrep_provider_options");
            let has = |option: &str| options.as_ref().unwrap().1.contains(option);
            let named =
                ["quorate.secret_file=", "quorate.insecure=yes", "quorate.encrypt_key_file="];
            (VARIANTS.contains(&name), system.encrypts(), named.map(has))
        };
        let found = ["quorate", "quorate-plain", "quorate-sealed"].map(protection);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found[0], (false, true, [true, false, false]));
        assert_eq!(found[1], (true, false, [false, true, false]));
        assert_eq!(found[2], (true, true, [true, false, true]));
    }

    #[test]
    fn replicas_are_told_from_the_primary() {
        let semisync = system("semisync");
        let (primary, replica) = (options(&*semisync, 0), options(&*semisync, 2));
        assert_eq!(primary["rpl_semi_sync_master_enabled"], "ON");
        assert!(!primary.contains_key("read_only"));
        assert_eq!(replica["rpl_semi_sync_slave_enabled"], "ON");
        assert_eq!((&*replica["read_only"], &*replica["server_id"]), ("ON", "3"));
        assert!(!options(&*system("async"), 0).contains_key("rpl_semi_sync_master_enabled"));
    }

    #[test]
    fn what_is_missing_is_said_with_what_helps() {
        let absent = named("gr-after", &Sources::default()).unwrap();
        let error = absent.check().unwrap_err().to_string();
        assert!(error.contains("--mysql-root") && error.contains("debootstrap"), "{error}");
        let elsewhere = format!("{:#}", system("gr-after").check().unwrap_err());
        assert!(elsewhere.contains("/mysql"), "{elsewhere}");
    }
}
