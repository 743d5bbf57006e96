//! Whose a certificate of the CA is: a member's or an operator's.
//!
//! Invariant: nobody is both. A certificate for an operator's name makes no member, and one that also has a
//! member's name makes neither; of the two lists, no name stands in both.

use super::operators::{OperatorId, Operators};
use crate::error::GroupError;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::Error;

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
            if members.contains(&operator.name) {
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
    pub fn check(&self, signed: &ParsedCertificate<'_>) -> Result<(), Error> {
        if self.members.is_empty() || self.is_members(signed) || self.operator_of(signed).is_some()
        {
            return Ok(());
        }
        Err(Error::General(
            "the certificate is none of a member's: it has none of the names that quorate.ssl_names \
             lists, nor one of quorate.operators"
                .into(),
        ))
    }

    /// Which operator's it is, of one that was found good; `None`: a member's.
    pub fn operator(&self, shown: &CertificateDer<'_>) -> Result<Option<OperatorId>, Error> {
        if self.trusts(shown) {
            return Ok(None);
        }
        let signed = ParsedCertificate::try_from(shown)?;
        match self.operator_of(&signed) {
            Some(operator) if self.is_members(&signed) => Err(Error::General(format!(
                "the certificate has a member's name (quorate.ssl_names), and that of operator {} \
                 (quorate.operators): nobody is both",
                operator.name
            ))),
            operator => Ok(operator.cloned()),
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
