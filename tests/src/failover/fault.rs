//! What can happen to a node, and how long writes may stop by it.

use clap::ValueEnum;
use std::time::Duration;

/// What happens to a node while clients write to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// kill -9 of the leader, which is the written node
    KillLeader,
    /// SIGSTOP of it
    StopLeader,
    /// Its power is cut: the host falls silent, unsynced writes are lost
    PowerLeader,
    /// It is cut off from all others
    PartitionLeader,
    /// Clean stop of it
    LeaveLeader,
    /// Planned hand-over of leadership
    Switchover,
    /// kill -9 of another node
    KillOther,
    /// SIGSTOP of another node
    StopOther,
    /// Another node is cut off from all others
    PartitionOther,
    /// Clean stop of another node
    LeaveOther,
    /// A node without data joins, with a state transfer
    JoinOther,
}

/// The longest time without an acknowledged commit: of half of the rounds, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub half: Duration,
    pub worst: Option<Duration>,
}

/// A fault that hardly anybody notices.
const SHORT: Duration = Duration::from_millis(2500);
/// Throughput while another node is away, over that before.
pub const RATE_LEAST: f64 = 0.85;
/// From the start of a killed node until it is Synced, beside the time for its backlog.
pub const BACK_WITHIN: Duration = Duration::from_secs(5);

impl Fault {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub fn hits_leader(self) -> bool {
        use Fault::{
            KillLeader, LeaveLeader, PartitionLeader, PowerLeader, StopLeader, Switchover,
        };
        matches!(
            self,
            KillLeader | StopLeader | PowerLeader | PartitionLeader | LeaveLeader | Switchover
        )
    }

    /// A clean stop of the leader is a planned hand-over, too.
    pub fn limit(self) -> Limit {
        let limit = |half_ms, worst_ms: Option<u64>| Limit {
            half: Duration::from_millis(half_ms),
            worst: worst_ms.map(Duration::from_millis),
        };
        match self {
            Fault::KillLeader => limit(500, Some(1000)),
            Fault::StopLeader | Fault::PowerLeader | Fault::PartitionLeader => {
                limit(1500, Some(3000))
            }
            Fault::LeaveLeader | Fault::Switchover => limit(200, None),
            _ => limit(100, None),
        }
    }

    /// Before it is mended: longer than writes may stop at worst.
    pub fn lasts(self) -> Duration {
        match self.limit().worst {
            Some(worst) if worst > SHORT => worst + Duration::from_secs(1),
            _ => SHORT,
        }
    }

    pub fn needs_network(self) -> bool {
        matches!(self, Fault::PowerLeader | Fault::PartitionLeader | Fault::PartitionOther)
    }

    /// The node does not run until it is started again.
    pub fn ends_server(self) -> bool {
        use Fault::{KillLeader, KillOther, LeaveLeader, LeaveOther, PowerLeader};
        matches!(self, KillLeader | KillOther | LeaveLeader | LeaveOther | PowerLeader)
    }
}
