use proptest::{collection, prelude::*, sample};
use satchel_pam::memory::AccessGrant;

use super::*;

fn words() -> impl Strategy<Value = BTreeSet<String>> {
    collection::btree_set(sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned), 0..3)
}

fn period() -> impl Strategy<Value = Period> {
    (proptest::option::of(0..9_i64), proptest::option::of(0..9_i64))
        .prop_map(|(from, until)| Period { from, until })
}

fn selection() -> impl Strategy<Value = Selection> {
    (words(), words(), words(), words(), period(), any::<bool>()).prop_map(
        |(platforms, tags, types, denied_tags, created, exportable_only)| Selection {
            platforms,
            tags,
            types,
            denied_tags,
            created,
            exportable_only,
        },
    )
}

fn role() -> impl Strategy<Value = Role> {
    sample::select(vec![Role::Owner, Role::Reader, Role::Agent])
}

fn policy() -> impl Strategy<Value = Policy> {
    let scopes = sample::subsequence(Scope::ALL.to_vec(), 0..=10);
    let entity = sample::select(vec!["", "one", "two"]).prop_map(str::to_owned);
    (role(), scopes, entity, prop_oneof![Just(Selection::default()), selection()]).prop_map(
        |(role, scopes, entity, selection)| Policy {
            role,
            scopes: scopes.into_iter().collect(),
            entity,
            selection,
            trusted_writes: false,
        },
    )
}

fn access() -> impl Strategy<Value = Option<Access>> {
    let permissions = vec![Permission::Read, Permission::Write, Permission::Delete];
    let grant = (sample::select(vec!["one", "two", "three"]), sample::subsequence(permissions, 1..=3))
        .prop_map(|(entity, permissions)| AccessGrant { entity: entity.to_owned(), permissions });
    let visibility = sample::select(vec![Visibility::Private, Visibility::Shared, Visibility::Public]);
    let access = (visibility, any::<bool>(), collection::vec(grant, 0..3))
        .prop_map(|(visibility, exportable, shared_with)| Access { visibility, exportable, shared_with });
    proptest::option::of(access)
}

/// A memory's platform, tags, type, access block and time of creation.
type Parts = (String, Vec<String>, String, Option<Access>, Option<i64>);

fn memory() -> impl Strategy<Value = Parts> {
    let created_at = proptest::option::of(0..9_i64);
    (words(), words(), words(), access(), created_at).prop_map(
        |(platform, tags, kind, access, created_at)| {
            let first = |set: BTreeSet<String>| set.into_iter().next().unwrap_or_else(|| "d".to_owned());
            (first(platform), tags.into_iter().collect(), first(kind), access, created_at)
        },
    )
}

fn record((platform, tags, _, _, created_at): &Parts) -> RecordFacts<'_> {
    RecordFacts { platform, tags, created_at: *created_at }
}

fn facts(parts: &Parts) -> MemoryFacts<'_> {
    MemoryFacts { record: record(parts), memory_type: &parts.2, access: parts.3.as_ref() }
}

proptest! {
    #[test]
    fn no_right_goes_without_its_scope(policy in policy(), memory in memory()) {
        let may = policy.access_to(&facts(&memory));
        prop_assert!(!may.read || policy.may(Scope::MemoriesRead));
        prop_assert!(!may.write || policy.may(Scope::MemoriesWrite));
        prop_assert!(!may.delete || policy.may(Scope::MemoriesDelete));
    }

    #[test]
    fn nothing_outside_of_the_selection_is_seen(policy in policy(), memory in memory(), own in any::<bool>()) {
        let Selection { platforms, tags, types, denied_tags, created, exportable_only } = &policy.selection;
        let platform = platforms.is_empty() || platforms.contains(&memory.0);
        let tagged = tags.is_empty() || memory.1.iter().any(|tag| tags.contains(tag));
        let denied = memory.1.iter().any(|tag| denied_tags.contains(tag));
        let kind = types.is_empty() || types.contains(&memory.2);
        let bounded = created.from.is_some() || created.until.is_some();
        let in_time = memory.4.map_or(!bounded, |at| {
            (created.from.unwrap_or(0)..created.until.unwrap_or(100)).contains(&at)
        });
        let kept = *exportable_only && memory.3.as_ref().is_some_and(|access| !access.exportable);
        if !(platform && tagged && kind && in_time) || denied || kept {
            prop_assert_eq!(policy.access_to(&facts(&memory)), MemoryAccess::default());
        }
        if !(platform && tagged && in_time) || denied {
            prop_assert!(!policy.reads_conversation(&record(&memory), own));
        }
    }

    #[test]
    fn an_unrestricted_device_reads_everything(policy in policy(), memory in memory(), own in any::<bool>()) {
        if policy.unrestricted() {
            prop_assert!(policy.access_to(&facts(&memory)).read);
            prop_assert!(policy.reads_conversation(&record(&memory), own));
        }
    }

    #[test]
    fn an_agent_has_only_what_is_public_or_granted_to_it(mut policy in policy(), memory in memory()) {
        policy.role = Role::Agent;
        let may = policy.access_to(&facts(&memory));
        let access = memory.3.clone().unwrap_or_default();
        let granted = |permission| access.shared_with.iter().any(|grant| {
            grant.entity == policy.entity && grant.permissions.contains(&permission)
        });
        if access.visibility == Visibility::Private {
            prop_assert_eq!(may, MemoryAccess::default());
        }
        prop_assert!(!may.read || access.visibility == Visibility::Public || granted(Permission::Read));
        prop_assert!(!may.write || granted(Permission::Write));
        prop_assert!(!may.delete || granted(Permission::Delete));
    }

    #[test]
    fn an_agent_never_has_more_than_an_owner(mut policy in policy(), memory in memory(), own in any::<bool>()) {
        policy.role = Role::Agent;
        let (agent, agent_reads) =
            (policy.access_to(&facts(&memory)), policy.reads_conversation(&record(&memory), false));
        policy.role = Role::Owner;
        let owner = policy.access_to(&facts(&memory));
        prop_assert!(agent.read <= owner.read && agent.write <= owner.write && agent.delete <= owner.delete);
        prop_assert!(agent_reads <= policy.reads_conversation(&record(&memory), own));
    }

    #[test]
    fn a_policy_is_read_as_it_is_written(policy in policy()) {
        let json = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
    }
}

fn shared(visibility: Visibility, permissions: &[Permission]) -> Access {
    let grant = AccessGrant { entity: "agent".to_owned(), permissions: permissions.to_vec() };
    let shared_with = if permissions.is_empty() { Vec::new() } else { vec![grant] };
    Access { visibility, exportable: true, shared_with }
}

const CHATGPT: RecordFacts<'static> = RecordFacts { platform: "chatgpt", tags: &[], created_at: None };

fn may(policy: &Policy, access: Option<&Access>) -> (bool, bool, bool) {
    let may = policy.access_to(&MemoryFacts { record: CHATGPT, memory_type: "fact", access });
    (may.read, may.write, may.delete)
}

#[test]
fn each_role_has_its_usual_rights() {
    let [owner, reader, agent] =
        [Role::Owner, Role::Reader, Role::Agent].map(|role| Policy::for_role(role, "agent"));
    assert_eq!(may(&owner, None), (true, true, true));
    assert_eq!(may(&reader, None), (true, false, false));
    assert_eq!(may(&agent, None), (false, false, false));
    assert!(owner.unrestricted() && reader.unrestricted() && !agent.unrestricted());
    assert!(Scope::ALL.iter().all(|scope| owner.may(*scope)));
    assert!(!reader.may(Scope::Devices) && !agent.may(Scope::MemoriesDelete));
    assert!(owner.reads_conversation(&CHATGPT, false) && reader.reads_conversation(&CHATGPT, false));
    assert!(!agent.reads_conversation(&CHATGPT, false) && agent.reads_conversation(&CHATGPT, true));
}

#[test]
fn an_agent_is_served_as_the_access_block_says() {
    use Permission::{Delete, Read, Write};
    let mut agent = Policy::for_role(Role::Agent, "agent");
    agent.scopes.insert(Scope::MemoriesDelete);
    let all = [Read, Write, Delete];
    for (access, expected) in [
        (shared(Visibility::Public, &[]), (true, false, false)),
        (shared(Visibility::Public, &[Write]), (true, true, false)),
        (shared(Visibility::Shared, &[]), (false, false, false)),
        (shared(Visibility::Shared, &[Read]), (true, false, false)),
        (shared(Visibility::Shared, &[Delete]), (false, false, true)),
        (shared(Visibility::Shared, &all), (true, true, true)),
        (shared(Visibility::Private, &all), (false, false, false)),
    ] {
        assert_eq!(may(&agent, Some(&access)), expected, "{access:?}");
    }
    let other = Policy::for_role(Role::Agent, "Agent");
    assert_eq!(may(&other, Some(&shared(Visibility::Shared, &all))), (false, false, false));
}

#[test]
fn unknown_roles_scopes_and_fields_are_refused() {
    let good =
        r#"{"role":"agent","scopes":["memories-read"],"entity":"one","selection":{"denied_tags":["x"]}}"#;
    assert!(serde_json::from_str::<Policy>(good).is_ok());
    for (from, to) in
        [("agent", "god"), ("memories-read", "memories-eat"), ("entity", "name"), ("denied_tags", "denied")]
    {
        assert!(serde_json::from_str::<Policy>(&good.replacen(from, to, 1)).is_err(), "{to}");
    }
    assert!(
        Policy::for_role(Role::Agent, " ").check().is_err()
            && Policy::for_role(Role::Reader, "").check().is_ok()
    );
}

#[test]
fn a_peer_exchanges_changes_and_does_nothing_else() {
    let peer = Policy::for_role(Role::Peer, "desk");
    assert!(peer.check().is_ok() && peer.may(Scope::Sync) && peer.scopes.len() == 1);
    assert!(!peer.unrestricted() && !peer.reads_conversation(&CHATGPT, true));
    let facts = MemoryFacts { record: CHATGPT, memory_type: "fact", access: None };
    assert_eq!(peer.access_to(&facts), MemoryAccess::default());
    let more = Policy { scopes: [Scope::Sync, Scope::MemoriesRead].into(), ..peer.clone() };
    let less = Policy { scopes: BTreeSet::new(), ..peer.clone() };
    let part = Selection { tags: ["work".to_owned()].into(), ..Selection::default() };
    assert!(Policy { selection: part, ..peer }.check().is_ok(), "it may get a part");
    for wrong in [more, less] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    for role in [Role::Owner, Role::Reader, Role::Agent] {
        let policy = Policy::for_role(role, "x");
        assert!(policy.check().is_ok() && !policy.may(Scope::Sync), "{role:?}");
        let scopes = policy.scopes.iter().copied().chain([Scope::Sync]).collect();
        assert!(Policy { scopes, ..policy }.check().is_err(), "{role:?}");
    }
}
