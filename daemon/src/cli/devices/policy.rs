//! Policies: from options to requests.

use satchel_proto::v1::{DevicePolicy, DeviceRole, DeviceSelection};

use crate::cli::args::{ClearableRestriction, PolicyArgs};

/// Returns the policy of a new device.
pub(super) fn new(args: &PolicyArgs) -> DevicePolicy {
    let unset = DevicePolicy { role: DeviceRole::Owner.into(), ..DevicePolicy::default() };
    changed(unset, args, &[])
}

/// Returns a policy with those parts replaced that are given.
pub(super) fn changed(
    policy: DevicePolicy,
    args: &PolicyArgs,
    clear: &[ClearableRestriction],
) -> DevicePolicy {
    let DevicePolicy { role, scopes, entity, selection, trusted_writes } = policy;
    let DeviceSelection { platforms, tags, types, denied_tags } = selection.unwrap_or_default();
    let keep = |restriction| !clear.contains(&restriction);
    let new_role = args.role.map(|role| i32::from(role.to_wire()));
    // An empty list means the permissions of the role.
    let keep_scopes = keep(ClearableRestriction::Scope) && new_role.is_none_or(|new| new == role);
    DevicePolicy {
        role: new_role.unwrap_or(role),
        scopes: replaced(scopes, keep_scopes, args.scopes.iter().map(|scope| scope.to_wire().into())),
        entity,
        trusted_writes: args.trusted_writes || (trusted_writes && keep(ClearableRestriction::TrustedWrites)),
        selection: Some(DeviceSelection {
            platforms: replaced(
                platforms,
                keep(ClearableRestriction::Platform),
                args.platforms.iter().cloned(),
            ),
            tags: replaced(tags, keep(ClearableRestriction::Tag), args.tags.iter().cloned()),
            types: replaced(
                types,
                keep(ClearableRestriction::Type),
                args.types.iter().map(|kind| kind.to_wire().into()),
            ),
            denied_tags: replaced(
                denied_tags,
                keep(ClearableRestriction::DenyTag),
                args.denied_tags.iter().cloned(),
            ),
        }),
    }
}

/// Returns the new values if there are any; otherwise the old ones, unless they are cleared.
fn replaced<T>(old: Vec<T>, keep: bool, new: impl Iterator<Item = T>) -> Vec<T> {
    let new: Vec<T> = new.collect();
    match (new.is_empty(), keep) {
        (false, _) => new,
        (true, true) => old,
        (true, false) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{MemoryType, Scope};

    use super::*;
    use crate::cli::args::{DeviceRoleArg, MemoryTypeArg, ScopeArg};

    #[test]
    fn a_change_replaces_only_what_is_given() {
        let args = PolicyArgs {
            role: Some(DeviceRoleArg::Agent),
            tags: vec!["work".to_owned()],
            types: vec![MemoryTypeArg::Fact],
            scopes: vec![ScopeArg::MemoriesRead],
            ..PolicyArgs::default()
        };
        let policy = DevicePolicy { entity: "notes".to_owned(), ..new(&args) };
        assert_eq!(
            (policy.role, policy.scopes.as_slice()),
            (DeviceRole::Agent.into(), &[Scope::MemoriesRead.into()][..])
        );
        let platform = PolicyArgs { platforms: vec!["claude".to_owned()], ..PolicyArgs::default() };
        let changed_policy = changed(policy.clone(), &platform, &[ClearableRestriction::Tag]);
        let selection = changed_policy.selection.clone().unwrap_or_default();
        assert_eq!(selection.platforms, ["claude"]);
        assert_eq!(selection.tags, [""; 0]);
        assert_eq!(selection.types, [i32::from(MemoryType::Fact)]);
        assert_eq!(
            (changed_policy.scopes, changed_policy.entity),
            (policy.scopes.clone(), policy.entity.clone())
        );
        let reader = PolicyArgs { role: Some(DeviceRoleArg::Reader), ..PolicyArgs::default() };
        assert_eq!(changed(policy.clone(), &reader, &[]).scopes, [0; 0], "those of the new role");
        let trusted = changed(policy, &PolicyArgs { trusted_writes: true, ..PolicyArgs::default() }, &[]);
        assert!(trusted.trusted_writes && changed(trusted.clone(), &reader, &[]).trusted_writes);
        let clear = [ClearableRestriction::TrustedWrites];
        assert!(!changed(trusted, &PolicyArgs::default(), &clear).trusted_writes);
    }
}
