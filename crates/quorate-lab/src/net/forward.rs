//! The forwarder: one thread a host takes what the host sends, holds it as long as the link says,
//! and gives it to the receiving host.
//!
//! A packet is never handed from thread to thread: the sender's thread writes it to the receiver's
//! device, where the kernel delivers it within the call. That costs one wake-up a packet.

use super::delay::{Fate, Travel};
use super::host::address_of;
use super::links::{Link, Links};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;
use tun_rs::SyncDevice;

/// Above any packet of the devices.
const BUFFER_BYTES: usize = 65_536;

pub(super) struct Forwarder {
    pub from: usize,
    pub devices: Arc<Vec<SyncDevice>>,
    pub links: Arc<Links>,
    /// Readable (closed at the other end): the network ends.
    pub end: Arc<OwnedFd>,
}

impl Forwarder {
    /// Forwards until the end is signalled. An error means that the machine refuses something
    /// that it did not refuse before.
    pub fn run(&self) -> io::Result<()> {
        // Else the kernel adds up to 50 µs to every wait.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let mut travel = Travel::new(self.devices.len(), self.from as u64, Instant::now());
        let mut row: Vec<Link> = Vec::new();
        let mut seen = 0;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            self.links.refresh(self.from, &mut row, &mut seen);
            while let Some(packet) = travel.arrived(Instant::now()) {
                self.deliver(packet.to, &packet.bytes, &row[packet.to]);
            }
            match self.devices[self.from].recv(&mut buffer) {
                Ok(length) => self.accept(&mut travel, &buffer[..length], &row),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.wait(travel.next())? {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Packets to addresses that no host has (multicast, say) go nowhere.
    fn accept(&self, travel: &mut Travel, packet: &[u8], row: &[Link]) {
        let Some(to) = receiver(packet).filter(|to| *to < row.len()) else { return };
        if row[to].cut {
            return self.links.count_drop(self.from, to);
        }
        match travel.send(to, packet.len(), &row[to].quality, Instant::now()) {
            Fate::Now => self.deliver(to, packet, &row[to]),
            Fate::Later(due) => travel.hold(due, to, packet),
            Fate::Lost => self.links.count_drop(self.from, to),
        }
    }

    fn deliver(&self, to: usize, packet: &[u8], link: &Link) {
        // What a host does not take (its interface is down, say) is lost, as on any network.
        if link.cut || self.devices[to].send(packet).is_err() {
            self.links.count_drop(self.from, to);
        } else {
            self.links.count(self.from, to, packet.len());
        }
    }

    /// Waits for a packet of the host, or until `due`; `true` if the network ends.
    fn wait(&self, due: Option<Instant>) -> io::Result<bool> {
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        let device = self.devices[self.from].as_fd();
        let mut waited =
            [PollFd::new(&device, PollFlags::IN), PollFd::new(&*self.end, PollFlags::IN)];
        match poll(&mut waited, left.as_ref()) {
            Ok(_) => Ok(!waited[1].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The host that an IP packet is for.
fn receiver(packet: &[u8]) -> Option<usize> {
    let destination = match packet.first()? >> 4 {
        4 => IpAddr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?),
        6 => IpAddr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?),
        _ => return None,
    };
    address_of(destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_is_read_from_the_packet() {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[10, 77, 0, 3]);
        assert_eq!(receiver(&packet), Some(2));
        packet[16..20].copy_from_slice(&[224, 0, 0, 22]);
        assert_eq!(receiver(&packet), None);
        packet[0] = 0x60;
        packet[24..40].copy_from_slice(&[0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(receiver(&packet), Some(0));
        assert_eq!(receiver(&packet[..39]), None);
        assert_eq!(receiver(&[]), None);
    }
}
