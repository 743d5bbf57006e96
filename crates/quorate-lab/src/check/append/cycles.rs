//! The smallest cycle of each kind, within strongly connected components.
//!
//! | anomaly | its cycle |
//! |---|---|
//! | G0 | ww only |
//! | G1c | ww and at least one wr |
//! | G-single | exactly one rw |
//! | G-nonadjacent | two or more rw, no two of them adjacent |
//! | G2 | two or more rw, some adjacent |
//!
//! A cycle counts as the first of these that it is. Searches begin at each dependency that makes
//! the kind (the wr, the rw) and are breadth-first, so the smallest cycle through it is found. Their
//! number is bounded: a history with thousands of anomalies is not told better by counting all.

use super::graph::{Dependency, Graph, Kind};
use super::{shown, Anomaly, Findings, Txn};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{EdgeIndex, NodeIndex};
use petgraph::visit::EdgeRef;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;

/// Beginnings tried for each kind in each component.
const SEARCHES_MAX: usize = 1000;

type Edge = EdgeIndex<u32>;
type Node = NodeIndex<u32>;

pub(super) fn find(committed: &[Txn], graph: &Graph, findings: &mut Findings) {
    let writes = graph.filter_map(|_, ()| Some(()), |_, edge| only(edge, &[Kind::Ww]));
    search(committed, &writes, findings, Kind::Ww, Path::Any, |_| Anomaly::G0);
    let seen = graph.filter_map(|_, ()| Some(()), |_, edge| only(edge, &[Kind::Ww, Kind::Wr]));
    search(committed, &seen, findings, Kind::Wr, Path::Any, |_| Anomaly::G1c);
    search(committed, graph, findings, Kind::Rw, Path::WithoutRw, |_| Anomaly::GSingle);
    search(committed, graph, findings, Kind::Rw, Path::NonadjacentRw, |_| Anomaly::GNonadjacent);
    search(committed, graph, findings, Kind::Rw, Path::Any, kind_of);
}

fn only(edge: &Dependency, kinds: &[Kind]) -> Option<Dependency> {
    kinds.contains(&edge.kind).then_some(*edge)
}

/// What the rest of a cycle may be made of, after its first dependency.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Any,
    WithoutRw,
    /// At least one rw, none beside another or beside the first dependency.
    NonadjacentRw,
}

/// Finds the smallest cycle through each dependency of kind `first`; `anomaly` names it by its
/// kinds. A cycle that was reported under a stronger name is left out.
fn search(
    committed: &[Txn],
    graph: &Graph,
    findings: &mut Findings,
    first: Kind,
    path: Path,
    anomaly: impl Fn(&[Kind]) -> Anomaly,
) {
    let mut component = HashMap::new();
    for (number, nodes) in kosaraju_scc(graph).into_iter().enumerate() {
        if nodes.len() > 1 {
            component.extend(nodes.into_iter().map(|node| (node, number)));
        }
    }
    let mut searches: HashMap<usize, usize> = HashMap::new();
    let mut found: HashSet<Vec<Node>> = HashSet::new();
    for edge in graph.edge_references().filter(|edge| edge.weight().kind == first) {
        let Some(number) = component.get(&edge.source()) else { continue };
        if component.get(&edge.target()) != Some(number) {
            continue;
        }
        let tried = searches.entry(*number).or_default();
        *tried += 1;
        if *tried > SEARCHES_MAX {
            continue;
        }
        let Some(rest) = shortest(graph, edge.target(), edge.source(), path, |node| {
            component.get(&node) == Some(number)
        }) else {
            continue;
        };
        let cycle: Vec<Edge> = std::iter::once(edge.id()).chain(rest).collect();
        let kinds: Vec<Kind> = cycle.iter().map(|edge| graph[*edge].kind).collect();
        let anomaly = anomaly(&kinds);
        // By `Path::Any` cycles turn up that other searches look for.
        let others = path == Path::Any && first == Kind::Rw && anomaly != Anomaly::G2;
        let mut nodes: Vec<Node> = cycle.iter().map(|edge| source(graph, *edge)).collect();
        nodes.sort_unstable();
        let simple = nodes.windows(2).all(|pair| pair[0] != pair[1]);
        if simple && !others && found.insert(nodes) {
            findings.add(anomaly, told(committed, graph, &cycle));
        }
    }
}

/// The name of a cycle that has an anti-dependency.
pub(super) fn kind_of(kinds: &[Kind]) -> Anomaly {
    let anti = kinds.iter().filter(|kind| **kind == Kind::Rw).count();
    let next = kinds.iter().cycle().skip(1);
    let adjacent = kinds.iter().zip(next).any(|pair| pair == (&Kind::Rw, &Kind::Rw));
    match (anti, adjacent) {
        (1, _) => Anomaly::GSingle,
        (_, true) => Anomaly::G2,
        (_, false) => Anomaly::GNonadjacent,
    }
}

/// Breadth-first from `from` to `to` over nodes `inside`; the state is the node, whether the last
/// dependency was an rw, and whether any was.
fn shortest(
    graph: &Graph,
    from: Node,
    to: Node,
    path: Path,
    inside: impl Fn(Node) -> bool,
) -> Option<Vec<Edge>> {
    type State = (Node, bool, bool);
    // The path follows an rw.
    let start: State = (from, path == Path::NonadjacentRw, false);
    let mut before: HashMap<State, (State, Edge)> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(state) = queue.pop_front() {
        let (node, last, any) = state;
        for edge in graph.edges(node).filter(|edge| inside(edge.target())) {
            let rw = edge.weight().kind == Kind::Rw;
            let next = match path {
                Path::Any => (edge.target(), false, false),
                Path::WithoutRw if rw => continue,
                Path::WithoutRw => (edge.target(), false, false),
                Path::NonadjacentRw if rw && last => continue,
                Path::NonadjacentRw => (edge.target(), rw, any || rw),
            };
            if next == start || before.contains_key(&next) {
                continue;
            }
            before.insert(next, (state, edge.id()));
            // The cycle is closed by an rw.
            let complete = path != Path::NonadjacentRw || (next.2 && !next.1);
            if next.0 == to && complete {
                let mut edges = Vec::new();
                let mut at = next;
                while at != start {
                    let (earlier, edge) = before[&at];
                    edges.push(edge);
                    at = earlier;
                }
                edges.reverse();
                return Some(edges);
            }
            queue.push_back(next);
        }
    }
    None
}

fn source(graph: &Graph, edge: Edge) -> Node {
    graph.edge_endpoints(edge).map_or_else(Node::end, |(source, _)| source)
}

fn told(committed: &[Txn], graph: &Graph, cycle: &[Edge]) -> String {
    let mut text = String::new();
    let keys: Vec<u32> = cycle.iter().map(|edge| graph[*edge].key).collect();
    for (place, edge) in cycle.iter().enumerate() {
        let Dependency { kind, key } = graph[*edge];
        let why = match kind {
            Kind::Ww => "appended the value after its own",
            Kind::Wr => "read its value",
            Kind::Rw => "appended the value after those it read",
        };
        let next = (place + 1) % cycle.len() + 1;
        let operation = shown(committed[source(graph, *edge).index()].operation, &keys);
        // Writing to a string cannot fail.
        let _ = write!(text, "T{} = {operation}\n  list {key}: T{next} {why}\n", place + 1);
    }
    text.pop();
    text
}
