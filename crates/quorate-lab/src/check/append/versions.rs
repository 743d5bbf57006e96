//! The order of each list's values, from the longest read of it, and what contradicts it.

use super::{shown, steps, Anomaly, Findings, Txn};
use crate::history::{Operation, Outcome, Step};
use std::collections::HashMap;

/// A list's key and one of its values.
type Element = (u32, u64);

pub(super) struct Versions<'a> {
    /// The order in which values came to each list, as far as reads show it.
    pub orders: HashMap<u32, Vec<u64>>,
    /// The place of each value in its order.
    pub places: HashMap<Element, usize>,
    /// Who appended it.
    pub writers: HashMap<Element, Writer<'a>>,
}

#[derive(Clone, Copy)]
pub(super) struct Writer<'a> {
    pub operation: &'a Operation,
    /// Its place among the committed transactions, if it is one.
    pub committed: Option<usize>,
    /// False if the same transaction appended another value to the list later.
    last: bool,
}

impl<'a> Versions<'a> {
    pub fn of(
        history: &'a [Operation],
        committed: &[Txn<'a>],
        findings: &mut Findings,
    ) -> Versions<'a> {
        let mut versions =
            Versions { orders: HashMap::new(), places: HashMap::new(), writers: writers(history) };
        for (place, txn) in committed.iter().enumerate() {
            for element in appends(txn.steps) {
                if let Some(writer) = versions.writers.get_mut(&element) {
                    writer.committed = Some(place);
                }
            }
        }
        versions.order(committed, findings);
        for txn in committed {
            versions.check_reads(txn, findings);
            check_internal(txn, findings);
        }
        versions.check_lost_updates(committed, findings);
        versions
    }

    fn order(&mut self, committed: &[Txn], findings: &mut Findings) {
        let mut longest: HashMap<u32, (&[u64], &Operation)> = HashMap::new();
        for (txn, key, list) in reads(committed) {
            let known = longest.entry(key).or_insert((list, txn.operation));
            if list.len() > known.0.len() {
                *known = (list, txn.operation);
            }
        }
        for (txn, key, list) in reads(committed) {
            let (order, other) = longest[&key];
            if !order.starts_with(list) {
                let (one, other) = (shown(txn.operation, &[key]), shown(other, &[key]));
                let evidence = format!("list {key}:\n{one}\n{other}");
                findings.add(Anomaly::IncompatibleOrder, evidence);
            }
        }
        for (key, (order, operation)) in longest {
            for (place, value) in order.iter().enumerate() {
                if self.places.insert((key, *value), place).is_some() {
                    let reader = shown(operation, &[key]);
                    let evidence = format!("list {key} has {value} twice: {reader}");
                    findings.add(Anomaly::Repeated, evidence);
                }
            }
            self.orders.insert(key, order.to_vec());
        }
    }

    /// Aborted and intermediate reads, and values from nowhere.
    fn check_reads(&self, txn: &Txn, findings: &mut Findings) {
        for (key, list) in lists(txn.steps) {
            for value in list {
                match self.writers.get(&(key, *value)) {
                    None => findings.add(
                        Anomaly::Invented,
                        format!("list {key}: {value} in {}", txn.operation),
                    ),
                    Some(writer) if writer.operation.outcome == Outcome::Fail => findings.add(
                        Anomaly::G1a,
                        format!(
                            "list {key}: {value}\n{}\n{}",
                            writer.operation,
                            shown(txn.operation, &[key])
                        ),
                    ),
                    Some(_) => {}
                }
            }
            let last = list.last().and_then(|value| self.writers.get(&(key, *value)));
            if let Some(writer) = last {
                if !writer.last && !std::ptr::eq(writer.operation, txn.operation) {
                    let reader = shown(txn.operation, &[key]);
                    let evidence = format!("list {key}:\n{}\n{reader}", writer.operation);
                    findings.add(Anomaly::G1b, evidence);
                }
            }
        }
    }

    /// Two that read the same version of a list and both appended to it.
    fn check_lost_updates(&self, committed: &[Txn], findings: &mut Findings) {
        let mut updates: HashMap<(u32, Option<u64>), &Operation> = HashMap::new();
        for txn in committed {
            for (key, list) in external_reads(txn.steps) {
                let writes = appends(txn.steps).any(|(written, _)| written == key);
                // What nobody saw in the list is lost in another way, and told of there.
                if !writes || !self.orders.contains_key(&key) {
                    continue;
                }
                let version = (key, list.last().copied());
                if let Some(other) = updates.insert(version, txn.operation) {
                    let evidence = format!("list {key}:\n{other}\n{}", txn.operation);
                    findings.add(Anomaly::LostUpdate, evidence);
                }
            }
        }
    }

    /// What was acknowledged is in the final reads.
    pub fn check_durable(&self, history: &[Operation], findings: &mut Findings) {
        let finals = super::super::finals(history).filter_map(|read| Some((read, steps(read)?)));
        for (read, steps) in finals {
            let lists: HashMap<u32, &[u64]> = lists(steps).collect();
            for (element, writer) in &self.writers {
                let (key, value) = element;
                if writer.operation.outcome != Outcome::Ok {
                    continue;
                }
                // A list may have become too many to be read at the end: then nothing is claimed.
                if lists.get(key).is_some_and(|list| !list.contains(value)) {
                    let evidence = format!(
                        "node {}: list {key} lacks {value}: {}",
                        read.node, writer.operation
                    );
                    findings.add(Anomaly::Lost, evidence);
                }
            }
        }
    }
}

fn writers(history: &[Operation]) -> HashMap<Element, Writer<'_>> {
    let mut writers: HashMap<Element, Writer> = HashMap::new();
    for operation in history {
        let mut latest: HashMap<u32, u64> = HashMap::new();
        for (key, value) in appends(steps(operation).unwrap_or_default()) {
            if let Some(earlier) = latest.insert(key, value) {
                if let Some(writer) = writers.get_mut(&(key, earlier)) {
                    writer.last = false;
                }
            }
            writers.insert((key, value), Writer { operation, committed: None, last: true });
        }
    }
    writers
}

/// A transaction reads what it read before and what it appended since.
fn check_internal(txn: &Txn, findings: &mut Findings) {
    // Per list: what is known of it, and whether that is all of it or only its end.
    let mut known: HashMap<u32, (bool, Vec<u64>)> = HashMap::new();
    for step in txn.steps {
        match step {
            Step::Append { key, value } => known.entry(*key).or_default().1.push(*value),
            Step::Read { key, list: Some(list) } => {
                let (whole, values) = known.entry(*key).or_default();
                let fits = if *whole { list == values } else { list.ends_with(values) };
                if !fits {
                    let whole = shown(txn.operation, &[*key]);
                    findings.add(Anomaly::Internal, format!("list {key}: {whole}"));
                }
                *whole = true;
                values.clone_from(list);
            }
            Step::Read { list: None, .. } => {}
        }
    }
}

pub(super) fn appends(steps: &[Step]) -> impl Iterator<Item = Element> + '_ {
    steps.iter().filter_map(|step| match step {
        Step::Append { key, value } => Some((*key, *value)),
        Step::Read { .. } => None,
    })
}

fn lists(steps: &[Step]) -> impl Iterator<Item = (u32, &[u64])> + '_ {
    steps.iter().filter_map(|step| match step {
        Step::Read { key, list: Some(list) } => Some((*key, list.as_slice())),
        _ => None,
    })
}

fn reads<'t>(committed: &'t [Txn]) -> impl Iterator<Item = (&'t Txn<'t>, u32, &'t [u64])> {
    committed.iter().flat_map(|txn| lists(txn.steps).map(move |(key, list)| (txn, key, list)))
}

/// The version of each list that others left for this transaction: its first read of it, without
/// what it appended itself before.
pub(super) fn external_reads(steps: &[Step]) -> Vec<(u32, &[u64])> {
    let mut found: Vec<(u32, &[u64])> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let Step::Read { key, list: Some(list) } = step else { continue };
        if found.iter().any(|(known, _)| known == key) {
            continue;
        }
        let own = appends(&steps[..place]).filter(|(written, _)| written == key).count();
        found.push((*key, &list[..list.len().saturating_sub(own)]));
    }
    found
}
