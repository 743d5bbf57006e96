//! A node under a server that speaks wsrep: with the options that the server gives it, and the member of
//! the group that it was connected by.

use crate::answers::Answers;
use crate::options::{Options, ServerEncryption};
use quorate_live::{page, DiskKey, Group, GroupError};
use quorate_node::blocking::{Mutex, RwLock};
use quorate_node::host::Host;
use quorate_node::node::{Node, NodeConfig};
use std::ops::Deref;
use std::sync::Arc;

pub struct Provider {
    pub node: Arc<Node>,
    pub options: Mutex<Options>,
    pub answers: Arc<Mutex<Answers>>,
    encryption: Mutex<ServerEncryption>,
    controls: RwLock<Option<Arc<Group>>>,
}

/// Why a key of the server's was not taken.
#[derive(Debug, thiserror::Error)]
pub enum KeyRefused {
    #[error(
        "the server gives another encryption key, and the group log's files are not encrypted anew while \
         the node runs: the former one stays in use, and the next start needs it, too. Name a file of keys \
         of this node's own in quorate.encrypt_key_file, which can be changed: see {}",
        page!("docs/security.md")
    )]
    Running,
    #[error(
        "the server gives an encryption key of no bytes, which everybody has: it is not taken"
    )]
    Empty,
    #[error(transparent)]
    Key(#[from] GroupError),
}

impl Provider {
    /// `encrypts`: the server's encryption is on.
    pub fn new(host: Box<dyn Host>, config: NodeConfig, options: Options, encrypts: bool) -> Self {
        let node = Arc::new(Node::new(host, config, options.settings()));
        Self {
            node,
            options: Mutex::new(options),
            answers: Arc::default(),
            encryption: Mutex::new(ServerEncryption { on: encrypts, keys: Vec::new() }),
            controls: RwLock::new(None),
        }
    }

    pub fn encryption(&self) -> ServerEncryption {
        self.encryption.lock().clone()
    }

    /// Takes a key from the server's key service. An earlier one is still tried.
    pub fn take_key(&self, key: &[u8]) -> Result<(), KeyRefused> {
        if self.controls().is_some() {
            return Err(KeyRefused::Running);
        }
        if key.is_empty() {
            return Err(KeyRefused::Empty);
        }
        let key = DiskKey::of_server(key)?;
        self.encryption.lock().keys.insert(0, key);
        Ok(())
    }

    /// The member of the group, to be told what to do.
    pub fn controls(&self) -> Option<Arc<Group>> {
        self.controls.read().clone()
    }

    pub fn set_controls(&self, group: Option<Arc<Group>>) {
        *self.controls.write() = group;
    }

    /// Ends everything; idempotent.
    pub fn free(&self) {
        self.node.free();
        self.set_controls(None);
    }
}

impl Deref for Provider {
    type Target = Arc<Node>;

    fn deref(&self) -> &Arc<Node> {
        &self.node
    }
}
