//! The connections that are open.
//!
//! Invariants:
//! - at most `open_max` are;
//! - another one is always let in: the host that has most of them loses its oldest for it, and of hosts that have
//!   as many, the one that has been here longest. So a host that floods the agent ends its own connections, and
//!   keeps no balancer from asking.

use parking_lot::Mutex;
use quorate_live::{host_of, oldest_of_most};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::task::AbortHandle;

pub struct Connections {
    open_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number, so the oldest first.
    open: BTreeMap<u64, Open>,
    next: u64,
}

struct Open {
    /// What stands for all addresses that it may have.
    host: IpAddr,
    task: AbortHandle,
}

/// Keeps a connection listed; dropping it takes it off the list.
struct Listed {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    pub fn new(open_max: usize) -> Arc<Connections> {
        Arc::new(Connections { open_max, state: Mutex::default() })
    }

    /// Lets a connection of this address run, as a task of its own.
    pub fn admit<F>(self: &Arc<Self>, addr: IpAddr, connection: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut state = self.state.lock();
        let gone = if state.open.len() >= self.open_max { state.take_oldest() } else { None };
        let number = state.next;
        state.next += 1;
        let listed = Listed { connections: self.clone(), number };
        let task = tokio::spawn(async move {
            let _listed = listed;
            connection.await;
        });
        state.open.insert(number, Open { host: host_of(addr), task: task.abort_handle() });
        drop(state);
        if let Some(gone) = gone {
            gone.task.abort();
        }
    }
}

impl State {
    /// Of the host that has most.
    fn take_oldest(&mut self) -> Option<Open> {
        let oldest = oldest_of_most(self.open.iter().map(|(number, open)| (*number, open.host)));
        oldest.and_then(|number| self.open.remove(&number))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.connections.state.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_host_that_floods_ends_its_own_and_none_is_kept_out() {
        let connections = Connections::new(4);
        // What a connection holds goes with it.
        let connect = |addr: &str| {
            let (held, gone) = oneshot::channel::<()>();
            connections.admit(addr.parse().unwrap(), async move {
                let _held = held;
                std::future::pending().await
            });
            gone
        };
        let mut others = [connect("10.0.0.2"), connect("2001:db8::1")];
        let mut flood: Vec<_> = (0..9).map(|_| connect("10.0.0.9")).collect();
        tokio::task::yield_now().await;
        let is_open = |gone: &mut oneshot::Receiver<()>| {
            matches!(gone.try_recv(), Err(oneshot::error::TryRecvError::Empty))
        };
        assert!(others.iter_mut().all(is_open));
        let left: Vec<bool> = flood.iter_mut().map(is_open).collect();
        assert_eq!(left, [false, false, false, false, false, false, false, true, true]);
        let mut one_more = connect("10.0.0.3");
        tokio::task::yield_now().await;
        assert!(is_open(&mut one_more) && others.iter_mut().all(is_open));
        assert_eq!(connections.state.lock().open.len(), 4);
    }

    #[tokio::test]
    async fn one_that_has_ended_makes_room_by_itself() {
        let connections = Connections::new(1);
        connections.admit([127, 0, 0, 1].into(), async {});
        tokio::task::yield_now().await;
        assert!(connections.state.lock().open.is_empty());
    }
}
