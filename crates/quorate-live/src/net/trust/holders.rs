//! Whose a certificate of the CA is: a member's or an operator's.
//!
//! Invariant: nobody is both. A certificate for an operator's name makes no member, and one that also has a
//! member's name makes neither; of the two lists, no name stands in both.

use super::names::key_of;
use super::operators::{OperatorId, Operators};
use crate::error::GroupError;
use quorate_consensus::KeyId;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
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
    members: Vec<ServerName<'static>>,
    operators: Vec<(ServerName<'static>, OperatorId)>,
}

impl Holders {
    pub fn new(
        members: &[String],
        operators: &Operators,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Result<Holders, GroupError> {
        let parsed = |name: &str, option| {
            let name = name.to_owned();
            ServerName::try_from(name.clone()).map_err(|_| GroupError::BadName { name, option })
        };
        let listed = operators.listed().iter();
        let operators = listed.map(|operator| {
            // As names in certificates are compared.
            if members.iter().any(|name| name.eq_ignore_ascii_case(&operator.name)) {
                return Err(GroupError::TwoRoles { name: operator.name.clone() });
            }
            Ok((parsed(&operator.name, "quorate.operators")?, operator.clone()))
        });
        let operators = operators.collect::<Result<_, _>>()?;
        let members = members.iter().map(|name| parsed(name, "quorate.ssl_names"));
        Ok(Holders { trusted, members: members.collect::<Result<_, _>>()?, operators })
    }

    pub fn trusts(&self, shown: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|each| each == shown)
    }

    /// Whether the CA signed it for somebody who is to be talked to.
    pub fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let signed = ParsedCertificate::try_from(shown)?;
        if self.members.is_empty()
            || self.is_members(&signed)
            || self.operator_of(&signed).is_some()
        {
            return self.check_known(shown);
        }
        Err(Error::General(
            "the certificate is none of a member's: it has none of the names that quorate.ssl_names \
             lists, nor one of quorate.operators"
                .into(),
        ))
    }

    /// Somebody who is known by nothing would be told apart from nobody.
    fn check_known(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let unread =
            |error| Error::General(format!("whom the certificate names cannot be read: {error}"));
        key_of(shown).map(drop).map_err(unread)
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
        let signed = ParsedCertificate::try_from(shown)?;
        match self.operator_of(&signed) {
            Some(operator) if self.is_members(&signed) => Err(Error::General(format!(
                "the certificate has a member's name (quorate.ssl_names), and that of operator {} \
                 (quorate.operators): nobody is both",
                operator.name
            ))),
            Some(operator) => Ok(Holder::Operator(operator.clone())),
            None => Ok(Holder::Member(self.key_of(shown))),
        }
    }

    fn is_members(&self, signed: &ParsedCertificate<'_>) -> bool {
        self.members.iter().any(|name| verify_server_name(signed, name).is_ok())
    }

    /// With the least of the rights, where it has the names of several.
    fn operator_of(&self, signed: &ParsedCertificate<'_>) -> Option<&OperatorId> {
        let own =
            self.operators.iter().filter(|(name, _)| verify_server_name(signed, name).is_ok());
        own.map(|(_, operator)| operator).min_by_key(|operator| operator.privilege)
    }
}
