//! Who may look at a member, and order it about, without being one.
//!
//! | security | an operator shows |
//! |---|---|
//! | a secret | a credential that is made of the secret (`credential`) |
//! | certificates | a certificate of the CA for a name that the list of operators has |
//! | this host, none | nothing: whoever connects is `anonymous` |
//!
//! The list of a member (`quorate.operators`) says whom of them it takes. It never gives more than what was
//! shown.

use std::fmt;
use std::str::FromStr;

/// Who shows nothing, where nothing is to be shown.
const ANONYMOUS: &str = "anonymous";
const NONE: &str = "none";
const READ: &str = "read";
const ALL: &str = "all";
const NAME_BYTES_MAX: usize = 64;

/// What somebody may do who is no member. In this order: each may do what those before it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Privilege {
    /// See how the group is.
    Read = 1,
    /// Give orders, too.
    All = 2,
}

/// Somebody who is no member, as a connection has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperatorId {
    pub name: String,
    pub privilege: Privilege,
}

/// Whom a member takes of those who have shown who they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Operators {
    /// With certificates, that is nobody: which of the CA's are operators', only a list can say.
    #[default]
    Everybody,
    /// These, and with no more than this.
    Listed(Vec<OperatorId>),
}

impl Privilege {
    pub fn word(self) -> &'static str {
        match self {
            Privilege::Read => READ,
            Privilege::All => ALL,
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Privilege> {
        [Privilege::Read, Privilege::All].into_iter().find(|each| each.word() == word)
    }

    pub(super) fn of_code(code: u8) -> Option<Privilege> {
        [Privilege::Read, Privilege::All].into_iter().find(|each| *each as u8 == code)
    }
}

impl OperatorId {
    /// Where nobody has to show anything.
    pub fn anonymous() -> OperatorId {
        OperatorId { name: ANONYMOUS.to_owned(), privilege: Privilege::All }
    }
}

impl Operators {
    /// What is left of the right of somebody who has shown this; `None`: it is not let in.
    pub fn admit(&self, shown: &OperatorId) -> Option<OperatorId> {
        let Operators::Listed(list) = self else { return Some(shown.clone()) };
        let listed = list.iter().find(|each| each.name == shown.name)?;
        let privilege = listed.privilege.min(shown.privilege);
        Some(OperatorId { privilege, ..shown.clone() })
    }

    /// Those that are named.
    pub fn listed(&self) -> &[OperatorId] {
        match self {
            Operators::Everybody => &[],
            Operators::Listed(list) => list,
        }
    }
}

/// `NAME[:read],...`, `none`, or nothing at all.
impl FromStr for Operators {
    type Err = String;

    fn from_str(text: &str) -> Result<Operators, String> {
        let text = text.trim();
        match text {
            "" => return Ok(Operators::Everybody),
            NONE => return Ok(Operators::Listed(Vec::new())),
            _ => {}
        }
        let mut list: Vec<OperatorId> = Vec::new();
        for word in text.split(',').map(str::trim) {
            let (name, privilege) = match word.strip_suffix(":read") {
                Some(name) => (name, Privilege::Read),
                None => (word, Privilege::All),
            };
            check_listed(name)?;
            if list.iter().any(|each| each.name == name) {
                return Err(format!("{name} stands in it twice"));
            }
            list.push(OperatorId { name: name.to_owned(), privilege });
        }
        Ok(Operators::Listed(list))
    }
}

/// As it is parsed.
impl fmt::Display for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operators::Listed(list) = self else { return Ok(()) };
        if list.is_empty() {
            return f.write_str(NONE);
        }
        let words = list.iter().map(|each| match each.privilege {
            Privilege::Read => format!("{}:{READ}", each.name),
            Privilege::All => each.name.clone(),
        });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

/// What a credential is for; a certificate's names may also be IPv6 addresses.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
        return Err(format!(
            "{name:?} is no name of an operator: 1 to {NAME_BYTES_MAX} letters, digits and ._-@"
        ));
    }
    match name {
        ANONYMOUS | NONE => Err(format!("{name:?} means something else: choose another name")),
        _ => Ok(()),
    }
}

fn check_listed(name: &str) -> Result<(), String> {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    if is_address || name == ANONYMOUS {
        return Ok(());
    }
    check_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Operators {
        text.parse().unwrap()
    }

    fn shown(name: &str, privilege: Privilege) -> OperatorId {
        OperatorId { name: name.to_owned(), privilege }
    }

    #[test]
    fn a_list_takes_and_never_gives() {
        let list = listed("ann, bob:read");
        let left = |name, privilege| list.admit(&shown(name, privilege)).map(|left| left.privilege);
        assert_eq!(left("ann", Privilege::All), Some(Privilege::All));
        assert_eq!(left("ann", Privilege::Read), Some(Privilege::Read));
        assert_eq!(left("bob", Privilege::All), Some(Privilege::Read));
        assert_eq!(left("eve", Privilege::All), None);
        assert_eq!(listed("none").admit(&OperatorId::anonymous()), None);
        assert_eq!(listed("").admit(&OperatorId::anonymous()), Some(OperatorId::anonymous()));
        assert!(Privilege::Read < Privilege::All);
    }

    #[test]
    fn a_list_is_shown_as_it_is_read() {
        for text in ["", "none", "ann,bob:read", "anonymous:read", "db1.example.com,fe80::1:read"] {
            assert_eq!(listed(text).to_string(), text);
        }
        for bad in ["ann,", "a b", "ann,ann:read", "ann:write", "none,ann", &"x".repeat(65)] {
            assert!(bad.parse::<Operators>().is_err(), "{bad}");
        }
    }
}
