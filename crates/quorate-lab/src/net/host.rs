//! One host: a network namespace with one TUN device.

use crate::leftovers;
use anyhow::{Context, Result};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use tun_rs::{DeviceBuilder, SyncDevice};

const INTERFACE: &str = "net0";
/// An ordinary network's: larger packets would hide what loss does.
const MTU: u16 = 1500;
/// Packets that wait in the kernel for the forwarder; the usual 500 would lose some in a burst.
const QUEUE_PACKETS: u32 = 10_000;

/// One host: a network namespace with one interface, `10.77.0.<number>` and `fd77::<number>`,
/// numbers counted from 1.
pub struct Host {
    name: String,
    address: Ipv4Addr,
    namespace: File,
}

impl Host {
    /// Makes the namespace of host `index` and its device.
    pub(super) fn new(index: usize) -> Result<(Host, SyncDevice)> {
        let name = leftovers::new_name()?;
        leftovers::ip(&["netns", "add", &name])?;
        let opened = File::open(format!("/run/netns/{name}"));
        // From here on the namespace goes with the host, whatever fails.
        let namespace = match opened {
            Ok(namespace) => namespace,
            Err(error) => {
                leftovers::delete_namespace(&name)?;
                return Err(error).context("opening a namespace");
            }
        };
        let number = u8::try_from(index + 1).context("too many hosts")?;
        let host = Host { name, address: Ipv4Addr::new(10, 77, 0, number), namespace };
        let device = host.run(|| {
            DeviceBuilder::new().name(INTERFACE).mtu(MTU).tx_queue_len(QUEUE_PACKETS).build_sync()
        })?;
        let device = device.context("making a TUN device (is /dev/net/tun there?)")?;
        device.set_nonblocking(true)?;
        leftovers::ip(&["-n", &host.name, "link", "set", "lo", "up"])?;
        for address in [format!("{}/24", host.address), format!("fd77::{number:x}/64")] {
            let add = ["-n", &host.name, "address", "add", &address, "dev", INTERFACE];
            leftovers::ip(&add)?;
        }
        leftovers::ip(&["-n", &host.name, "link", "set", INTERFACE, "up"])?;
        Ok((host, device))
    }

    /// The namespace's name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `work` on a thread that is on this host: sockets it makes are this host's, for as
    /// long as they live, and so are processes it starts.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let on_host = scope.spawn(|| {
                move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .with_context(|| format!("entering {}", self.name))?;
                Ok(work())
            });
            on_host.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a program on this host.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        self.spawn_after(|| Ok(()), command)
    }

    /// The same from a thread that has done something to itself, and to what it starts.
    pub fn spawn_after(
        &self,
        prepare: impl FnOnce() -> Result<()> + Send,
        command: &mut Command,
    ) -> Result<Child> {
        self.run(|| {
            prepare()?;
            command
                .spawn()
                .with_context(|| format!("running {}", command.get_program().to_string_lossy()))
        })?
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        leftovers::wait_if_ending();
        let removed = leftovers::kill_all_in(&self.name)
            .and_then(|()| leftovers::delete_namespace(&self.name));
        if let Err(error) = removed {
            eprintln!("removing host {}: {error:#}", self.name);
        }
    }
}

/// The index of the host that has this address.
pub(super) fn address_of(address: IpAddr) -> Option<usize> {
    let number = match address {
        IpAddr::V4(v4) => match v4.octets() {
            [10, 77, 0, number] => number,
            _ => return None,
        },
        IpAddr::V6(v6) => match v6.segments() {
            [0xfd77, 0, 0, 0, 0, 0, 0, number] => u8::try_from(number).ok()?,
            _ => return None,
        },
    };
    usize::from(number).checked_sub(1)
}
