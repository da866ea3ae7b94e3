//! Policies: from options to requests.

use satchel_proto::v1::{DevicePolicy, DeviceRole, DeviceSelection};

use crate::cli::{
    args::{ClearableRestriction, PolicyArgs, SelectionArgs},
    error::CliError,
    time::Calendar,
};

/// Returns the policy of a new device.
///
/// # Errors
/// Fails for a text that is not a time.
pub(super) fn new(args: &PolicyArgs, calendar: &Calendar) -> Result<DevicePolicy, CliError> {
    let unset = DevicePolicy { role: DeviceRole::Owner.into(), ..DevicePolicy::default() };
    changed(unset, args, &[], calendar)
}

/// Returns a policy with those parts replaced that are given.
///
/// # Errors
/// Fails for a text that is not a time.
pub(super) fn changed(
    policy: DevicePolicy,
    args: &PolicyArgs,
    clear: &[ClearableRestriction],
    calendar: &Calendar,
) -> Result<DevicePolicy, CliError> {
    let DevicePolicy { role, scopes, entity, selection, trusted_writes } = policy;
    let keep = |restriction| !clear.contains(&restriction);
    let new_role = args.role.map(|role| i32::from(role.to_wire()));
    // An empty list means the permissions of the role.
    let keep_scopes = keep(ClearableRestriction::Scope) && new_role.is_none_or(|new| new == role);
    let given = self::selection(&args.selection, calendar)?;
    Ok(DevicePolicy {
        role: new_role.unwrap_or(role),
        scopes: replaced(scopes, keep_scopes, args.scopes.iter().map(|scope| scope.to_wire().into())),
        entity,
        trusted_writes: args.trusted_writes || (trusted_writes && keep(ClearableRestriction::TrustedWrites)),
        selection: Some(changed_selection(selection.unwrap_or_default(), given, clear)),
    })
}

/// Returns a selection with those parts replaced that are given.
fn changed_selection(
    selection: DeviceSelection,
    given: DeviceSelection,
    clear: &[ClearableRestriction],
) -> DeviceSelection {
    let DeviceSelection { platforms, tags, types, denied_tags, created, exportable_only } = selection;
    let keep = |restriction| !clear.contains(&restriction);
    DeviceSelection {
        platforms: replaced(platforms, keep(ClearableRestriction::Platform), given.platforms.into_iter()),
        tags: replaced(tags, keep(ClearableRestriction::Tag), given.tags.into_iter()),
        types: replaced(types, keep(ClearableRestriction::Type), given.types.into_iter()),
        denied_tags: replaced(
            denied_tags,
            keep(ClearableRestriction::DenyTag),
            given.denied_tags.into_iter(),
        ),
        created: given.created.or(created.filter(|_| keep(ClearableRestriction::Created))),
        exportable_only: given.exportable_only
            || (exportable_only && keep(ClearableRestriction::ExportableOnly)),
    }
}

/// Returns the selection that is given.
///
/// # Errors
/// Fails for a text that is not a time.
pub(in crate::cli) fn selection(
    args: &SelectionArgs,
    calendar: &Calendar,
) -> Result<DeviceSelection, CliError> {
    let SelectionArgs { platforms, tags, types, denied_tags, created_since, created_until, exportable_only } =
        args;
    Ok(DeviceSelection {
        platforms: platforms.clone(),
        tags: tags.clone(),
        types: types.iter().map(|kind| kind.to_wire().into()).collect(),
        denied_tags: denied_tags.clone(),
        created: calendar.created(created_since.as_deref(), created_until.as_deref())?,
        exportable_only: *exportable_only,
    })
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
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_proto::v1::{MemoryType, Scope};

    use super::*;
    use crate::cli::{
        args::{DeviceRoleArg, MemoryTypeArg, ScopeArg},
        time::fixed,
    };

    fn change(policy: &DevicePolicy, args: &PolicyArgs, clear: &[ClearableRestriction]) -> DevicePolicy {
        changed(policy.clone(), args, clear, &fixed()).unwrap()
    }

    #[test]
    fn a_change_replaces_only_what_is_given() {
        let selection = SelectionArgs {
            tags: vec!["work".to_owned()],
            types: vec![MemoryTypeArg::Fact],
            created_since: Some("2026".to_owned()),
            exportable_only: true,
            ..SelectionArgs::default()
        };
        let args = PolicyArgs {
            role: Some(DeviceRoleArg::Agent),
            selection,
            scopes: vec![ScopeArg::MemoriesRead],
            ..PolicyArgs::default()
        };
        let policy = DevicePolicy { entity: "notes".to_owned(), ..new(&args, &fixed()).unwrap() };
        assert_eq!(
            (policy.role, policy.scopes.as_slice()),
            (DeviceRole::Agent.into(), &[Scope::MemoriesRead.into()][..])
        );
        let platforms = vec!["claude".to_owned()];
        let selection = SelectionArgs { platforms, ..SelectionArgs::default() };
        let platform = PolicyArgs { selection, ..PolicyArgs::default() };
        let other = change(&policy, &platform, &[ClearableRestriction::Tag]);
        let selection = other.selection.clone().unwrap();
        assert_eq!(selection.platforms, ["claude"]);
        assert_eq!(selection.tags, [""; 0]);
        assert_eq!(selection.types, [i32::from(MemoryType::Fact)]);
        assert!(selection.exportable_only && selection.created.is_some_and(|range| range.end.is_none()));
        let clear = [ClearableRestriction::Created, ClearableRestriction::ExportableOnly];
        let selection = change(&policy, &platform, &clear).selection.unwrap();
        assert!(!selection.exportable_only && selection.created.is_none());
        assert_eq!((other.scopes, other.entity), (policy.scopes.clone(), policy.entity.clone()));
        let reader = PolicyArgs { role: Some(DeviceRoleArg::Reader), ..PolicyArgs::default() };
        assert_eq!(change(&policy, &reader, &[]).scopes, [0; 0], "those of the new role");
        let trusted = change(&policy, &PolicyArgs { trusted_writes: true, ..PolicyArgs::default() }, &[]);
        assert!(trusted.trusted_writes && change(&trusted, &reader, &[]).trusted_writes);
        let clear = [ClearableRestriction::TrustedWrites];
        assert!(!change(&trusted, &PolicyArgs::default(), &clear).trusted_writes);
    }

    #[test]
    fn a_time_that_cannot_be_read_is_refused() {
        let selection = SelectionArgs { created_since: Some("soon".to_owned()), ..SelectionArgs::default() };
        let args = PolicyArgs { selection, ..PolicyArgs::default() };
        let error = new(&args, &fixed()).unwrap_err().to_string();
        assert!(error.contains("--created-since"), "{error}");
    }
}
