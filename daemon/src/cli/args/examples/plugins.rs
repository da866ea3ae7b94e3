//! The examples of `plugins`.

pub(in crate::cli::args) const PLUGINS: &str = "\
Examples:
  satchel plugins list
  satchel plugins install ~/Downloads/example-notes-1.0.0.satchel
  satchel plugins upgrade ~/Downloads/example-notes-1.1.0.satchel
  satchel plugins remove example-notes

To write an importer of your own:
  satchel plugins new my-notes --language python
  satchel plugins build my-notes
  satchel plugins test my-notes";

pub(in crate::cli::args) const LIST: &str = "\
Examples:
  satchel plugins list
  satchel plugins list --json | jq '.plugins[] | select(.built_in | not)'";

pub(in crate::cli::args) const SHOW: &str = "\
Examples:
  satchel plugins show example-notes
  satchel plugins show example-notes --version 1.0.0";

pub(in crate::cli::args) const INSTALL: &str = "\
Examples:
  satchel plugins install ~/Downloads/example-notes-1.0.0.satchel
  satchel plugins install --dry-run ~/Downloads/example-notes-1.0.0.satchel
  satchel plugins install --yes --json example-notes-1.0.0.satchel
  satchel plugins install --unsigned my-notes/my-notes-0.1.0.satchel
  satchel plugins install --replace-built-in chatgpt-9.0.0.satchel

The first package that a key signed asks whether you trust the key; compare it with what the author
published. A later version has to be signed by the same key. A package that nobody signed needs
--unsigned, and one that has the name or platform of an importer of satchel --replace-built-in.";

pub(in crate::cli::args) const UPGRADE: &str = "\
Examples:
  satchel plugins upgrade ~/Downloads/example-notes-1.1.0.satchel
  satchel imports again --plugin example-notes";

pub(in crate::cli::args) const ENABLE: &str = "\
Examples:
  satchel plugins enable example-notes
  satchel plugins enable example-notes --version 1.0.0";

pub(in crate::cli::args) const DISABLE: &str = "\
Example:
  satchel plugins disable example-notes";

pub(in crate::cli::args) const REMOVE: &str = "\
Examples:
  satchel plugins remove example-notes
  satchel plugins remove example-notes --version 1.0.0";

pub(in crate::cli::args) const TRUST: &str = "\
Example:
  satchel plugins trust z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

pub(in crate::cli::args) const UNTRUST: &str = "\
Example:
  satchel plugins untrust z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

pub(in crate::cli::args) const KEYS: &str = "\
Examples:
  satchel plugins keys
  satchel plugins keys --json | jq -r '.authors[].public_key'";

pub(in crate::cli::args) const NEW: &str = "\
Examples:
  satchel plugins new my-notes --language rust
  satchel plugins new my-notes --language javascript ~/src/my-notes
  satchel plugins new my-notes --language python";

pub(in crate::cli::args) const BUILD: &str = "\
Examples:
  satchel plugins build
  satchel plugins build ~/src/my-notes
  satchel plugins build --sign";

pub(in crate::cli::args) const TEST: &str = "\
Examples:
  satchel plugins test
  satchel plugins test ~/src/my-notes --update
  satchel plugins test --bench ~/Downloads/notes-500-mb.json
  satchel plugins test my-notes-0.1.0.satchel --json";

pub(in crate::cli::args) const RUN: &str = "\
Examples:
  satchel plugins run my-notes-0.1.0.satchel ~/Downloads/notes.json
  satchel plugins run my-notes-0.1.0.satchel ~/Downloads/notes.zip --json | jq '.records[]'";

pub(in crate::cli::args) const KEY: &str = "\
Example:
  satchel plugins key new";

pub(in crate::cli::args) const KEY_NEW: &str = "\
Examples:
  satchel plugins key new
  satchel plugins key new --key-file /media/usb/author.key";

pub(in crate::cli::args) const SIGN: &str = "\
Examples:
  satchel plugins sign my-notes-0.1.0.satchel
  satchel plugins sign my-notes-0.1.0.satchel --key-file /media/usb/author.key";

pub(in crate::cli::args) const COMPILE_CHILD: &str = "\
Example:
  satchel plugins compile-child my-notes-0.1.0.satchel";
