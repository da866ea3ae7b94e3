//! The checks of the importers.

use std::path::Path;

use satchel_core::data_dir;
use satchel_host::CacheStatus;
use satchel_registry::{Plugins, Registry};
use satchel_server::config::Config;

use super::{DoctorReport, text};

/// The reason that the daemon gives as well.
const UNREADABLE: &str = "PLUGINS_UNREADABLE";

impl DoctorReport {
    /// Compiles the importers that come with the program, or reads them from the cache.
    pub(super) fn check_built_in_importers(&mut self, config: &Config) {
        let plugins = Plugins::built_in(config.code_cache.clone());
        match plugins.load_all() {
            Ok(all) => self.checked.push(format!("built-in importers: {} loaded", all.len())),
            Err(error) => {
                self.add_error("IMPORTERS", &error, "reinstall satchel");
            }
        }
        match plugins.cache() {
            CacheStatus::On { folder, rejected } if rejected > 0 => {
                let entries = text::count(rejected as u64, "entry", "entries");
                let folder = folder.display();
                self.repaired.push(format!(
                    "compiled importers in {folder}: {entries} damaged or not written by you, and recompiled"
                ));
            }
            CacheStatus::On { folder, .. } => {
                self.checked.push(format!("compiled importers in {}", folder.display()));
            }
            CacheStatus::Unusable { reason } => {
                self.checked.push(format!("importers are compiled at every start: {reason}"));
            }
            CacheStatus::Off => {}
        }
    }

    /// Checks that the packages of installed importers are the ones that were installed. A daemon may be running.
    pub(super) fn check_installed_importers(&mut self, data_dir: &Path) {
        let registry = match Registry::open(&data_dir.join(data_dir::PLUGINS)) {
            Ok(registry) => registry,
            Err(error) => {
                let fix = satchel_source::chain(&error);
                // A running daemon has reported it already.
                if self.problems.iter().all(|problem| problem.reason != UNREADABLE) {
                    self.add_problem(UNREADABLE, "the list of installed importers cannot be read", &fix);
                }
                return;
            }
        };
        let damaged = registry.damaged();
        for (installed, problem) in &damaged {
            let (name, version) = (&installed.manifest.name, &installed.manifest.version);
            let message = format!("the importer {name} {version} cannot be used: {problem}");
            let fix =
                format!("run `satchel plugins remove {name} --version {version}`, and install it again");
            self.add_problem("PLUGIN_DAMAGED", &message, &fix);
        }
        let intact = registry.installed().len() - damaged.len();
        if intact > 0 {
            let packages = text::count(intact as u64, "package is intact", "packages are intact");
            self.checked.push(format!("installed importers: {packages}"));
        }
    }
}
