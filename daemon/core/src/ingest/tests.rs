//! Checks that are made before a source is read.

use satchel_plugins::BUILT_IN;
use satchel_store::OpenOptions;

use super::*;
use crate::clock::SystemClock;

#[test]
fn known_providers_are_listed_without_compiling() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), OpenOptions::default(), &mut |_| {}).unwrap();
    let (plugins, limits) = (Arc::new(Plugins::built_in(None)), Limits::default());
    let clock = Arc::new(SystemClock);
    let imports = Imports::new(store, Arc::clone(&plugins), clock, limits, PluginLimits::default()).unwrap();
    let mut all: Vec<String> = BUILT_IN.iter().map(|one| one.name.to_owned()).collect();
    all.push(request::PAM_PLATFORM.to_owned());
    imports.0.check(&all).unwrap();
    imports.0.check(&[]).unwrap();
    let (path, provider) = ("/a.zip".into(), Some("nobody".to_owned()));
    let unknown = ImportRequest { path, provider, plugin: None, again: false, dry_run: false, apply: None };
    assert!(matches!(imports.start(unknown), Err(IngestError::UnknownProvider { .. })));
    assert!(!plugins.loaded_any());
}
