//! Frames from a byte stream, put together to packets again.

use crate::error::WireError;
use crate::frame::{check_start, FrameType, Header};
use crate::frame::{CONTINUED, FRAME_BODY_MAX, HEADER_BYTES, MORE};
use bytes::{Bytes, BytesMut};
use std::io::{self, Read};
use std::ops::Range;

/// What a connection begins with: many say little.
const BUFFER_BYTES: usize = 8 << 10;

/// Reads packets from a stream. Holds one buffer, which grows to a frame's size where that much arrives,
/// and the packet in fragments, which grows as its bytes arrive.
pub struct FrameReader<R> {
    stream: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    body_max: usize,
    message_max: usize,
    partial: Option<(FrameType, BytesMut)>,
}

/// Why there is no next packet.
#[derive(Debug, thiserror::Error)]
pub enum ReadFailure {
    /// The peer closed the connection between two frames.
    #[error("the peer closed the connection")]
    Closed,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl<R: Read> FrameReader<R> {
    /// For the handshake: packets longer than `message_max` bytes are refused.
    pub fn new(stream: R, message_max: usize) -> Self {
        let body_max = message_max.min(FRAME_BODY_MAX);
        Self {
            stream,
            buffer: vec![0; BUFFER_BYTES.min(HEADER_BYTES + body_max)],
            start: 0,
            end: 0,
            body_max,
            message_max,
            partial: None,
        }
    }

    /// Once the peer is known: whole packets up to `message_max` bytes, that which is coming in among them.
    pub fn raise_limit(&mut self, message_max: usize) {
        self.body_max = message_max.min(FRAME_BODY_MAX);
        self.message_max = message_max;
    }

    pub fn stream(&self) -> &R {
        &self.stream
    }

    pub fn stream_mut(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The stream, without what was read from it and not asked for.
    pub fn into_stream(self) -> R {
        self.stream
    }

    /// Blocks until a whole packet is here.
    pub fn next_packet(&mut self) -> Result<(FrameType, Bytes), ReadFailure> {
        loop {
            if let Some(packet) = self.buffered_packet()? {
                return Ok(packet);
            }
            self.fill()?;
        }
    }

    /// A packet that has already arrived in whole, without reading more.
    pub fn buffered_packet(&mut self) -> Result<Option<(FrameType, Bytes)>, WireError> {
        while let Some((header, body)) = self.buffered_frame()? {
            let body = &self.buffer[body];
            if let Some(packet) = join_fragments(&mut self.partial, header, body, self.message_max)?
            {
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    /// The next complete frame of the buffer: its header and where its body stands.
    fn buffered_frame(&mut self) -> Result<Option<(Header, Range<usize>)>, WireError> {
        let bytes = &self.buffer[self.start..self.end];
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return check_start(bytes).map(|()| None);
        };
        let header = Header::decode(head, self.body_max)?;
        let Some(body) = bytes.get(HEADER_BYTES..HEADER_BYTES + header.length) else {
            return Ok(None);
        };
        header.check(head, body)?;
        let at = self.start + HEADER_BYTES;
        self.start = at + header.length;
        Ok(Some((header, at..at + header.length)))
    }

    /// Whether part of a packet in fragments is here.
    pub fn is_inside_packet(&self) -> bool {
        self.partial.is_some()
    }

    /// So much of a packet in fragments is here.
    pub fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }

    /// Blocks until more bytes are here.
    pub fn fill(&mut self) -> Result<(), ReadFailure> {
        if self.end == self.buffer.len() {
            // The last read filled it: there is more to come than it takes.
            let frame = HEADER_BYTES + self.body_max;
            self.buffer.resize((2 * self.buffer.len()).min(frame).max(self.buffer.len()), 0);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) if self.end == 0 && self.partial.is_none() => {
                    return Err(ReadFailure::Closed);
                }
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(read) => {
                    self.end += read;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn join_fragments(
    partial: &mut Option<(FrameType, BytesMut)>,
    header: Header,
    body: &[u8],
    message_max: usize,
) -> Result<Option<(FrameType, Bytes)>, WireError> {
    if header.flags & CONTINUED == 0 {
        if header.flags & MORE == 0 {
            return Ok(Some((header.frame_type, Bytes::copy_from_slice(body))));
        }
        if partial.is_some() {
            return Err(WireError::Fragments("a second packet in fragments inside a first"));
        }
        *partial = Some((header.frame_type, BytesMut::from(body)));
        return Ok(None);
    }
    let Some((frame_type, bytes)) = partial.as_mut() else {
        return Err(WireError::Fragments("a continuation of nothing"));
    };
    if *frame_type != header.frame_type {
        return Err(WireError::Fragments("a continuation of another type"));
    }
    let (length, limit) = (bytes.len() + body.len(), message_max.min(frame_type.body_max()));
    if length > limit {
        return Err(WireError::MessageTooLong { length, limit });
    }
    bytes.extend_from_slice(body);
    if header.flags & MORE != 0 {
        return Ok(None);
    }
    Ok(partial.take().map(|(frame_type, bytes)| (frame_type, bytes.freeze())))
}
