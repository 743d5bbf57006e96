//! The systems that are compared. Each is a description: what differs between them stands here, and the
//! code that makes hosts, starts servers and drives them is the same for all.
