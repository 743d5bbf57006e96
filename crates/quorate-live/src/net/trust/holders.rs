//! Whose a certificate of the CA is: a member's or an operator's.
//!
//! Invariant: nobody is both. A certificate for an operator's name makes no member, and one that also has a
//! member's name makes neither; of the two lists, no name stands in both.
//!
//! A certificate has a name only if the name stands in it as it stands in the list, in small letters or capitals. As
//! clients check servers, `*.example.com` would have the names of all hosts of the domain, and whoever runs the
//! company's web server would be a member.

use super::names::key_of;
use super::operators::{OperatorId, Operators};
use super::x509::{AltName, Contents};
use crate::error::GroupError;
use quorate_consensus::KeyId;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::Error;

/// Whose a certificate is.
pub(crate) enum Holder {
    /// And what the group knows the member by.
    Member(KeyId),
    Operator(OperatorId),
}

#[derive(Debug)]
pub(crate) struct Holders {
    /// Taken as they are, whatever names they have.
    trusted: Vec<CertificateDer<'static>>,
    /// Empty: whatever the CA signed is a member's, if it is no operator's.
    members: Vec<AltName>,
    operators: Vec<(AltName, OperatorId)>,
}

impl Holders {
    pub fn new(
        members: &[String],
        operators: &Operators,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Result<Holders, GroupError> {
        let members = members.iter().map(|name| listed(name, "quorate.ssl_names"));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let operators = operators.listed().iter().map(|operator| {
            let name = listed(&operator.name, "quorate.operators")?;
            match members.contains(&name) {
                true => Err(GroupError::TwoRoles { name: operator.name.clone() }),
                false => Ok((name, operator.clone())),
            }
        });
        let operators = operators.collect::<Result<_, _>>()?;
        Ok(Holders { trusted, members, operators })
    }

    pub fn trusts(&self, shown: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|each| each == shown)
    }

    /// Whether the CA signed it for somebody who is to be talked to.
    pub fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        // Somebody who is known by nothing would be told apart from nobody.
        let names = names_in(shown)?;
        if self.members.is_empty() || self.is_members(&names) || self.operator_of(&names).is_some()
        {
            return Ok(());
        }
        Err(Error::General(
            "the certificate is none of a member's: it has none of the names that quorate.ssl_names \
             lists, nor one of quorate.operators (a wildcard does not count)"
                .into(),
        ))
    }

    /// What a member is known by that shows this certificate, which was checked.
    pub fn key_of(&self, shown: &CertificateDer<'_>) -> KeyId {
        match self.trusts(shown) {
            true => KeyId::default(),
            // Whose cannot be read was not let in.
            false => key_of(shown).unwrap_or_default(),
        }
    }

    /// Whose it is, of one that was found good.
    pub fn holder(&self, shown: &CertificateDer<'_>) -> Result<Holder, Error> {
        if self.trusts(shown) {
            return Ok(Holder::Member(self.key_of(shown)));
        }
        let names = names_in(shown)?;
        match self.operator_of(&names) {
            Some(operator) if self.is_members(&names) => Err(Error::General(format!(
                "the certificate has a member's name (quorate.ssl_names), and that of operator {} \
                 (quorate.operators): nobody is both",
                operator.name
            ))),
            Some(operator) => Ok(Holder::Operator(operator.clone())),
            None => Ok(Holder::Member(self.key_of(shown))),
        }
    }

    fn is_members(&self, names: &[AltName]) -> bool {
        self.members.iter().any(|name| names.contains(name))
    }

    /// With the least of the rights, where it has the names of several.
    fn operator_of(&self, names: &[AltName]) -> Option<&OperatorId> {
        let own = self.operators.iter().filter(|(name, _)| names.contains(name));
        own.map(|(_, operator)| operator).min_by_key(|operator| operator.privilege)
    }
}

fn names_in(shown: &CertificateDer<'_>) -> Result<Vec<AltName>, Error> {
    let unread =
        |error| Error::General(format!("whom the certificate names cannot be read: {error}"));
    Contents::read(shown).map(|contents| contents.names).map_err(unread)
}

/// A name of an option's list, in the form of those in certificates.
fn listed(name: &str, option: &'static str) -> Result<AltName, GroupError> {
    match ServerName::try_from(name) {
        Ok(ServerName::IpAddress(address)) => Ok(AltName::Ip(address.into())),
        // At its end a dot says that nothing follows; certificates have none there.
        Ok(ServerName::DnsName(name)) => {
            let name = name.as_ref().to_ascii_lowercase();
            Ok(AltName::Dns(name.trim_end_matches('.').to_owned()))
        }
        _ => Err(GroupError::BadName { name: name.to_owned(), option }),
    }
}
