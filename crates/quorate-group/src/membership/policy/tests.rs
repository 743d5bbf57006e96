use super::*;
use quorate_consensus::level::NAMED_KEYS;
use quorate_consensus::{KeyId, LogPosition, PeerStatus, RoleState, Rules};
use quorate_wire::{Refusal, RefusalCode};

fn info(id: u128, role: MemberRole) -> MemberInfo {
    MemberInfo::new(role, format!("host{id}:1"), format!("n{id}"))
}

fn voters(ids: &[u128]) -> Config {
    let members = ids.iter().map(|id| (MemberId(*id), info(*id, MemberRole::Voter))).collect();
    Config { members, ..Config::default() }
}

fn check_key(config: &Config, from: &PeerIdentity) -> Result<(), Refusal> {
    let known = config.members.get(&from.member).map(|info| info.key);
    crate::driver::check_key(known, from)
}

fn identity(id: u128, addr: &str, name: &str) -> PeerIdentity {
    PeerIdentity {
        member: MemberId(id),
        addr: addr.into(),
        name: name.into(),
        ..PeerIdentity::default()
    }
}

fn parts(change: ConfigChange) -> (Vec<(MemberId, MemberInfo)>, Vec<MemberId>) {
    match change {
        ConfigChange::Update { put, remove } => (put, remove),
        other => panic!("no members, but {other:?}"),
    }
}

#[test]
fn those_that_live_can_commit_after_a_change_in_as_many_zones_as_the_rules_ask_for() {
    let mut config = voters(&[1, 2, 3]);
    for (id, zone) in [(1, "a"), (2, "b"), (3, "a")] {
        config.members.get_mut(&MemberId(id)).unwrap().zone = zone.into();
    }
    config.rules.zones_min = 2;
    let without_3 = |id: MemberId| id != MemberId(3);
    let moved = |config: &Config, id, zone: &str| {
        let info = MemberInfo { zone: zone.into(), ..config.members[&MemberId(id)].clone() };
        ConfigChange::Update { put: vec![(MemberId(id), info)], remove: Vec::new() }
    };
    assert!(leaves_enough(&config, &moved(&config, 3, "b"), without_3));
    assert!(!leaves_enough(&config, &moved(&config, 1, "b"), without_3), "zone a would be 3 alone");
    assert!(leaves_enough(&config, &moved(&config, 1, "b"), |_| true));
    let ruled = |zones_min| ConfigChange::Rules(Rules { zones_min, ..config.rules });
    let zone_a = |id: MemberId| id != MemberId(2);
    assert!(leaves_enough(&config, &ruled(1), zone_a), "the way out");
    assert!(!leaves_enough(&config, &ruled(3), |_| true));
    let remove = ConfigChange::Expel(MemberId(1));
    assert!(!leaves_enough(&config, &remove, without_3));
}

#[test]
fn an_order_does_not_take_the_last_living_server_that_may_lead() {
    let mut config = voters(&[1, 2]);
    config.members.insert(MemberId(3), info(3, MemberRole::Logger));
    let without_2 = |id: MemberId| id != MemberId(2);
    let ranked = |config: &Config, id, priority| {
        let info = MemberInfo { priority, ..config.members[&MemberId(id)].clone() };
        ConfigChange::Update { put: vec![(MemberId(id), info)], remove: Vec::new() }
    };
    assert!(!leaves_enough(&config, &ranked(&config, 1, 0), without_2));
    assert!(leaves_enough(&config, &ranked(&config, 1, 0), |_| true));
    assert!(leaves_enough(&config, &ranked(&config, 2, 0), without_2));
    config.members.get_mut(&MemberId(1)).unwrap().priority = 0;
    assert!(
        leaves_enough(&config, &ranked(&config, 3, 20), without_2),
        "it is no worse than before"
    );
    assert!(leaves_enough(&config, &ranked(&config, 1, 50), without_2), "the way out");
}

/// Two zones are needed, and one of them has 3 and 4, of which 4 is dead: 3 stays a voter while it is away.
#[test]
fn who_leaves_stays_a_voter_where_nothing_could_be_committed_without_it() {
    let mut config = voters(&[1, 2, 3, 4, 5]);
    for (id, zone) in [(1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "a")] {
        config.members.get_mut(&MemberId(id)).unwrap().zone = zone.into();
    }
    config.rules.zones_min = 2;
    let living = |id: MemberId| id != MemberId(4);
    assert_eq!(removal(&config, MemberId(3), living), None);
    assert!(removal(&config, MemberId(3), |_| true).is_some());
    assert!(removal(&config, MemberId(1), living).is_some());
    config.rules.zones_min = 1;
    assert!(removal(&config, MemberId(3), living).is_some());
}

#[test]
fn just_a_majority_with_the_leader_is_needed() {
    let needed = |config: &Config, leader: Option<u128>| -> Vec<u128> {
        let leader = leader.map(MemberId);
        let is = |id: &MemberId| needed(config, leader, *id);
        config.members.keys().filter(|id| is(id)).map(|id| id.0).collect()
    };
    assert_eq!(needed(&voters(&[1, 2, 3]), Some(3)), [1, 3]);
    assert_eq!(needed(&voters(&[1, 2, 3]), Some(1)), [1, 2]);
    assert_eq!(needed(&voters(&[1, 2, 3]), None), [1, 2]);
    assert_eq!(needed(&voters(&[1, 2, 3, 4, 5]), Some(2)), [1, 2, 3]);
    assert_eq!(needed(&voters(&[1, 2]), Some(2)), [1, 2]);
    let mut config = voters(&[2, 3, 4]);
    config.members.insert(MemberId(1), info(1, MemberRole::Learner));
    assert_eq!(needed(&config, Some(4)), [2, 4]);
}

#[test]
fn a_wiped_node_replaces_its_dead_predecessor_only() {
    let config = voters(&[1, 2, 3]);
    let alive = |id: MemberId| id != MemberId(3);

    let admit = |addr, name| admission(&config, &identity(8, addr, name), &Wish::default(), alive);
    assert_eq!(parts(admit("host3:1", "new").unwrap().unwrap()).1, [MemberId(3)]);
    assert_eq!(parts(admit("elsewhere:1", "n3").unwrap().unwrap()).1, [MemberId(3)]);
    let (put, remove) = parts(admit("elsewhere:1", "n2").unwrap().unwrap());
    assert!(remove.is_empty());
    assert_eq!((put[0].0, put[0].1.role), (MemberId(8), MemberRole::Voter));
    assert!(put[0].1.joining, "until it has caught up");
    // Two processes cannot both be there: the one in the configuration is waited for.
    assert_eq!(admit("host2:1", "new"), Err(NotYet::SameAddress(MemberId(2))));
}

#[test]
fn who_has_caught_up_and_gone_gets_no_vote() {
    let mut config = voters(&[1, 2, 3]);
    let newcomer = MemberInfo { joining: true, ..info(4, MemberRole::Voter) };
    config.members.insert(MemberId(4), newcomer);
    let last = LogPosition { term: 3, index: 9 };
    let peer = PeerStatus {
        id: MemberId(4),
        matched: 9,
        next: 10,
        silent_ms: 5,
        still_ms: 5,
        snapshotting: false,
        proved: true,
    };
    let status = Status {
        id: MemberId(1),
        role: RoleState::Leader { term: 3 },
        term: 3,
        leader: Some(MemberId(1)),
        last,
        persisted: 9,
        commit: 9,
        commit_told: 9,
        config,
        config_index: 8,
        peers: vec![peer],
        lease_valid: true,
    };
    let (put, _) = parts(promotion(&status, |_| true, 1000).expect("it has caught up"));
    assert!(put[0].0 == MemberId(4) && put[0].1.is_voter());
    assert_eq!(promotion(&status, |id| id != MemberId(4), 1000), None, "its connection ended");
    assert_eq!(promotion(&status, |_| true, 4), None, "nor one that is silent");
}

#[test]
fn a_name_that_several_share_tells_nobody_apart() {
    let mut config = voters(&[1, 2, 3]);
    config.members.values_mut().for_each(|info| info.name = "localhost".into());
    let change =
        admission(&config, &identity(8, "host8:1", "localhost"), &Wish::default(), |_| false);
    assert!(parts(change.unwrap().unwrap()).1.is_empty());
}

#[test]
fn a_known_member_keeps_its_role_when_its_address_changes() {
    let config = voters(&[1, 2]);
    let wish = Wish { role: MemberRole::Logger, priority: 3, zone: "z".into() };
    assert_eq!(admission(&config, &identity(2, "host2:1", "n2"), &wish, |_| true), Ok(None));
    let moved = admission(&config, &identity(2, "host2:9", "n2"), &wish, |_| true);
    let (put, remove) = parts(moved.unwrap().unwrap());
    assert_eq!(put[0].1, MemberInfo { addr: "host2:9".into(), ..info(2, MemberRole::Voter) });
    assert!(remove.is_empty());
    let known = [identity(1, "host1:1", "n1"), identity(2, "host2:9", "n2")];
    assert_eq!(parts(readdress(&config, known.iter()).unwrap().1).0, put);
    assert_eq!(readdress(&config, known[..1].iter()), None);
}

#[test]
fn a_leaver_takes_dead_voters_along_as_far_as_needed() {
    let removed = |config: &Config, leaver, living: &[u128]| {
        let change = removal(config, MemberId(leaver), |id| living.contains(&id.0))?;
        Some(parts(change).1.iter().map(|id| id.0).collect::<Vec<_>>())
    };
    assert_eq!(removed(&voters(&[1, 2, 3]), 3, &[1, 2, 3]), Some(vec![3]));
    assert_eq!(removed(&voters(&[1, 2, 3]), 3, &[1, 3]), Some(vec![3, 2]));
    assert_eq!(removed(&voters(&[1, 2]), 2, &[1, 2]), Some(vec![2]));
    // Four of five live; without the leaver three of four: a majority.
    assert_eq!(removed(&voters(&[1, 2, 3, 4, 5]), 5, &[1, 2, 3, 5]), Some(vec![5]));
    assert_eq!(removed(&voters(&[1, 2, 3, 4, 5]), 5, &[1, 2, 5]), Some(vec![5, 3]));
    // Two of five: the others would have to agree.
    assert_eq!(removed(&voters(&[1, 2, 3, 4, 5]), 5, &[1, 5]), None);
}

#[test]
fn a_new_member_is_what_it_wishes_but_votes_only_when_it_has_caught_up() {
    let admitted = |role| {
        let wish = Wish { role, priority: 7, zone: "z".into() };
        let change = admission(&voters(&[1]), &identity(8, "host8:1", "n8"), &wish, |_| true);
        parts(change.unwrap().unwrap()).0.remove(0).1
    };
    let logger = admitted(MemberRole::Logger);
    assert!(logger.joining && !logger.is_voter());
    assert_eq!((logger.role, logger.priority, logger.zone.as_str()), (MemberRole::Logger, 7, "z"));
    assert!(!admitted(MemberRole::Learner).joining, "it has nothing to wait for");
}

#[test]
fn a_voter_is_expelled_only_by_a_majority() {
    let expelled = |config: &Config, living: &[u128], long: &[u128]| {
        let change = expulsion(config, |id| long.contains(&id.0), |id| living.contains(&id.0));
        change.map(|change| parts(change).1)
    };
    let three = voters(&[1, 2, 3]);
    assert_eq!(expelled(&three, &[1, 2], &[]), None);
    assert_eq!(expelled(&three, &[1, 2], &[3]), Some(vec![MemberId(3)]));
    // One of two cannot tell whether the other lives.
    assert_eq!(expelled(&voters(&[1, 2]), &[1], &[2]), None);
    assert_eq!(expelled(&voters(&[1, 2, 3, 4, 5]), &[1, 2, 3], &[4, 5]), Some(vec![MemberId(4)]));
    assert_eq!(expelled(&voters(&[1, 2, 3, 4, 5]), &[1, 2], &[3, 4, 5]), None);
    let rules = Rules { paused: true, ..Rules::default() };
    assert_eq!(expelled(&Config { rules, ..three }, &[1, 2], &[3]), None);
}

#[test]
fn who_still_counts_in_a_change_stays() {
    let mut config = voters(&[1]);
    assert!(is_all(&config, MemberId(1)) && is_out(&config, MemberId(3)));
    // 2 and 3 are being removed: until that is done, one of them has to agree.
    config.outgoing = vec![MemberId(1), MemberId(2), MemberId(3)];
    for id in [1, 2, 3].map(MemberId) {
        assert!(!is_all(&config, id) && !is_out(&config, id), "{id}");
    }
    assert!(!is_all(&voters(&[1, 2]), MemberId(1)));
}

#[test]
fn a_level_is_raised_once_every_member_has_said_that_it_knows_it() {
    let mut config = voters(&[1, 2, 3]);
    config.level = 1;
    config.members.insert(MemberId(4), info(4, MemberRole::Logger));
    config.members.insert(MemberId(5), info(5, MemberRole::Learner));
    let raised =
        |fifth: Option<Level>| raise(&config, |id| if id == MemberId(5) { fifth } else { Some(3) });
    assert_eq!(raised(None), None, "it was not heard of");
    assert_eq!(raised(Some(1)), None);
    assert_eq!(raised(Some(2)), Some(ConfigChange::Level(2)));
    assert_eq!(raised(Some(9)), Some(ConfigChange::Level(2)), "one at a time");
}

fn with_key(key: u8, id: u128) -> PeerIdentity {
    let key = KeyId([key; 32]);
    PeerIdentity { key, ..identity(id, &format!("host{id}:1"), &format!("n{id}")) }
}

#[test]
fn a_newcomer_is_known_by_the_key_that_it_shows() {
    let change = admission(&voters(&[1, 2]), &with_key(7, 8), &Wish::default(), |_| true);
    assert_eq!(parts(change.unwrap().unwrap()).0[0].1.key, KeyId([7; 32]));
}

#[test]
fn the_first_key_that_a_member_shows_is_its_own_and_no_other_takes_its_place() {
    let mut config = voters(&[1, 2]);
    assert_eq!(check_key(&config, &with_key(7, 2)), Ok(()), "none is known");
    let known = [with_key(7, 2)];
    let (put, _) = parts(readdress(&config, known.iter()).unwrap().1);
    config.members.extend(put);
    assert_eq!(config.members[&MemberId(2)].key, KeyId([7; 32]));
    for shown in [7, 0] {
        assert_eq!(check_key(&config, &with_key(shown, 2)), Ok(()), "it, or without protection");
        assert_eq!(readdress(&config, [with_key(shown, 2)].iter()), None);
    }
    let refusal = check_key(&config, &with_key(8, 2)).unwrap_err();
    assert!(refusal.code == RefusalCode::Stale && refusal.text.contains("member.key"));
    assert_eq!(readdress(&config, [with_key(8, 2)].iter()), None);
    assert_eq!(admission(&config, &with_key(8, 2), &Wish::default(), |_| true), Ok(None));
    assert_eq!(check_key(&config, &with_key(8, 3)), Ok(()), "no member yet");
}

#[test]
fn a_node_is_one_member_however_often_it_asks() {
    let mut config = voters(&[1, 2]);
    config.members.get_mut(&MemberId(2)).unwrap().key = KeyId([7; 32]);
    let admit = |alive: bool, shown: &PeerIdentity| {
        let lives = |id: MemberId| alive || id != MemberId(2);
        admission(&config, shown, &Wish::default(), lives)
    };
    assert_eq!(admit(true, &with_key(7, 8)), Err(NotYet::SameKey(MemberId(2))));
    let (put, remove) = parts(admit(false, &with_key(7, 8)).unwrap().unwrap());
    assert_eq!((put[0].0, remove), (MemberId(8), vec![MemberId(2)]), "its id was lost");
    assert!(parts(admit(true, &with_key(9, 8)).unwrap().unwrap()).1.is_empty());
}

#[test]
fn the_place_of_who_is_away_is_taken_with_a_certificate_for_the_same_name_only() {
    let mut config = voters(&[1, 2]);
    config.members.get_mut(&MemberId(2)).unwrap().key = with_name(7, 2).key;
    let admit = |name, addr: &str| {
        let guest = PeerIdentity { name: "n2".into(), addr: addr.into(), ..with_name(name, 8) };
        admission(&config, &guest, &Wish::default(), |id| id != MemberId(2))
    };
    let addr = &config.members[&MemberId(2)].addr;
    assert_eq!(admit(9, addr), Err(NotYet::OtherName(MemberId(2))));
    assert!(parts(admit(9, "new:1").unwrap().unwrap()).1.is_empty(), "beside its namesake");
    for addr in [addr, "new:1"] {
        assert_eq!(parts(admit(7, addr).unwrap().unwrap()).1, [MemberId(2)], "its disk was lost");
    }
}

/// With a certificate for this name.
fn with_name(name: u8, id: u128) -> PeerIdentity {
    PeerIdentity { key: KeyId::of_name([name; KeyId::NAME_BYTES]), ..with_key(0, id) }
}

#[test]
fn the_name_of_a_certificate_is_noted_at_the_level_that_knows_names() {
    let mut config = Config { level: NAMED_KEYS - 1, ..voters(&[1, 2]) };
    let admitted = |config: &Config| {
        let change = admission(config, &with_name(7, 8), &Wish::default(), |_| true);
        parts(change.unwrap().unwrap()).0[0].1.key
    };
    assert_eq!(admitted(&config), KeyId::default(), "an older release would refuse it ever after");
    assert_eq!(readdress(&config, [with_name(7, 2)].iter()), None);
    config.level = NAMED_KEYS;
    assert_eq!(admitted(&config), with_name(7, 8).key);
    let (put, _) = parts(readdress(&config, [with_name(7, 2)].iter()).unwrap().1);
    config.members.extend(put);
    assert_eq!(check_key(&config, &with_name(7, 2)), Ok(()));
    assert_eq!(check_key(&config, &with_name(9, 3)), Ok(()), "no member yet");
    let refusal = check_key(&config, &with_name(8, 2)).unwrap_err();
    assert!(refusal.code == RefusalCode::Stale && refusal.text.contains("another name"));
    assert_eq!(readdress(&config, [with_name(8, 2)].iter()), None, "the first one stays");
}

#[test]
fn a_group_goes_over_from_a_secret_to_certificates_and_back() {
    let mut config = Config { level: NAMED_KEYS, ..voters(&[1, 2]) };
    for shown in [with_key(7, 2), with_name(7, 2), with_key(8, 2), with_name(8, 2)] {
        assert_eq!(check_key(&config, &shown), Ok(()), "what it was known by is of another kind");
        let (put, _) = parts(readdress(&config, [shown.clone()].iter()).unwrap().1);
        config.members.extend(put);
        assert_eq!(config.members[&MemberId(2)].key, shown.key);
        assert_eq!(readdress(&config, [shown, with_key(0, 2)].iter()), None);
    }
    assert!(check_key(&config, &with_name(7, 2)).is_err());
}
