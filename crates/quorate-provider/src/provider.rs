//! A node under a server that speaks wsrep: with the options that the server gives it, and the member of
//! the group that it was connected by.

use crate::answers::Answers;
use crate::options::Options;
use quorate_live::Group;
use quorate_node::blocking::{Mutex, RwLock};
use quorate_node::host::Host;
use quorate_node::node::{Node, NodeConfig};
use std::ops::Deref;
use std::sync::Arc;

pub struct Provider {
    pub node: Arc<Node>,
    pub options: Mutex<Options>,
    pub answers: Mutex<Answers>,
    controls: RwLock<Option<Arc<Group>>>,
}

impl Provider {
    pub fn new(host: Box<dyn Host>, config: NodeConfig, options: Options) -> Self {
        let node = Arc::new(Node::new(host, config, options.settings()));
        Self {
            node,
            options: Mutex::new(options),
            answers: Mutex::new(Answers::default()),
            controls: RwLock::new(None),
        }
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
