//! Clients at once, each with a connection of its own, that do one kind of transaction while something else
//! goes on.
//!
//! Invariant: a transaction counts as done once the server said so. One that ended in a conflict is noted
//! as that; any other error is one of the measurement.

use super::beside::beside;
use crate::fleet::Fleet;
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use quorate_lab::random::Random;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Lock wait timeout, deadlock, record changed: an application does the transaction again.
pub const CONFLICTS: [u16; 3] = [1205, 1213, 1020];

/// What waits behind something large is not to be given up.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A transaction that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Where the client was connected.
    pub member: usize,
    pub at: Instant,
    pub took: Duration,
    /// None: it is committed.
    pub conflict: Option<u16>,
}

/// Runs `count` clients, spread over `members`, for as long as `act` takes. What they have done is in no
/// order.
pub fn during<T>(
    fleet: &Fleet,
    (count, members): (u32, &[usize]),
    transaction: impl Fn(&mut Conn, &mut Random) -> mysql::Result<()> + Sync,
    act: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<Ended>)> {
    ensure!(!members.is_empty(), "there is no member for clients");
    let places = members.iter().copied().cycle().take(count as usize);
    let clients: Vec<(usize, Conn)> = places
        .map(|member| Ok((member, fleet.connect_for(member, TIMEOUT)?)))
        .collect::<Result<_>>()?;
    let transaction = &transaction;
    let client = |(number, (member, mut connection)): (usize, (usize, Conn))| {
        move |over: &AtomicBool| -> Result<Vec<Ended>> {
            let mut random = Random::seeded(number as u64);
            let mut ended = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let one =
                    one(&mut connection, member, |connection| transaction(connection, &mut random));
                ended.push(one.with_context(|| format!("a client at node{}", member + 1))?);
            }
            Ok(ended)
        }
    };
    let (acted, ended) = beside(clients.into_iter().enumerate().map(client), act);
    Ok((acted?, ended.into_iter().collect::<Result<Vec<_>>>()?.concat()))
}

fn one(
    connection: &mut Conn,
    member: usize,
    transaction: impl FnOnce(&mut Conn) -> mysql::Result<()>,
) -> Result<Ended> {
    let begin = Instant::now();
    let conflict = match transaction(connection) {
        Ok(()) => None,
        Err(mysql::Error::MySqlError(error)) if CONFLICTS.contains(&error.code) => {
            // Some of them end the statement only.
            connection.query_drop("ROLLBACK")?;
            Some(error.code)
        }
        Err(error) => return Err(error.into()),
    };
    let at = Instant::now();
    Ok(Ended { member, at, took: at - begin, conflict })
}
