//! Who may connect.

use super::Member;
use crate::output::Output;
use quorate_consensus::{KeyId, MemberId};
use quorate_wire::{Hello, PeerIdentity, Refusal, RefusalCode, Want, Welcome};

/// How to answer a greeting that is welcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub welcome: Welcome,
    /// Of a peer's connection: its number, for [`crate::Input::IncomingClosed`]. It takes the place of
    /// one of the same peer with a lower number.
    pub connection: Option<u64>,
}

impl Member {
    /// The answer to the first packet of a connection.
    pub fn greet(
        &mut self,
        now_ms: u64,
        hello: &Hello,
        out: &mut Output,
    ) -> Result<Greeting, Refusal> {
        self.at(now_ms);
        let greeting = self.welcome(hello, out);
        self.settle(out);
        greeting
    }

    /// Whether a peer that was dialled, and that answered with this, is to be talked to.
    pub fn accepts(&self, found: &PeerIdentity) -> Result<(), Refusal> {
        found.check_names()?;
        self.driver.lineage.check(found)?;
        self.driver.check_key(found)?;
        found.check_level(self.driver.config.level)
    }

    /// Whether `peer` is not at an address where it was dialled (any more), or does not count itself in, because
    /// who showed `key` there refused with this code. Who answers there as another member, too, is an
    /// [`RefusalCode::OtherMember`].
    pub fn shows_absence(&self, peer: MemberId, code: RefusalCode, key: KeyId) -> bool {
        self.driver.shows_absence(peer, code, key)
    }

    /// This member shows `key` on connections from now on. Refused if the others would not take it for this
    /// member: the group knows it by another one.
    pub fn show(&mut self, now_ms: u64, key: KeyId, out: &mut Output) -> Result<(), Refusal> {
        self.at(now_ms);
        let driver = &mut self.driver;
        driver.check_key(&PeerIdentity { key, ..driver.identity() })?;
        driver.options.key = key;
        driver.due = true;
        self.settle(out);
        Ok(())
    }

    fn welcome(&mut self, hello: &Hello, out: &mut Output) -> Result<Greeting, Refusal> {
        let version = self.check(hello, out)?;
        let connection = match hello.want {
            Want::Peer => Some(self.open_incoming(hello, out)?),
            Want::Join | Want::Status => None,
            Want::Operator => {
                let text = "an operator is heard by nobody as a member".to_owned();
                return Err(Refusal { code: RefusalCode::Forbidden, text });
            }
        };
        Ok(Greeting { welcome: Welcome { version, from: self.driver.identity() }, connection })
    }

    fn open_incoming(&mut self, hello: &Hello, out: &mut Output) -> Result<u64, Refusal> {
        let driver = &mut self.driver;
        let from = hello.from.member;
        driver.due = true;
        if driver.is_member(from) {
            driver.lineage.heard(from, hello.from.incarnation);
        } else if driver.peers.is_crowded(&hello.from, !driver.config.members.is_empty()) {
            let text = format!("node {} has too many guests: try again later", driver.options.name);
            return Err(Refusal { code: RefusalCode::Busy, text });
        }
        match driver.peers.incoming_opened(hello.from.clone(), driver.now_ms, out) {
            Ok(connection) => {
                driver.begins_again(from);
                self.standings.forget(from, driver, out);
                Ok(connection)
            }
            Err(other) => {
                let text = format!(
                    "member {from} is connected from {other} already: two nodes must not run with \
                     copies of one log directory; empty that of one of them"
                );
                Err(Refusal { code: RefusalCode::Stale, text })
            }
        }
    }

    /// Whether this connection is welcome, and the protocol version on it.
    fn check(&mut self, hello: &Hello, out: &mut Output) -> Result<u16, Refusal> {
        let refuse = |code, text: String| Err(Refusal { code, text });
        let version = hello.agree()?;
        if hello.want == Want::Status {
            return Ok(version);
        }
        let Self { driver, alone, .. } = self;
        let (own, from) = (driver.identity(), &hello.from);
        if from.member == own.member {
            return refuse(RefusalCode::Yourself, "this is the dialling member itself".into());
        }
        if driver.closed || driver.failed {
            return refuse(RefusalCode::Busy, format!("node {} is out of service", own.name));
        }
        if alone.is_isolated() {
            alone.renounce(&driver.applied, driver.status().term);
            let text = format!("node {} is isolated by its operator", own.name);
            return refuse(RefusalCode::Isolated, text);
        }
        if from.group_name != own.group_name {
            let text = format!(
                "node {} is of group '{}', not of '{}'",
                own.name, own.group_name, from.group_name
            );
            return refuse(RefusalCode::OtherGroup, text);
        }
        if from.group != own.group && from.group != 0 && own.group != 0 {
            let text = format!(
                "node {} belongs to group {:032x}, not to {:032x}, though both are named '{}'; a \
                 node that is to change groups needs an empty log directory",
                own.name, own.group, from.group, own.group_name
            );
            return refuse(RefusalCode::OtherGroup, text);
        }
        from.check_names()?;
        driver.lineage.check(from)?;
        driver.check_key(from)?;
        from.check_level(driver.config.level)?;
        if hello.expects.is_some_and(|expected| expected != own.member) {
            let text =
                format!("here is member {} ({}), not the one expected", own.member, own.name);
            return refuse(RefusalCode::OtherMember, text);
        }
        if hello.want == Want::Peer && own.group == 0 {
            // Only a leader that has admitted this member knows its id.
            if hello.expects.is_none() || from.group == 0 {
                let text = format!("node {} belongs to no group yet", own.name);
                return refuse(RefusalCode::Busy, text);
            }
            driver.adopt_group(from, out);
        }
        Ok(version)
    }
}
