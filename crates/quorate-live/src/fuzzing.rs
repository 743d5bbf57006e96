//! What peers, operators and strangers say and show, for fuzzers: whatever it is, nothing panics, and what is
//! accepted makes sense. Not part of the interface.

use crate::net::trust::{fuzzing, read_claim, Credential, Operators};
use crate::port::{Answer, Request};

/// What a peer shows as its certificate.
pub fn certificate(bytes: &[u8]) {
    fuzzing::certificate(bytes);
}

/// A stranger's claim to be an operator: the first bytes that are read of it.
pub fn operator_claim(mut bytes: &[u8]) {
    if let Ok(Some(claimed)) = read_claim(&mut bytes) {
        assert!(claimed.name.len() <= 64 && claimed.name.chars().all(|c| c.is_ascii_graphic()));
    }
}

/// What is understood is said again the same way.
pub fn operator_request(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        let said = request.encode().expect("a request that was understood");
        assert_eq!(Request::decode(&said), Ok(request));
    }
}

/// What a member answers; it may be any release's.
pub fn operator_answer(bytes: &[u8]) {
    if let Ok(answer) = Answer::decode(bytes) {
        let said = answer.encode().expect("an answer that was understood");
        assert!(Answer::decode(&said).is_ok());
    }
}

/// The file of a credential, and the list of operators.
pub fn operator_texts(text: &str) {
    if let Ok(credential) = Credential::parse(text) {
        assert!(!credential.operator().name.contains(char::is_whitespace));
    }
    if let Ok(list) = text.parse::<Operators>() {
        assert_eq!(list.to_string().parse(), Ok(list));
    }
}
