//! Systems behind the wsrep interface of MariaDB: Quorate, and Galera.

use super::{Ground, Hold, Program, System};
use crate::fleet::{Fleet, USER};
use anyhow::{Context, Result};
use mysql::Conn;
use quorate_lab::cluster;
use quorate_lab::server::sql::{self, WsrepStatus};
use quorate_lab::server::{self, Settings, Start};
use std::path::PathBuf;

const GROUP: &str = "bench";
const FLUSH: &str = "innodb_flush_log_at_trx_commit";
/// Galera's default, written out because a test changes it and takes it back.
const FLOW_LIMIT: u32 = 16;

pub(super) struct Wsrep {
    name: &'static str,
    title: &'static str,
    replicator: Replicator,
    /// Of the redo log, at each commit. What is best for Quorate loses transactions in Galera.
    flush: &'static str,
    program: Program,
}

#[derive(PartialEq)]
enum Replicator {
    /// None: beside this program.
    Quorate(Option<PathBuf>, Variant),
    Galera,
}

/// How it differs from what its users get.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Usual,
    /// Connections between members are not encrypted.
    Plain,
    /// Logs and snapshots on disk are encrypted, too.
    Sealed,
}

impl Wsrep {
    pub fn quorate(provider: Option<PathBuf>) -> Wsrep {
        let replicator = Replicator::Quorate(provider, Variant::Usual);
        Wsrep::new("quorate", "Quorate", replicator, "0")
    }

    pub fn quorate_plain(provider: Option<PathBuf>) -> Wsrep {
        let replicator = Replicator::Quorate(provider, Variant::Plain);
        Wsrep::new("quorate-plain", "Quorate, connections in the clear", replicator, "0")
    }

    pub fn quorate_sealed(provider: Option<PathBuf>) -> Wsrep {
        let replicator = Replicator::Quorate(provider, Variant::Sealed);
        Wsrep::new("quorate-sealed", "Quorate, its log encrypted on disk", replicator, "0")
    }

    pub fn galera() -> Wsrep {
        Wsrep::new("galera", "Galera, flushed at each commit", Replicator::Galera, "1")
    }

    pub fn galera_relaxed() -> Wsrep {
        let title = "Galera, relaxed: a crash of all loses the last second";
        Wsrep::new("galera-relaxed", title, Replicator::Galera, "0")
    }

    fn new(
        name: &'static str,
        title: &'static str,
        replicator: Replicator,
        flush: &'static str,
    ) -> Wsrep {
        Wsrep { name, title, replicator, flush, program: Program::MariaDb }
    }

    fn provider_options(&self, ground: &Ground) -> Result<String> {
        Ok(match self.replicator {
            Replicator::Quorate(_, Variant::Usual) => String::new(),
            Replicator::Quorate(_, Variant::Plain) => "quorate.insecure=yes".to_owned(),
            Replicator::Quorate(_, Variant::Sealed) => {
                let key = server::make_key(ground.folder, ground.account)?;
                format!("quorate.encrypt_key_file={}", key.display())
            }
            Replicator::Galera => flow_limit(FLOW_LIMIT),
        })
    }

    fn provider(&self) -> Result<cluster::System> {
        match &self.replicator {
            Replicator::Quorate(Some(path), _) => {
                server::find_provider(Some(path)).map(cluster::System::Quorate)
            }
            Replicator::Quorate(None, _) => cluster::System::quorate(),
            Replicator::Galera => cluster::System::galera()
                .context("Galera is not installed; on Debian: apt-get install galera-4"),
        }
    }
}

impl System for Wsrep {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn encrypts(&self) -> bool {
        !matches!(self.replicator, Replicator::Galera | Replicator::Quorate(_, Variant::Plain))
    }

    fn program(&self) -> &Program {
        &self.program
    }

    fn check(&self) -> Result<()> {
        self.program.check()?;
        self.provider().map(drop)
    }

    fn options(&self, ground: &Ground, member: usize) -> Result<Vec<(String, String)>> {
        let group: Vec<String> = ground.nodes.iter().map(|node| node.group_address()).collect();
        let provider = server::readable_provider(
            self.provider()?.provider(),
            &ground.folder.join("lib"),
            ground.account,
        )?;
        let secret = server::make_secret(ground.folder, ground.account)?;
        let settings = Settings {
            cluster: GROUP,
            group: &group,
            provider: &provider,
            provider_options: &self.provider_options(ground)?,
            secret: Some(&secret),
            account: ground.account,
        };
        let mut options = settings.options(&ground.nodes[member])?;
        for (name, value) in &mut options {
            if name == FLUSH {
                *value = self.flush.to_owned();
            }
        }
        Ok(options)
    }

    fn form(&self, fleet: &Fleet) -> Result<()> {
        let founder = Start { new_cluster: true, position: None };
        fleet.launch(0, &founder.own_arguments())?;
        fleet.wait_up(&[0])?;
        let status = WsrepStatus::ask(&mut fleet.connect(0)?)?;
        let group = status.get("wsrep_cluster_state_uuid").context("node1 names no group")?;
        // All have the founder's content: nobody needs a state transfer.
        let beginning = Start { new_cluster: false, position: Some(format!("{group}:0")) };
        fleet
            .members()
            .skip(1)
            .try_for_each(|member| fleet.launch(member, &beginning.own_arguments()))
    }

    fn start_again(&self, fleet: &Fleet, member: usize) -> Result<()> {
        let running = fleet.members().find_map(|other| {
            let status = WsrepStatus::ask(&mut fleet.try_connect(other).ok()?).ok()?;
            status.get("wsrep_cluster_state_uuid").map(str::to_owned)
        });
        let mariadbd = server::find_mariadbd()?;
        let node = fleet.node(member);
        let mut start = Start::of(node, fleet.account(), &mariadbd, running.as_deref())?;
        if running.is_none() && self.replicator == Replicator::Galera {
            server::allow_bootstrap(node)?;
            start.new_cluster = true;
        }
        fleet.launch(member, &start.own_arguments())
    }

    fn join(&self, fleet: &Fleet, member: usize) -> Result<()> {
        fleet.launch(member, &[])
    }

    fn is_up(&self, connection: &mut Conn) -> Result<bool> {
        let status = WsrepStatus::ask(connection)?;
        Ok(status.is_synced() && status.has_vote())
    }

    /// In Galera no member differs from the others.
    fn primacy(&self, connection: &mut Conn) -> Result<Option<u64>> {
        let status = WsrepStatus::ask(connection)?;
        Ok(match self.replicator {
            Replicator::Galera => status.is_synced().then_some(0),
            Replicator::Quorate(..) if !status.leads() => None,
            Replicator::Quorate(..) => {
                status.number("wsrep_quorate_term").and_then(|term| u64::try_from(term).ok())
            }
        })
    }

    fn view(&self, connection: &mut Conn) -> Result<String> {
        let status = WsrepStatus::ask(connection)?;
        // Of Quorate, who leads; of both, whether the members agree, and how many they are.
        let seen = [
            "wsrep_quorate_role",
            "wsrep_quorate_leader",
            "wsrep_quorate_term",
            "wsrep_evs_state",
            "wsrep_cluster_size",
        ];
        Ok(seen.map(|name| status.get(name).unwrap_or_default()).join(" "))
    }

    fn applied(&self, connection: &mut Conn) -> Result<u64> {
        let seqno = WsrepStatus::ask(connection)?.number("wsrep_last_committed");
        Ok(u64::try_from(seqno.context("no wsrep_last_committed")?)?)
    }

    fn provider_version(&self, connection: &mut Conn) -> Result<Option<String>> {
        let status = WsrepStatus::ask(connection)?;
        let part = |name: &str| status.get(name).unwrap_or_default().to_owned();
        let name = part("wsrep_provider_name");
        Ok(Some(format!("{name} {}", part("wsrep_provider_version"))))
    }

    fn durability(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            (FLUSH, self.flush),
            ("sync_binlog", "0"),
            ("log_bin", "OFF"),
            ("innodb_snapshot_isolation", "ON"),
        ]
    }

    fn tells(&self) -> &'static [&'static str] {
        &["innodb_buffer_pool_size", "wsrep_slave_threads", "wsrep_provider_options"]
    }

    fn fails_over(&self) -> bool {
        true
    }

    fn weigh(&self, fleet: &Fleet, weights: &[u8]) -> Result<()> {
        // What has that name in Galera is the number of a member's votes.
        if self.replicator == Replicator::Galera {
            return Ok(());
        }
        let leader = fleet.socket(fleet.primary()?);
        for (member, weight) in fleet.members().zip(weights) {
            let order = format!("{} priority={weight}", fleet.node(member).name);
            sql::command(&leader, USER, "quorate.member_set", &order)?;
        }
        Ok(())
    }

    /// In Quorate a commit is on the disks of a majority, whatever the server's own log does.
    fn relaxed(&self) -> Vec<(&'static str, &'static str)> {
        match self.replicator {
            Replicator::Quorate(..) => Vec::new(),
            Replicator::Galera => vec![(FLUSH, "0")],
        }
    }

    fn has_group_log(&self) -> bool {
        self.replicator != Replicator::Galera
    }

    fn flow_control(&self, threshold: Option<u32>) -> Vec<String> {
        match self.replicator {
            Replicator::Quorate(..) => vec![set_options(&match threshold {
                None => "quorate.flow_control=no".to_owned(),
                Some(limit) => format!(
                    "quorate.flow_control_applied={limit};quorate.flow_control_certified={limit};\
                     quorate.flow_control=yes"
                ),
            })],
            Replicator::Galera => {
                vec![set_options(&flow_limit(threshold.unwrap_or(FLOW_LIMIT)))]
            }
        }
    }

    fn is_multi_primary(&self) -> bool {
        true
    }

    /// The server takes the member out of flow control itself, as for a backup.
    fn hold(&self) -> Option<Hold> {
        Some(Hold::READ_LOCK)
    }
}

fn set_options(options: &str) -> String {
    format!("SET GLOBAL wsrep_provider_options = '{options}'")
}

/// Of transactions that wait in a member; Galera makes more of it the more members there are.
fn flow_limit(transactions: u32) -> String {
    format!("gcs.fc_limit={transactions}")
}
