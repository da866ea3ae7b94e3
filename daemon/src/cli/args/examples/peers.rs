//! The examples of `peers`, `sync` and `conflicts`.

pub(in crate::cli::args) const PEERS: &str = "\
Examples:
  satchel peers add K7M2N-4QXZ1-9D3TA-VB5RS-1CE0S --address 192.168.1.7:7443 --as desk
  satchel peers list
  satchel peers pause desk";

pub(in crate::cli::args) const ADD: &str = "\
Examples:
  satchel peers add K7M2N-4QXZ1-9D3TA-VB5RS-1CE0S --address 192.168.1.7:7443 --as desk
  satchel peers add \"satchel://pair?v=1&a=192.168.1.7:7443&f=AAAA&t=AAAA\" --as desk

On the other machine: satchel devices pair --as laptop --role peer";

pub(in crate::cli::args) const LIST: &str = "\
Examples:
  satchel peers list
  satchel peers list --json | jq '.peers[] | select(.in_step | not)'";

pub(in crate::cli::args) const SHOW: &str = "\
Example:
  satchel peers show desk";

pub(in crate::cli::args) const PAUSE: &str = "\
Example:
  satchel peers pause desk";

pub(in crate::cli::args) const RESUME: &str = "\
Example:
  satchel peers resume desk";

pub(in crate::cli::args) const SET_ADDRESS: &str = "\
Example:
  satchel peers set-address desk 192.168.1.7:7443 desk.example:7443";

pub(in crate::cli::args) const SET_ATTACHMENTS: &str = "\
Examples:
  satchel peers set-attachments desk on-demand
  satchel peers set-attachments desk all";

pub(in crate::cli::args) const RESTRICT: &str = "\
Examples:
  satchel peers restrict office --tag work --deny-tag private
  satchel peers restrict partner --platform chatgpt --created-since 2026 --exportable-only
  satchel peers restrict office --everything";

pub(in crate::cli::args) const REMOVE: &str = "\
Example:
  satchel peers remove desk";

pub(in crate::cli::args) const SYNC: &str = "\
Examples:
  satchel sync
  satchel sync desk --wait
  satchel sync status --json | jq -r .digest";

pub(in crate::cli::args) const SYNC_STATUS: &str = "\
Examples:
  satchel sync status
  satchel sync status --json | jq '.peers[].in_step'";

pub(in crate::cli::args) const SYNC_EXPORT: &str = "\
Examples:
  satchel sync export /media/stick/for-desk.age --for desk
  satchel sync export /media/stick/all-for-desk.age --for desk --full";

pub(in crate::cli::args) const SYNC_IMPORT: &str = "\
Examples:
  satchel sync import /media/stick/for-desk.age
  satchel sync import /media/stick/for-desk.age --json | jq .new_changes";

pub(in crate::cli::args) const CONFLICTS: &str = "\
Examples:
  satchel conflicts
  satchel conflicts --json | jq -r '.conflicts[].memory_id'
  satchel memories edit 9c41 --content \"Prefers metric units\"";
