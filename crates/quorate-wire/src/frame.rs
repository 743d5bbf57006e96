//! The frame: 16 bytes of header and at most 256 KiB of body.
//!
//! ```text
//!  0  "QRT"      3  frame format (1)      4  type      5  flags      6  zero (2 bytes)
//!  8  length of the body (u32)           12  crc32c of bytes 0..12 and the body (u32)
//! ```
//!
//! A packet longer than one frame travels as fragments: all but the last carry [`MORE`], all but
//! the first [`CONTINUED`]. One packet at a time is in fragments on a connection; whole packets
//! may stand between its fragments, which is how heartbeats and votes pass large transactions.

use crate::body::Body;
use crate::error::WireError;
use crate::packet::Packet;

pub const FRAME_FORMAT: u8 = 1;
pub const HEADER_BYTES: usize = 16;
/// Longest body of one frame.
pub const FRAME_BODY_MAX: usize = 256 * 1024;

/// Of packets that carry neither entries nor proposals nor a snapshot. Answers to operators are the longest.
pub(crate) const PLAIN_BODY_MAX: usize = 4 << 20;

/// More fragments of this packet follow.
pub const MORE: u8 = 1;
/// A fragment of the same packet came before.
pub const CONTINUED: u8 = 2;

const MAGIC: [u8; 3] = *b"QRT";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameType {
    Hello = 1,
    Welcome = 2,
    Refuse = 3,
    Consensus = 4,
    Forward = 5,
    JoinRequest = 6,
    Admission = 7,
    LeaveRequest = 8,
    LeaveAnswer = 9,
    ViewRefresh = 10,
    SnapshotBegin = 11,
    SnapshotData = 12,
    SnapshotEnd = 13,
    StatusRequest = 14,
    StatusReport = 15,
    WantVotes = 16,
    Ping = 17,
    Note = 18,
    /// What an operator asks, and what it is answered: the layer above reads them, and no member says them.
    OperatorRequest = 19,
    OperatorAnswer = 20,
    Standing = 21,
}

impl FrameType {
    /// By their codes, which begin at 1.
    pub const ALL: [FrameType; 21] = [
        FrameType::Hello,
        FrameType::Welcome,
        FrameType::Refuse,
        FrameType::Consensus,
        FrameType::Forward,
        FrameType::JoinRequest,
        FrameType::Admission,
        FrameType::LeaveRequest,
        FrameType::LeaveAnswer,
        FrameType::ViewRefresh,
        FrameType::SnapshotBegin,
        FrameType::SnapshotData,
        FrameType::SnapshotEnd,
        FrameType::StatusRequest,
        FrameType::StatusReport,
        FrameType::WantVotes,
        FrameType::Ping,
        FrameType::Note,
        FrameType::OperatorRequest,
        FrameType::OperatorAnswer,
        FrameType::Standing,
    ];

    /// The longest body of a packet of this kind. Only what carries entries, proposals or a snapshot is long; what
    /// consists of many small things takes many times its room when it is decoded.
    pub fn body_max(self) -> usize {
        match self {
            FrameType::Consensus | FrameType::Forward | FrameType::SnapshotData => usize::MAX,
            _ => PLAIN_BODY_MAX,
        }
    }

    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.get((value as usize).wrapping_sub(1)).copied()
    }
}

/// A checked header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub frame_type: FrameType,
    pub flags: u8,
    pub length: usize,
    pub crc: u32,
}

impl Header {
    /// Refuses foreign, incompatible and oversized frames before a byte of the body is awaited.
    pub fn decode(bytes: &[u8; HEADER_BYTES], body_max: usize) -> Result<Header, WireError> {
        check_start(bytes)?;
        let frame_type = FrameType::from_u8(bytes[4]).ok_or(WireError::FrameType(bytes[4]))?;
        let flags = bytes[5];
        if flags & !(MORE | CONTINUED) != 0 {
            return Err(WireError::BadValue { what: "frame flags", value: flags.into() });
        }
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let length = word(8) as usize;
        if length > body_max {
            return Err(WireError::FrameTooLong { length, limit: body_max });
        }
        Ok(Header { frame_type, flags, length, crc: word(12) })
    }

    /// `header` is the encoded header this one was decoded from.
    pub fn check(&self, header: &[u8; HEADER_BYTES], body: &[u8]) -> Result<(), WireError> {
        let found = checksum(&header[..12], body);
        if found != self.crc {
            return Err(WireError::Checksum { expected: self.crc, found });
        }
        Ok(())
    }
}

/// Judges as many bytes of a header as have arrived, so that a stranger is told apart by its
/// first byte and never waited for.
pub fn check_start(bytes: &[u8]) -> Result<(), WireError> {
    let known = bytes.len().min(3);
    if bytes[..known] != MAGIC[..known] {
        let first = bytes[..bytes.len().min(8)].escape_ascii().to_string();
        return Err(WireError::NotOurs { first });
    }
    match bytes.get(3) {
        Some(&theirs) if theirs != FRAME_FORMAT => {
            Err(WireError::FrameFormat { theirs, ours: FRAME_FORMAT })
        }
        _ => Ok(()),
    }
}

/// Cuts one packet into frames, one a call, so that urgent packets can go between them.
#[derive(Debug)]
pub struct Fragmenter {
    frame_type: FrameType,
    body: Body,
    part: usize,
    offset: usize,
    left: usize,
    started: bool,
}

impl Fragmenter {
    pub fn new(frame_type: FrameType, body: Body) -> Self {
        let left = body.len();
        Self { frame_type, body, part: 0, offset: 0, left, started: false }
    }

    pub fn of(packet: &Packet) -> Self {
        Self::new(packet.frame_type(), packet.encode())
    }

    /// How much of the packet is in no frame yet.
    pub fn bytes_left(&self) -> usize {
        self.left
    }

    /// Appends all that is left.
    pub fn all_frames(mut self, out: &mut Vec<u8>) {
        while self.next_frame(out) {}
    }

    /// Appends the next frame to `out`; false once the packet is complete.
    pub fn next_frame(&mut self, out: &mut Vec<u8>) -> bool {
        let length = self.left.min(FRAME_BODY_MAX);
        self.left -= length;
        let more = if self.left > 0 { MORE } else { 0 };
        let continued = if self.started { CONTINUED } else { 0 };
        self.started = true;

        let start = out.len();
        out.reserve(HEADER_BYTES + length);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[FRAME_FORMAT, self.frame_type as u8, more | continued, 0, 0]);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        self.copy_body(length, out);
        let crc = checksum(&out[start..start + 12], &out[start + HEADER_BYTES..]);
        out[start + 12..start + HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        self.left > 0
    }

    fn copy_body(&mut self, mut length: usize, out: &mut Vec<u8>) {
        while length > 0 {
            let part = &self.body.parts[self.part];
            let take = length.min(part.len() - self.offset);
            out.extend_from_slice(&part[self.offset..self.offset + take]);
            length -= take;
            self.offset += take;
            if self.offset == part.len() {
                self.body.parts[self.part].clear();
                self.part += 1;
                self.offset = 0;
            }
        }
    }
}

fn checksum(header: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_codes_are_their_own_inverse() {
        for code in 0..=255u8 {
            if let Some(frame_type) = FrameType::from_u8(code) {
                assert_eq!(frame_type as u8, code);
            }
        }
        assert_eq!(FrameType::from_u8(0), None);
        assert_eq!(FrameType::from_u8(22), None);
    }

    #[test]
    fn a_stranger_is_told_by_the_first_byte() {
        assert!(matches!(check_start(b"G"), Err(WireError::NotOurs { .. })));
        assert!(check_start(b"QR").is_ok());
        let error = check_start(b"QRT\x09").unwrap_err();
        assert!(error.to_string().contains("format 9") && error.to_string().contains("speaks 1"));
    }
}
