//! The connections that are open: so many at most, and none is kept out ([`crate::places`]). A host that floods the
//! agent ends its own connections, and keeps no balancer from asking.

use crate::places::Places;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::task::AbortHandle;

pub struct Connections(Arc<Places<AbortHandle>>);

impl Connections {
    pub fn new(open_max: usize) -> Connections {
        Connections(Places::new(open_max))
    }

    /// Lets a connection of this address run, as a task of its own.
    pub fn admit<F>(&self, addr: IpAddr, connection: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let ((), gone) = self.0.admit(addr, |held| {
            let task = tokio::spawn(async move {
                let _held = held;
                connection.await;
            });
            (task.abort_handle(), ())
        });
        if let Some(gone) = gone {
            gone.abort();
        }
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
        assert_eq!(connections.0.taken(), 4);
    }

    #[tokio::test]
    async fn one_that_has_ended_makes_room_by_itself() {
        let connections = Connections::new(1);
        connections.admit([127, 0, 0, 1].into(), async {});
        tokio::task::yield_now().await;
        assert_eq!(connections.0.taken(), 0);
    }
}
