//! The thread that asks others for admission, one question of the machine at a time.

use crate::live::Live;
use crate::net::dial::{dial, DialError};
use quorate_group::{Ask, AskAnswer, Input};
use quorate_wire::{Packet, Want};

pub(crate) fn run(live: &Live) {
    while let Some(ask) = live.hands.asks.next() {
        let answer = answer(live, &ask).unwrap_or_else(|error| match error {
            DialError::Refused { refusal, key } => AskAnswer::Refused { refusal, key },
            other => AskAnswer::Failed { reason: other.to_string() },
        });
        live.step(Input::Asked { addr: ask.addr, answer });
    }
}

fn answer(live: &Live, ask: &Ask) -> Result<AskAnswer, DialError> {
    let mut dialled = dial(live.caller(), &ask.addr, Want::Join, None)?;
    if dialled.plain {
        live.warn_plain(&format!("the connection to {}, which is asked for admission,", ask.addr));
    }
    let from = dialled.welcome.from.clone();
    if from.member == live.id {
        let reason = "it says that it is this member itself".to_owned();
        return Ok(AskAnswer::Failed { reason });
    }
    if ask.agree && from.group != 0 {
        if let Err(reason) = live.observer.may_join(from.group, from.charter) {
            return Ok(AskAnswer::Objection { from, reason });
        }
    }
    let question = Packet::JoinRequest(ask.request.clone());
    Ok(match dialled.ask(live.id, &question)? {
        Packet::Admission(admission) => AskAnswer::Admission { from, admission },
        other => {
            let kind = other.frame_type();
            AskAnswer::Failed { reason: format!("answered with a packet of type {kind:?}") }
        }
    })
}
