//! The examples of `devices`, `pair` and `servers`.

pub(in crate::cli::args) const DEVICES: &str = "\
Examples:
  satchel devices pair --as laptop
  satchel devices list
  satchel devices revoke laptop --reason lost";

pub(in crate::cli::args) const PAIR_DEVICE: &str = "\
Examples:
  satchel devices pair --as laptop
  satchel devices pair --as tablet --role reader --deny-tag health
  satchel devices pair --as notes-app --role agent --platform chatgpt --for 10m
  satchel devices pair --as office --role peer --tag work
  satchel devices pair --as laptop --json | jq -r .uri";

pub(in crate::cli::args) const LIST: &str = "\
Examples:
  satchel devices list
  satchel devices list --all --json";

pub(in crate::cli::args) const SHOW: &str = "\
Example:
  satchel devices show laptop";

pub(in crate::cli::args) const RENAME: &str = "\
Example:
  satchel devices rename laptop \"old laptop\"";

pub(in crate::cli::args) const UPDATE: &str = "\
Examples:
  satchel devices update laptop --role reader
  satchel devices update notes-app --tag work --deny-tag health
  satchel devices update notes-app --clear tag";

pub(in crate::cli::args) const REVOKE: &str = "\
Examples:
  satchel devices revoke laptop
  satchel devices revoke laptop --reason \"lost on the train\"";

pub(in crate::cli::args) const LOG: &str = "\
Examples:
  satchel devices log
  satchel devices log laptop --limit 200
  satchel devices log --json | jq '.calls[] | select(.code != 0)'";

pub(in crate::cli::args) const TOKEN: &str = "\
Examples:
  satchel devices token --as backup-script --role reader --for 30d
  satchel devices token --as dashboard --scope memories-read --for 12h --json | jq -r .token";

pub(in crate::cli::args) const PAIR: &str = "\
Examples:
  satchel pair K7M2N-4QXZ1-9D3TA-VB5RS-1CE0S --address 192.168.1.7:7443
  satchel pair \"satchel://pair?v=1&a=192.168.1.7:7443&f=AAAA&t=AAAA\" --as home
  satchel pair - --address desk.example:7443 --name laptop

The code is checked against the key of the daemon before anything is sent to it.";

pub(in crate::cli::args) const SERVERS: &str = "\
Examples:
  satchel servers list
  satchel servers set-address home 192.168.1.7:7443 desk.example:7443
  satchel memories list --server home";

pub(in crate::cli::args) const SERVERS_LIST: &str = "\
Examples:
  satchel servers list
  satchel servers list --json | jq -r '.servers[].name'";

pub(in crate::cli::args) const SERVERS_SHOW: &str = "\
Example:
  satchel servers show home";

pub(in crate::cli::args) const SERVERS_SET_ADDRESS: &str = "\
Example:
  satchel servers set-address home 192.168.1.7:7443 desk.example:7443";

pub(in crate::cli::args) const SERVERS_REMOVE: &str = "\
Example:
  satchel servers remove home";
