//! Who gives an order, and when.

/// Who gives an order, as the shell found out that took it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// An account, as `root@localhost`, or an operator's name.
    pub name: String,
    /// A host or an address, or `socket`.
    pub from: String,
}

/// What makes an order one of an operator's, which is noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mandate {
    pub author: Author,
    /// Milliseconds since 1970, by the clock of the shell that took the order.
    pub given_ms: u64,
}
