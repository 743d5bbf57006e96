//! How an order is carried out: the member, or the leader that it knows, does it. Blocks as long as a hand-over or a
//! commit takes.

use crate::http::Serving;
use crate::journal::Said;
use axum::http::StatusCode;
use quorate_live::port::{Answer, Request, Why};
use serde::Deserialize;

/// As Patroni takes it: who leads now, if that matters, and who is to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switchover {
    pub leader: Option<String>,
    #[serde(alias = "member")]
    pub candidate: Option<String>,
    pub scheduled_at: Option<String>,
}

/// At once.
pub fn hand_over(serving: &Serving, order: &Switchover) -> Said {
    if let Err(refused) = check_leader(serving, order.leader.as_deref()) {
        return refused;
    }
    carry_out(serving, &Request::Switchover { to: order.candidate.clone() })
}

/// Refuses what is for another leader than there is; without a name it is for any.
pub fn check_leader(serving: &Serving, leader: Option<&str>) -> Result<(), Said> {
    let known = serving.memory.known();
    let leads = known.fresh.as_ref().and_then(|report| report.leading());
    let leads = leads.map(|leader| leader.name.as_str());
    if leader.is_some() && leader != leads {
        let what = format!("{} leads, nothing was done", leads.unwrap_or("nobody"));
        return Err((StatusCode::PRECONDITION_FAILED, what));
    }
    Ok(())
}

pub fn carry_out(serving: &Serving, request: &Request) -> Said {
    match serving.operating.order(&serving.member, request).map(|(_, asked)| asked.answer) {
        Ok(Answer::Leads { name }) => (StatusCode::OK, format!("{name} leads now")),
        Ok(Answer::Done) => (StatusCode::OK, "done".to_owned()),
        Ok(Answer::Refused(refused)) => {
            let code = match refused.why {
                Why::Permission => StatusCode::FORBIDDEN,
                Why::NoLeader | Why::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::PRECONDITION_FAILED,
            };
            (code, refused.reason)
        }
        Ok(other) => {
            (StatusCode::BAD_GATEWAY, format!("the member answers something else: {other:?}"))
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    }
}
