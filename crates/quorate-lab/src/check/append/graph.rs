//! Dependencies between committed transactions.
//!
//! * ww: one appended a value, the other the next one of the same list;
//! * wr: one appended the value that the other read last;
//! * rw: one read a list up to a value, the other appended the next.
//!
//! Only direct ones: what follows later in a list is reached through them.

use super::versions::{external_reads, Versions};
use super::Txn;
use petgraph::graph::{DiGraph, NodeIndex};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Ww,
    Wr,
    Rw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    pub kind: Kind,
    /// The list by which it is known.
    pub key: u32,
}

/// Nodes are places among the committed transactions.
pub(super) type Graph = DiGraph<(), Dependency, u32>;

pub(super) fn build(committed: &[Txn], versions: &Versions) -> Graph {
    let mut graph = Graph::with_capacity(committed.len(), committed.len() * 4);
    for _ in committed {
        graph.add_node(());
    }
    let writer = |key: u32, place: usize| {
        let value = versions.orders.get(&key)?.get(place)?;
        versions.writers.get(&(key, *value))?.committed
    };
    for (key, order) in &versions.orders {
        for place in 1..order.len() {
            connect(&mut graph, writer(*key, place - 1), writer(*key, place), Kind::Ww, *key);
        }
    }
    for (reader, txn) in committed.iter().enumerate() {
        for (key, list) in external_reads(txn.steps) {
            let next = match list.last() {
                None => 0,
                Some(value) => match versions.places.get(&(key, *value)) {
                    Some(place) => {
                        connect(&mut graph, writer(key, *place), Some(reader), Kind::Wr, key);
                        place + 1
                    }
                    // In no order: reported as an incompatible one.
                    None => continue,
                },
            };
            connect(&mut graph, Some(reader), writer(key, next), Kind::Rw, key);
        }
    }
    graph
}

fn connect(graph: &mut Graph, from: Option<usize>, to: Option<usize>, kind: Kind, key: u32) {
    if let (Some(from), Some(to)) = (from, to) {
        if from != to {
            graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), Dependency { kind, key });
        }
    }
}
