//! The databases among the fixtures of importers have exactly what the scripts beside their tests write.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, types::Value};

/// The statement and the rows of each table.
type Contents = BTreeMap<String, (String, Vec<Vec<Value>>)>;

fn contents(connection: &Connection) -> Result<Contents> {
    let mut tables =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables = tables
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?.unwrap_or_default())))?;
    let mut all = Contents::new();
    for table in tables {
        let (name, statement): (String, String) = table?;
        let mut select = connection.prepare(&format!("SELECT * FROM \"{name}\" ORDER BY rowid"))?;
        let columns = select.column_count();
        let rows = select.query_map([], |row| (0..columns).map(|column| row.get(column)).collect())?;
        all.insert(name, (statement, rows.collect::<rusqlite::Result<_>>()?));
    }
    Ok(all)
}

/// Opens a copy of a fixture, because SQLite moves its log into it.
fn open_copy(path: &Path, folder: &Path) -> Result<Connection> {
    let copy = folder.join("copy.db");
    fs::copy(path, &copy)?;
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if log.exists() {
        fs::copy(log, folder.join("copy.db-wal"))?;
    }
    Ok(Connection::open(copy)?)
}

/// The databases in a folder and below it.
fn databases(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(databases(&path)?);
        } else if fs::read(&path)?.starts_with(b"SQLite format 3\0") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The scripts of all importers, by the fixture that they are for.
fn scripts() -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut scripts = BTreeMap::new();
    for plugin in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins"))? {
        let plugin = plugin?.path();
        let Ok(entries) = fs::read_dir(plugin.join("tests/databases")) else { continue };
        for entry in entries {
            let script = entry?.path();
            let fixture = plugin.join("fixtures").join(script.file_stem().context("a name")?);
            scripts.insert(fixture, script);
        }
    }
    Ok(scripts)
}

#[test]
fn databases_have_the_rows_of_their_scripts() -> Result<()> {
    let scripts = scripts()?;
    ensure!(scripts.len() >= 7, "{scripts:?}");
    for (fixture, script) in &scripts {
        let expected = Connection::open_in_memory()?;
        // Some fixtures lack what others refer to.
        expected.execute_batch("PRAGMA foreign_keys = OFF")?;
        expected.execute_batch(&fs::read_to_string(script)?).with_context(|| format!("{script:?}"))?;
        let expected = contents(&expected)?;
        let mut found = databases(&fixture.join("input"))?.into_iter();
        // Beside it may be one that is none, so that importers have to refuse it.
        let same = found.any(|database| {
            let read = || contents(&open_copy(&database, tempfile::tempdir()?.path())?);
            read().is_ok_and(|read| read == expected)
        });
        ensure!(same, "no database in {fixture:?} has what {script:?} writes");
    }
    Ok(())
}
