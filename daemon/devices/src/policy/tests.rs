use proptest::{collection, prelude::*, sample};
use satchel_pam::memory::AccessGrant;

use super::*;

fn words() -> impl Strategy<Value = BTreeSet<String>> {
    collection::btree_set(sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned), 0..3)
}

fn selection() -> impl Strategy<Value = Selection> {
    (words(), words(), words(), words()).prop_map(|(platforms, tags, types, denied_tags)| Selection {
        platforms,
        tags,
        types,
        denied_tags,
    })
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

/// A memory's platform, tags, type and access block.
type Parts = (String, Vec<String>, String, Option<Access>);

fn memory() -> impl Strategy<Value = Parts> {
    (words(), words(), words(), access()).prop_map(|(platform, tags, kind, access)| {
        let first = |set: BTreeSet<String>| set.into_iter().next().unwrap_or_else(|| "d".to_owned());
        (first(platform), tags.into_iter().collect(), first(kind), access)
    })
}

fn facts((platform, tags, kind, access): &Parts) -> MemoryFacts<'_> {
    MemoryFacts { platform, tags, memory_type: kind, access: access.as_ref() }
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
        let Selection { platforms, tags, types, denied_tags } = &policy.selection;
        let platform = platforms.is_empty() || platforms.contains(&memory.0);
        let tagged = tags.is_empty() || memory.1.iter().any(|tag| tags.contains(tag));
        let denied = memory.1.iter().any(|tag| denied_tags.contains(tag));
        let kind = types.is_empty() || types.contains(&memory.2);
        if !(platform && tagged && kind) || denied {
            prop_assert_eq!(policy.access_to(&facts(&memory)), MemoryAccess::default());
        }
        if !(platform && tagged) || denied {
            prop_assert!(!policy.reads_conversation(&memory.0, &memory.1, own));
        }
    }

    #[test]
    fn an_unrestricted_device_reads_everything(policy in policy(), memory in memory(), own in any::<bool>()) {
        if policy.unrestricted() {
            prop_assert!(policy.access_to(&facts(&memory)).read);
            prop_assert!(policy.reads_conversation(&memory.0, &memory.1, own));
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
            (policy.access_to(&facts(&memory)), policy.reads_conversation(&memory.0, &memory.1, false));
        policy.role = Role::Owner;
        let owner = policy.access_to(&facts(&memory));
        prop_assert!(agent.read <= owner.read && agent.write <= owner.write && agent.delete <= owner.delete);
        prop_assert!(agent_reads <= policy.reads_conversation(&memory.0, &memory.1, own));
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

fn may(policy: &Policy, access: Option<&Access>) -> (bool, bool, bool) {
    let may = policy.access_to(&MemoryFacts { platform: "chatgpt", tags: &[], memory_type: "fact", access });
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
    assert!(
        owner.reads_conversation("chatgpt", &[], false) && reader.reads_conversation("chatgpt", &[], false)
    );
    assert!(
        !agent.reads_conversation("chatgpt", &[], false) && agent.reads_conversation("chatgpt", &[], true)
    );
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
    assert!(!peer.unrestricted() && !peer.reads_conversation("chatgpt", &[], true));
    let facts = MemoryFacts { platform: "chatgpt", tags: &[], memory_type: "fact", access: None };
    assert_eq!(peer.access_to(&facts), MemoryAccess::default());
    let more = Policy { scopes: [Scope::Sync, Scope::MemoriesRead].into(), ..peer.clone() };
    let less = Policy { scopes: BTreeSet::new(), ..peer.clone() };
    let part = Selection { tags: ["work".to_owned()].into(), ..Selection::default() };
    let restricted = Policy { selection: part, ..peer };
    for wrong in [more, less, restricted] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    for role in [Role::Owner, Role::Reader, Role::Agent] {
        let policy = Policy::for_role(role, "x");
        assert!(policy.check().is_ok() && !policy.may(Scope::Sync), "{role:?}");
        let scopes = policy.scopes.iter().copied().chain([Scope::Sync]).collect();
        assert!(Policy { scopes, ..policy }.check().is_err(), "{role:?}");
    }
}
