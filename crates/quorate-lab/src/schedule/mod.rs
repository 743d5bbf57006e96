//! What fails, when. A schedule is rounds of steps; a seed decides all that is left open.
//!
//! * [`rounds`]: the named schedules and the random one, as pure functions of the seed.
//! * [`nemesis`]: carries the steps out on a cluster, and remembers what it did.
//!
//! A round never takes the disks of a majority: what it mends, it mends before the next begins.

mod nemesis;
mod rounds;

pub use nemesis::{Event, Nemesis};
pub use rounds::Rounds;

use std::fmt;
use std::time::Duration;

/// Something done to nodes, to be mended later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// kill -9
    Kill,
    /// Power cut: the process ends, unsynced writes are forgotten, the last may be torn.
    PowerCut,
    /// SIGSTOP
    Pause,
    /// SIGTERM
    Stop,
    /// kill -9, and the disk is lost.
    Wipe,
    /// Cut off from all others.
    Isolate,
    /// Sends, and receives nothing.
    Deaf,
    /// Receives, and sends nothing.
    Mute,
    /// Slow links to all others, with loss.
    Lossy,
    /// Every disk operation waits.
    FreezeDisk,
    FillDisk,
    /// Syncs fail with EIO.
    FailSync,
    /// Syncs take 300 ms longer.
    SlowSync,
    /// The wall clock jumps, by seconds to a day, either way, and back when it is mended.
    ClockJump,
    /// A few hundredths of one processor.
    Starve,
}

/// What can be done to the nodes, besides what every process suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    pub network: bool,
    pub disks: bool,
    pub clocks: bool,
    pub processors: bool,
}

impl Means {
    pub const ALL: Means = Means { network: true, disks: true, clocks: true, processors: true };
    pub const NONE: Means =
        Means { network: false, disks: false, clocks: false, processors: false };

    fn allow(self, harm: Harm) -> bool {
        (self.network || !harm.needs_network())
            && (self.disks || !harm.needs_disk())
            && (self.clocks || harm != Harm::ClockJump)
            && (self.processors || harm != Harm::Starve)
    }

    fn allow_schedule(self, name: &str) -> bool {
        match name {
            "partitions" => self.network,
            "disks" => self.disks,
            "clocks" => self.clocks,
            "starved" => self.processors,
            _ => true,
        }
    }
}

impl Harm {
    pub fn needs_network(self) -> bool {
        matches!(self, Harm::Isolate | Harm::Deaf | Harm::Mute | Harm::Lossy)
    }

    pub fn needs_disk(self) -> bool {
        use Harm::{FailSync, FillDisk, FreezeDisk, PowerCut, SlowSync};
        matches!(self, PowerCut | FreezeDisk | FillDisk | FailSync | SlowSync)
    }

    /// The server ends by it, or must be restarted after it.
    pub fn ends_server(self) -> bool {
        use Harm::{FailSync, FillDisk, Kill, PowerCut, Stop, Wipe};
        matches!(self, Kill | PowerCut | Stop | Wipe | FillDisk | FailSync)
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Harm::Kill => "kill -9",
            Harm::PowerCut => "power cut",
            Harm::Pause => "SIGSTOP",
            Harm::Stop => "clean stop",
            Harm::Wipe => "disk lost",
            Harm::Isolate => "isolated",
            Harm::Deaf => "hears nobody",
            Harm::Mute => "nobody hears it",
            Harm::Lossy => "slow, lossy links",
            Harm::FreezeDisk => "disk frozen",
            Harm::FillDisk => "disk full",
            Harm::FailSync => "fsync fails",
            Harm::SlowSync => "slow fsync",
            Harm::ClockJump => "clock jumps",
            Harm::Starve => "starved",
        })
    }
}

/// Who is hurt; found out when it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    Node(usize),
    /// Random, as many as may be gone while the rest goes on.
    Minority(u64),
    Leader,
    /// The node that is written to.
    Primary,
    /// A random one that does not lead.
    Follower(u64),
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Hurt(Harm, Victims),
    /// Mends the round's n-th harm, counted from 0.
    Mend(usize),
    Wait(Duration),
    /// Until all nodes are Synced.
    Settle,
}

/// Names of all schedules and what they do.
pub const NAMES: [(&str, &str); 16] = [
    ("none", "nothing fails"),
    ("one", "one random node"),
    ("minority", "as many as may be gone, at once"),
    ("leader", "the leader"),
    ("primary", "the node that is written to"),
    ("all", "all at once"),
    ("staggered", "all, one after the other, within a second"),
    ("rolling", "each node is stopped and started in turn"),
    ("rapid", "one node dies and comes back, again and again, without time to recover"),
    ("joins", "a minority loses its disks, and joins again at once, while another node restarts"),
    ("transfer", "a network or process fault while a node receives the state"),
    ("amid", "a fault in the middle of another"),
    ("partitions", "isolated, deaf and mute nodes, slow and lossy links"),
    ("disks", "frozen, full, failing and slow disks, of the leader and of others"),
    ("clocks", "wall clocks jump, forward and backward, and back again"),
    ("starved", "nodes get a few hundredths of one processor"),
];
