use super::*;
use crate::rng::Rng;

fn info(role: MemberRole, addr: &str, name: &str) -> MemberInfo {
    MemberInfo::new(role, addr, name)
}

fn sample() -> Config {
    Config {
        members: BTreeMap::from([
            (MemberId(1), info(MemberRole::Voter, "127.0.0.1:4567", "node1")),
            (
                MemberId(7),
                MemberInfo {
                    key: KeyId([7; 32]),
                    ..info(MemberRole::Learner, "[::1]:4567", "knoten-ä")
                },
            ),
            (
                MemberId(9),
                MemberInfo { joining: true, priority: 0, ..info(MemberRole::Voter, "", "x") },
            ),
            (
                MemberId(u128::MAX),
                MemberInfo { zone: "west".into(), ..info(MemberRole::Logger, "", "") },
            ),
        ]),
        outgoing: vec![MemberId(1), MemberId(5)],
        rules: Rules {
            zones_min: 2,
            priorities: PriorityRule::Forced,
            primaries: Primaries::Single,
            failover_waits: true,
            follows_writes: true,
            paused: true,
            after: true,
        },
        level: 2,
        lost: vec![MemberId(2), MemberId(3)],
        audit: "why".into(),
    }
}

#[test]
fn what_is_encoded_decodes_to_the_same() {
    for config in [sample(), Config::default()] {
        assert_eq!(Config::decode(&config.encode()).unwrap(), config);
    }
}

#[test]
fn any_truncation_and_any_surplus_is_refused() {
    let bytes = sample().encode();
    for len in 0..bytes.len() {
        assert!(Config::decode(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert_eq!(Config::decode(&longer).unwrap_err().0, "1 bytes too many");
}

#[test]
fn versions_roles_and_order_are_checked() {
    let refusal = |change: fn(&mut Vec<u8>)| {
        let mut bytes = sample().encode().to_vec();
        change(&mut bytes);
        Config::decode(&bytes).unwrap_err().0
    };
    assert!(refusal(|b| b[0] = 7).contains("version 7"));
    assert!(refusal(|b| b[0] = 5).contains("version 5"));
    assert!(refusal(|b| b[23] = 9).contains("role 9"));
    assert!(refusal(|b| b[24] = 2).contains("flags 2"));
    assert!(refusal(|b| b[7] = 8).contains("out of order"));
    assert!(refusal(|b| b[67] = 0xff).contains("UTF-8"));
}

#[test]
fn rules_survive_and_unknown_ones_are_refused() {
    let one_of_each = Rules { primaries: Primaries::Multi, ..sample().rules };
    for rules in [one_of_each, Rules { failover_waits: false, ..one_of_each }, Rules::default()] {
        let config = Config { rules, ..sample() };
        assert_eq!(Config::decode(&config.encode()).unwrap(), config);
    }
    let mut bytes = sample().encode().to_vec();
    let lost_and_audit = 4 + 2 * 16 + 4 + "why".len();
    let flags_at = bytes.len() - lost_and_audit - 1;
    bytes[flags_at] = 32;
    assert!(Config::decode(&bytes).unwrap_err().0.contains("flags 32"));
}

#[test]
fn a_level_that_is_not_known_is_told_with_what_to_run() {
    let config = Config { level: 7, ..sample() };
    assert_eq!(Config::decode_up_to(7, &config.encode()).unwrap(), config);
    let told = Config::decode_up_to(6, &config.encode()).unwrap_err().0;
    assert!(told.contains("works at level 7") && told.contains("run a release"), "{told}");
}

#[test]
fn who_votes_and_who_may_lead() {
    let can = |info: MemberInfo| (info.is_voter(), info.may_lead());
    let plain = |role| info(role, "", "");
    assert_eq!(can(plain(MemberRole::Voter)), (true, true));
    assert_eq!(can(plain(MemberRole::Logger)), (true, false));
    assert_eq!(can(plain(MemberRole::Learner)), (false, false));
    assert_eq!(can(MemberInfo { priority: 0, ..plain(MemberRole::Voter) }), (true, false));
    assert_eq!(can(MemberInfo { joining: true, ..plain(MemberRole::Voter) }), (false, false));
}

/// Whatever decodes must be exactly what `encode` would have made of it.
#[test]
fn random_and_mutated_bytes_never_panic_and_never_alias() {
    let mut rng = Rng::new(42);
    let valid = sample().encode();
    for round in 0..200_000 {
        let bytes: Vec<u8> = if round % 2 == 0 {
            let len = rng.between(0, 64) as usize;
            (0..len).map(|i| if i == 0 { VERSION } else { rng.next() as u8 & 3 }).collect()
        } else {
            let mut bytes = valid.to_vec();
            for _ in 0..rng.between(1, 4) {
                let at = rng.between(0, bytes.len() as u64) as usize;
                bytes[at] = rng.next() as u8;
            }
            bytes
        };
        if let Ok(config) = Config::decode(&bytes) {
            assert_eq!(config.encode(), bytes);
        }
    }
}

#[test]
fn voters_of_both_halves_vote() {
    let config = sample();
    assert!(config.is_voter(MemberId(1)) && config.is_voter(MemberId(5)));
    assert!(!config.is_voter(MemberId(7)) && !config.is_voter(MemberId(9)));
    let everybody: Vec<u128> = config.everybody().map(|id| id.0).collect();
    assert_eq!(everybody, [1, 7, 9, u128::MAX, 5]);
}
