//! The domain of the GTIDs that the servers' binary logs give replicated transactions.
//!
//! All servers of a group are to use the same one, or what replicates from them cannot go over from one
//! to another. A server learns it in a state transfer, and only there (Galera runs the transfer's script
//! where a log is enough, too): one that continues from logs uses domain 0, whatever is configured,
//! unless it was started with a position that names the domain. So the node notes the domain with the
//! position of its database, and hands it to the server before the database is opened. A state transfer
//! overrides it, with the donor's.

use crate::host::GtidDomain;
use crate::local::Local;
use crate::start::grastate::Grastate;
use crate::start::UnusableNote;

/// Before the server takes in anything of the group. `founding`: it is told to begin a cluster.
pub fn settle(local: &Local, founding: bool) -> Result<(), UnusableNote> {
    let Some(server) = local.host.gtid_domain() else { return Ok(()) };
    let id = choose(server, Grastate::read(&local.config.data_dir)?.as_ref(), founding);
    let name = local.config.words.gtid_domain;
    if server.configured != 0 && server.configured != id {
        local.warn(&format!(
            "{name} = {id} is what this database was last written with, as part of its group, and \
             what holds; {} is configured, and does not count. Nothing is wrong with the data. \
             Configure {id} here, too. To change it for the group, set the variable on each \
             running node, while nothing is written",
            server.configured
        ));
    }
    if (GtidDomain { configured: id, used: id }) == server {
        return Ok(());
    }
    local.host.set_gtid_domain(id);
    match local.host.gtid_domain() {
        Some(now) if now.used == id => local.info(&format!("GTIDs are written with {name} = {id}")),
        _ => local.warn(&format!(
            "This server does not take over {name} = {id}: the GTIDs in its binary log may differ \
             from those of other nodes; the data does not. Give it the value with SET GLOBAL, and \
             tell the developers which version of the server this is"
        )),
    }
    Ok(())
}

/// What the last clean stop noted is the newest. After a crash the position that the server was started
/// with is newer than the note. A founder begins with what is configured, as the server has it.
fn choose(server: GtidDomain, saved: Option<&Grastate>, founding: bool) -> u32 {
    let GtidDomain { configured, used } = server;
    let noted = saved.and_then(|saved| saved.gtid_domain);
    let stopped = saved.is_some_and(|saved| saved.position.seqno >= 0);
    match noted {
        _ if founding && configured != 0 => configured,
        Some(id) if stopped || used == 0 => id,
        _ if used != 0 => used,
        _ => configured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::Position;

    fn saved(seqno: i64, gtid_domain: Option<u32>) -> Option<Grastate> {
        let position = Position { uuid: 1, seqno };
        Some(Grastate { position, safe_to_bootstrap: false, group: 1, gtid_domain })
    }

    #[test]
    fn the_newest_that_is_known_counts() {
        let server = |configured, used| GtidDomain { configured, used };
        let chosen = |server, saved: Option<Grastate>| choose(server, saved.as_ref(), false);
        assert_eq!(chosen(server(7, 0), None), 7, "a first start");
        assert_eq!(chosen(server(0, 0), saved(5, Some(7))), 7, "a clean stop");
        assert_eq!(chosen(server(8, 9), saved(5, Some(7))), 7, "a clean stop, with a position");
        assert_eq!(chosen(server(8, 0), saved(5, Some(0))), 0, "domain 0 is one, too");
        assert_eq!(chosen(server(0, 9), saved(-1, Some(7))), 9, "a crash, with a position");
        assert_eq!(chosen(server(8, 0), saved(-1, Some(7))), 7, "a crash, without a position");
        assert_eq!(chosen(server(8, 9), saved(5, None)), 9, "a file of another provider");
    }

    #[test]
    fn a_founder_begins_with_what_is_configured() {
        let server = |configured| GtidDomain { configured, used: 9 };
        assert_eq!(choose(server(8), saved(5, Some(7)).as_ref(), true), 8);
        assert_eq!(choose(server(0), saved(5, Some(7)).as_ref(), true), 7);
    }
}
