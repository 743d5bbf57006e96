//! Why bytes from a peer were not accepted.

/// Always the sender's doing (or that of whoever speaks to the port); the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("these are not Quorate frames (first bytes: {first})")]
    NotOurs { first: String },
    #[error(
        "the peer speaks frame format {theirs}, this member speaks {ours}: \
         run members of compatible versions"
    )]
    FrameFormat { theirs: u8, ours: u8 },
    #[error("unknown frame type {0}")]
    FrameType(u8),
    #[error("a frame claims {length} bytes, the limit is {limit}")]
    FrameTooLong { length: usize, limit: usize },
    #[error("a message grew to {length} bytes, the limit for its sender is {limit}")]
    MessageTooLong { length: usize, limit: usize },
    #[error("frame checksum {found:08x} instead of {expected:08x}")]
    Checksum { expected: u32, found: u32 },
    /// The frames were intact: what was put into them was not what had been proposed.
    #[error(
        "log index {index}: the entry is not what was proposed (its checksum does not fit). The \
         frame that brought it was intact, so the memory of the sender, or of this host, is at fault"
    )]
    EntryAltered { index: u64 },
    #[error(
        "a forwarded proposal is not what its origin proposed (its checksum does not fit). The \
         frame that brought it was intact, so the memory of the sender, or of this host, is at fault"
    )]
    ProposalAltered,
    #[error("fragments out of order: {0}")]
    Fragments(&'static str),
    #[error("{what} ends {missing} bytes too early")]
    Truncated { what: &'static str, missing: usize },
    #[error("{extra} bytes too many after {what}")]
    Trailing { what: &'static str, extra: usize },
    #[error("{what} has the impossible value {value}")]
    BadValue { what: &'static str, value: u64 },
    #[error("{what} is not UTF-8 or too long")]
    BadText { what: &'static str },
    #[error("{0}")]
    BadConfig(String),
    /// A later release wrote it.
    #[error("{0}")]
    Newer(String),
}
