//! The credential of an operator, where members know each other by a secret: made of the secret, its name
//! and its privilege, so every member can check it, and none has to be told of it.
//!
//! ```text
//! # any comment
//! quorate-operator-1 NAME read|all 64 hexadecimal digits, 8 more to notice what was copied wrong
//! ```
//!
//! Invariant: from a credential follows neither the secret nor another credential (HMAC-SHA-256, and the
//! secret has 256 bits); and what a member proves itself with is made otherwise, so it makes no member.

use super::hex::{digits, parse_digits};
use super::operators::{check_name, OperatorId, Privilege};
use super::secret::{read_private, write_private, Secret, Secrets};
use crate::error::GroupError;
use graviola::hashing::hmac::Hmac;
use graviola::hashing::{Hash, Sha256};
use std::fmt;
use std::path::Path;

const KEY_BYTES: usize = 32;
const DOMAIN: &[u8] = b"quorate operator, credential";
const PREFIX: &str = "quorate-operator-1";
const CHECK_DIGITS: usize = 8;

/// Who has it is this operator.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    operator: OperatorId,
    key: [u8; KEY_BYTES],
}

impl Credential {
    /// Of the group with the secret in this file (the first, where there are two).
    pub fn derive(
        name: &str,
        privilege: Privilege,
        secrets: &Path,
    ) -> Result<Credential, GroupError> {
        check_name(name).map_err(|reason| GroupError::OperatorName { reason })?;
        super::check_processor()?;
        let operator = OperatorId { name: name.to_owned(), privilege };
        Ok(Credential::of(operator, Secrets::read(secrets)?.own()))
    }

    pub(super) fn of(operator: OperatorId, secret: &Secret) -> Credential {
        let OperatorId { name, privilege } = &operator;
        let mut hmac = Hmac::<Sha256>::new(secret.bytes());
        hmac.update(DOMAIN);
        hmac.update([*privilege as u8]);
        hmac.update((name.len() as u64).to_le_bytes());
        hmac.update(name.as_bytes());
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(hmac.finish().as_ref());
        Credential { operator, key }
    }

    /// Reads a file of one.
    pub fn read(path: &Path) -> Result<Credential, GroupError> {
        let bad = |reason| GroupError::OperatorFile { path: path.to_owned(), reason };
        Credential::parse(&read_private(path).map_err(bad)?).map_err(bad)
    }

    /// Makes a file of it, for its owner alone. One that is there already stays as it is.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let name = &self.operator.name;
        let head = format!(
            "# The credential of operator {name} of a Quorate group: for {name} alone, like a password."
        );
        write_private(path, &format!("{head}\n{}\n", self.line()))
    }

    pub fn operator(&self) -> &OperatorId {
        &self.operator
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    fn line(&self) -> String {
        let OperatorId { name, privilege } = &self.operator;
        let said = format!("{PREFIX} {name} {} {}", privilege.word(), digits(&self.key));
        format!("{said} {}", check_of(&said))
    }

    /// The text of a file. It is one line, beside comments.
    pub fn parse(text: &str) -> Result<Credential, String> {
        let lines = text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let form = || {
            "it is not a credential of an operator ('quorate operator new' makes one)".to_owned()
        };
        let (Some(line), None) = (lines.next(), lines.next()) else { return Err(form()) };
        let (said, check) = line.rsplit_once(' ').ok_or_else(form)?;
        let words: Vec<&str> = said.split(' ').collect();
        let [PREFIX, name, privilege, key] = words[..] else { return Err(form()) };
        if check != check_of(said) {
            return Err("it was changed, or copied in part: copy it again, or make it anew".into());
        }
        check_name(name)?;
        let privilege = Privilege::of_word(privilege).ok_or_else(form)?;
        let key = parse_digits(key).ok_or_else(form)?;
        Ok(Credential { operator: OperatorId { name: name.to_owned(), privilege }, key })
    }
}

/// Nothing of it gets into a log.
impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Credential({:?})", self.operator)
    }
}

fn check_of(said: &str) -> String {
    let mut check = digits(Sha256::hash(said.as_bytes()).as_ref());
    check.truncate(CHECK_DIGITS);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(name: &str, privilege: Privilege) -> OperatorId {
        OperatorId { name: name.to_owned(), privilege }
    }

    #[test]
    fn each_secret_name_and_privilege_makes_another_one() {
        let (one, other) = (Secret::new().unwrap(), Secret::new().unwrap());
        let key = |name, privilege, secret| Credential::of(operator(name, privilege), secret).key;
        let ann = key("ann", Privilege::All, &one);
        assert_eq!(ann, key("ann", Privilege::All, &one));
        for else_ in [
            key("ann", Privilege::Read, &one),
            key("bob", Privilege::All, &one),
            key("ann", Privilege::All, &other),
        ] {
            assert_ne!(ann, else_);
        }
        assert_ne!(&ann[..], one.bytes());
    }

    #[test]
    fn what_is_written_is_read_and_what_was_changed_is_refused() {
        let secret = Secret::new().unwrap();
        let credential = Credential::of(operator("ann", Privilege::Read), &secret);
        let line = credential.line();
        assert_eq!(Credential::parse(&format!("# x\n\n {line}\r\n")).unwrap(), credential);
        let told = |text: &str| Credential::parse(text).unwrap_err();
        assert!(told(&line.replace("read", "all")).contains("was changed"));
        assert!(told(&line.replace("ann", "bob")).contains("was changed"));
        assert!(told(&line[..line.len() - 1]).contains("was changed"));
        assert!(told(&format!("{line}\n{line}")).contains("not a credential"));
        assert!(told(&"0".repeat(64)).contains("not a credential"), "the secret itself");
        let shown = format!("{credential:?}");
        assert!(!shown.contains(&digits(&credential.key)[..8]) && shown.contains("ann"));
    }
}
