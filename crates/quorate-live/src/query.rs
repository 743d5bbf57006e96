//! Asking a member how it is, from outside the group.

use crate::error::GroupError;
use crate::net::connections::Connections;
use crate::net::dial::{dial, Caller, DialError};
use crate::net::trust::{Credentials, Operators, Security};
use quorate_consensus::MemberId;
use quorate_wire::{Packet, PeerIdentity, Want};
use std::sync::Arc;
use std::time::Duration;

/// What the member at the group address `addr` says of itself: names and values, in the order to
/// show them (see [`crate::GroupStatus::lines`], preceded by name, group, incarnation and
/// addresses, and followed by what an operator ordered last). Waits at most a few seconds for an answer.
pub fn query_status(addr: &str, security: &Security) -> Result<Vec<(String, String)>, GroupError> {
    let connections = Connections::default();
    let identity = PeerIdentity::default();
    let trust = Credentials::read(security, &Operators::default())?.of_process()?;
    let trust = Arc::new(trust);
    let silence = Duration::from_secs(5);
    let caller = Caller { identity, silence, connections: &connections, trust };
    let failed = |error: DialError| GroupError::NoAnswer {
        addr: addr.to_owned(),
        reason: error.to_string(),
    };
    let mut dialled = dial(caller, addr, Want::Status, None).map_err(failed)?;
    match dialled.ask(MemberId(0), &Packet::StatusRequest).map_err(failed)? {
        Packet::StatusReport(lines) => Ok(lines),
        other => Err(GroupError::NoAnswer {
            addr: addr.to_owned(),
            reason: format!("it answers with a packet of type {:?}", other.frame_type()),
        }),
    }
}
