//! Those who follow the console's events, each on a connection that stays.
//!
//! Invariant: no more than so many of one host do, and no more than so many in all; a place is held as long as its
//! [`Follower`] lives. Each has ten minutes of history sent to it, and something each second: health checks, which
//! the same thread answers, do not wait for a crowd.

use parking_lot::Mutex;
use quorate_live::host_of;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Several people behind one address, each with several pages.
const OF_ONE_HOST_MAX: usize = 8;
const MAX: usize = 32;

/// How many there are of each host that has some.
#[derive(Default)]
pub struct Followers(Mutex<BTreeMap<IpAddr, usize>>);

/// A place; dropping it gives it back.
pub struct Follower {
    followers: Arc<Followers>,
    host: IpAddr,
}

impl Followers {
    /// A place for one at this address, or why there is none.
    pub fn admit(self: &Arc<Self>, addr: IpAddr) -> Result<Follower, String> {
        let host = host_of(addr);
        let mut hosts = self.0.lock();
        let of_host = hosts.get(&host).copied().unwrap_or_default();
        if of_host >= OF_ONE_HOST_MAX {
            return Err(format!(
                "{of_host} consoles of this host follow this agent already, and no more may: close one"
            ));
        }
        if hosts.values().sum::<usize>() >= MAX {
            return Err(format!(
                "{MAX} consoles follow this agent already, and no more may: close one, or look at another member's \
                 agent, which shows the same"
            ));
        }
        hosts.insert(host, of_host + 1);
        Ok(Follower { followers: self.clone(), host })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut hosts = self.followers.0.lock();
        let left = hosts.remove(&self.host).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            hosts.insert(self.host, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_so_many_places_and_all_hosts_together_have_so_many() {
        let followers = Arc::new(Followers::default());
        let admit = |host: u8| followers.admit([10, 0, 0, host].into());
        let mut of_one: Vec<Follower> = (0..OF_ONE_HOST_MAX).map(|_| admit(1).unwrap()).collect();
        let refused = admit(1).err().unwrap();
        assert!(refused.contains("of this host") && admit(2).is_ok(), "{refused}");
        let ended = of_one.pop();
        assert!(admit(1).is_err());
        drop(ended);
        of_one.push(admit(1).unwrap());

        let hosts = 2..=(MAX / OF_ONE_HOST_MAX) as u8;
        let others: Vec<Follower> = hosts
            .flat_map(|host| (0..OF_ONE_HOST_MAX).map(move |_| host))
            .map(|h| admit(h).unwrap())
            .collect();
        let refused = admit(99).err().unwrap();
        assert!(refused.contains("another member's agent"), "{refused}");
        drop((of_one, others));
        assert!(admit(99).is_ok());
        assert!(followers.0.lock().is_empty(), "no host stands there without a follower");
    }
}
