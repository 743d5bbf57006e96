//! Members die, return and lose their disks at random under load: whatever was acknowledged is
//! there in the end, once, in the same order everywhere. `QUORATE_CHAOS_SEED` and
//! `QUORATE_CHAOS_STEPS` choose another or a longer run.

mod common;

use common::Cluster;
use std::time::Duration;

const NODES: usize = 5;

#[test]
fn acknowledged_proposals_survive_random_deaths() {
    let seed = from_env("QUORATE_CHAOS_SEED", 1);
    let steps = from_env("QUORATE_CHAOS_STEPS", 40);
    println!("seed {seed}, {steps} steps");
    let mut noise = Noise(seed);
    let mut cluster = Cluster::started(&format!("chaos{seed}"), NODES);
    // Nobody is to found a second group after losing its disk.
    cluster.nodes[0].options.bootstrap = false;
    let mut acknowledged: Vec<String> = Vec::new();
    let mut outstanding: Vec<Vec<String>> = vec![Vec::new(); NODES];

    for _ in 0..steps {
        for (node, outstanding) in cluster.nodes.iter().zip(&mut outstanding) {
            if node.group.is_some() {
                let bytes = if noise.below(20) == 0 { 200_000 } else { 100 };
                outstanding.extend((0..5).map(|_| node.propose_padded(bytes)));
            }
        }
        std::thread::sleep(Duration::from_millis(noise.below(120)));
        let at = noise.below(NODES as u64) as usize;
        let dead = cluster.nodes.iter().filter(|node| node.group.is_none()).count();
        if cluster.nodes[at].group.is_none() {
            cluster.nodes[at].start().unwrap();
        } else if dead < NODES / 2 {
            let seen = cluster.nodes[at].shared.clone();
            cluster.nodes[at].kill();
            let proposed = std::mem::take(&mut outstanding[at]);
            let applied = seen.state.lock().applied.clone();
            acknowledged.extend(proposed.into_iter().filter(|text| applied.contains(text)));
            // A disk is lost only while all others are whole: one copy of each entry less.
            if dead == 0 && noise.below(3) == 0 {
                let whole: Vec<_> = (0..NODES).filter(|other| *other != at).collect();
                for other in &whole {
                    cluster.nodes[*other].await_applied(&acknowledged);
                }
                cluster.nodes[at].wipe();
                cluster.nodes[at].start().unwrap();
                cluster.await_members(&(0..NODES).collect::<Vec<_>>());
            }
        }
    }
    for node in &mut cluster.nodes {
        if node.group.is_none() {
            node.start().unwrap();
        }
    }
    cluster.await_members(&(0..NODES).collect::<Vec<_>>());
    acknowledged.extend(outstanding.into_iter().flatten());
    cluster.await_applied(&acknowledged);
    println!("{} acknowledged", acknowledged.len());
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// splitmix64
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
