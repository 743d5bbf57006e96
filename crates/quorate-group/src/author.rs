//! Who gives an order.

/// Who gives an order, as the shell found out that took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// An account, as `root@localhost`, or an operator's name.
    pub name: String,
    /// A host or an address, or `socket`.
    pub from: String,
}
