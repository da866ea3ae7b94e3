//! Reads what the real SQLite has written.

use std::{
    error::Error,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use rusqlite::{Connection, types::Value as Stored};

use super::*;

type Tested = Result<(), Box<dyn Error>>;

/// The database and its log, as they are while the program that writes them is running.
fn bundle(folder: &Path) -> Bundle {
    let files =
        ["a.db", "a.db-wal"].into_iter().filter_map(|name| Some((name, fs::read(folder.join(name)).ok()?)));
    Bundle::from_files(files)
}

/// Runs statements and reads the database while it is open.
fn written(statements: &str) -> Result<(tempfile::TempDir, Connection), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let connection = Connection::open(folder.path().join("a.db"))?;
    connection.execute_batch(statements)?;
    Ok((folder, connection))
}

/// All rows of a table as SQLite reads them.
fn expected(connection: &Connection, table: &str) -> rusqlite::Result<Vec<(i64, Vec<Value>)>> {
    let mut statement =
        connection.prepare(&format!("SELECT rowid AS _row, * FROM \"{table}\" ORDER BY rowid"))?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let values = (1..columns).map(|index| {
            Ok(match row.get(index)? {
                Stored::Null => Value::Null,
                Stored::Integer(number) => Value::Integer(number),
                Stored::Real(number) => Value::Real(number),
                Stored::Text(text) => Value::Text(text),
                Stored::Blob(bytes) => Value::Blob(bytes),
            })
        });
        Ok((row.get(0)?, values.collect::<rusqlite::Result<_>>()?))
    })?;
    rows.collect()
}

fn values(row: &Row<'_>, table: &Table) -> Result<Vec<Value>, ImportError> {
    table.columns().map(|column| row.get(column)).collect()
}

/// Compares all rows, in order and one by one.
fn compare(folder: &Path, connection: &Connection, names: &[&str]) -> Tested {
    let database = Database::open(&bundle(folder), "a.db")?;
    for name in names {
        let table = database.table(name).ok_or("the table is missing")?;
        let expected = expected(connection, name)?;
        let mut read = Vec::new();
        for row in database.rows(table) {
            let row = row?;
            read.push((row.rowid(), values(&row, table)?));
        }
        assert_eq!(read, expected, "{name}");
        for (rowid, row) in &expected {
            let found = database.row(table, *rowid)?.ok_or("the row is missing")?;
            assert_eq!(values(&found, table)?, *row, "{name} {rowid}");
        }
        let taken: Vec<i64> = expected.iter().map(|(rowid, _)| *rowid).collect();
        for other in taken.iter().map(|rowid| rowid.wrapping_add(1)).chain([i64::MIN, 0, i64::MAX]) {
            let found = database.row(table, other)?;
            assert_eq!(found.is_some(), taken.contains(&other), "{name} {other}");
        }
    }
    Ok(())
}

#[test]
fn columns_of_every_kind_are_read() -> Tested {
    let (folder, connection) = written(
        "CREATE TABLE chats (id INTEGER PRIMARY KEY, title VARCHAR(255) NOT NULL, \"at\" REAL, /* a, comment */ [odd name] BLOB,
           total INTEGER GENERATED ALWAYS AS (id + 1) VIRTUAL, kept TEXT CHECK (CAST(kept AS TEXT) <> ','), -- more
           UNIQUE (title, \"at\"));
         INSERT INTO chats (title, \"at\", [odd name], kept) VALUES ('It''s', 5, x'00ff', 'k'), ('Zoë 🎈', 1.5, NULL, NULL);
         CREATE TABLE keyed (name TEXT, number INTEGER, PRIMARY KEY (number));
         INSERT INTO keyed VALUES ('a', 7), ('b', -9);
         CREATE TABLE by_text (id TEXT PRIMARY KEY, n INT);
         INSERT INTO by_text VALUES ('a', 7), ('b', -9);
         CREATE TABLE descending (id INTEGER PRIMARY KEY DESC, n INT);
         INSERT INTO descending VALUES (4, 1), (3, 127), (2, 128), (1, -32769), (0, 9223372036854775807), (9, -8388609), (8, -140737488355329);
         ALTER TABLE keyed ADD COLUMN model TEXT DEFAULT 'none';
         ALTER TABLE keyed ADD COLUMN cost REAL DEFAULT -2;
         ALTER TABLE keyed ADD COLUMN words TEXT DEFAULT 12;
         ALTER TABLE keyed ADD COLUMN seen BOOLEAN NOT NULL DEFAULT TRUE;
         ALTER TABLE keyed ADD COLUMN empty TEXT;
         INSERT INTO keyed (name) VALUES ('c');
         CREATE TABLE copied AS SELECT * FROM keyed;",
    )?;
    let names = ["keyed", "by_text", "descending", "copied"];
    compare(folder.path(), &connection, &names)?;
    let database = Database::open(&bundle(folder.path()), "a.db")?;
    let chats = database.table("CHATS").ok_or("the table is missing")?;
    assert!(chats.has(&["ID", "odd name"]) && !chats.has(&["id", "odd"]));
    let row = database.row(chats, 2)?.ok_or("the row is missing")?;
    assert_eq!(
        values(&row, chats)?,
        [
            Value::Integer(2),
            Value::Text("Zoë 🎈".into()),
            Value::Real(1.5),
            Value::Null,
            Value::Null,
            Value::Null
        ]
    );
    let row = database.row(chats, 1)?.ok_or("the row is missing")?;
    assert_eq!(
        (row.get("at")?, row.get("odd name")?, row.text("kept")?, row.get("unknown")?, row.integer("title")?),
        (Value::Real(5.0), Value::Blob(vec![0, 255]), Some("k".into()), Value::Null, None)
    );
    assert_eq!(row.locator(), "a.db#chats[rowid 1]");
    Ok(())
}

#[test]
fn rows_from_before_a_column_have_its_default_as_sqlite_reads_it() -> Tested {
    let columns = [
        // Tools that migrate databases put numbers into quotes.
        "INTEGER DEFAULT '5'",
        "BOOLEAN NOT NULL DEFAULT '0'",
        "REAL DEFAULT '1.5'",
        "REAL DEFAULT '2'",
        "NUMERIC DEFAULT '3.0'",
        "DATETIME DEFAULT '2024'",
        "DATETIME DEFAULT '2024-05-01'",
        "INTEGER DEFAULT ' 5 '",
        "INTEGER DEFAULT '5 a'",
        "TEXT DEFAULT '5'",
        "INT DEFAULT ('7')",
        "FLOATING POINT DEFAULT '1'",
        "INTEGER DEFAULT 5.0",
        "INTEGER DEFAULT 1e30",
        "NUMERIC DEFAULT 1e3",
        "REAL DEFAULT 1e-5",
        "REAL DEFAULT -1.5E+2",
        "DEFAULT 1.",
        "DEFAULT 0x10",
        "DEFAULT -0x10",
        "DEFAULT (((3)))",
        "DEFAULT (-4)",
        "TEXT DEFAULT 1.50",
        "TEXT DEFAULT chat",
        "TEXT DEFAULT NULL",
        "BLOB DEFAULT x'00ff'",
        "TEXT DEFAULT 'a' REFERENCES rows (id) ON DELETE SET DEFAULT",
        "TEXT REFERENCES rows (id) ON DELETE SET DEFAULT DEFAULT 'b'",
        "TEXT DEFAULT 'first' DEFAULT 'last'",
        "TEXT DEFAULT 'x' CHECK (text <> 'DEFAULT')",
    ];
    let added = columns.iter().enumerate();
    let added: Vec<String> =
        added.map(|(at, kind)| format!("ALTER TABLE rows ADD COLUMN c{at} {kind};")).collect();
    let added = added.concat();
    let (folder, connection) = written(&format!(
        "PRAGMA foreign_keys = OFF; CREATE TABLE rows (text TEXT); INSERT INTO rows VALUES ('old'); {added}"
    ))?;
    compare(folder.path(), &connection, &["rows"])
}

#[test]
fn tables_of_other_kinds_are_not_listed() -> Tested {
    let (folder, _connection) = written(
        "CREATE TABLE rows (a); CREATE TABLE \"no rows\" (a PRIMARY KEY) WITHOUT ROWID; CREATE VIEW seen AS SELECT a FROM rows;
         CREATE INDEX by_a ON rows (a); CREATE VIRTUAL TABLE words USING fts5(text); CREATE TABLE virtual (a);",
    )?;
    let database = Database::open(&bundle(folder.path()), "a.db")?;
    let names: Vec<&str> =
        database.tables().iter().map(Table::name).filter(|name| !name.starts_with("words")).collect();
    assert_eq!(names, ["rows", "virtual"]);
    assert!(database.table("words").is_none(), "a virtual table has no rows of its own");
    Ok(())
}

#[test]
fn a_statement_with_more_columns_than_sqlite_allows_ends_soon() -> Tested {
    let begun = Instant::now();
    for (columns, constraints, listed) in [(30_000, 1_000, true), (60_000, 18_000, false)] {
        let (columns, constraints) = (vec!["a"; columns].join(","), vec!["UNIQUE"; constraints].join(","));
        let (folder, _connection) = written(&format!(
            "PRAGMA writable_schema = 1;
             INSERT INTO sqlite_schema VALUES ('table', 'a', 'a', 2, 'CREATE TABLE a ({columns},{constraints})')"
        ))?;
        let database = Database::open(&bundle(folder.path()), "a.db")?;
        assert_eq!(database.table("a").is_some(), listed);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn the_log_is_read_up_to_the_last_whole_transaction() -> Tested {
    let (folder, connection) = written(
        "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
         CREATE TABLE chats (id INTEGER PRIMARY KEY, title TEXT);
         INSERT INTO chats (title) VALUES ('old'), ('older');
         PRAGMA wal_checkpoint(TRUNCATE);
         UPDATE chats SET title = 'new' WHERE id = 1;
         CREATE TABLE later (text TEXT);
         INSERT INTO later VALUES ('only in the log');",
    )?;
    compare(folder.path(), &connection, &["chats", "later"])?;
    let titles = |log: Option<Vec<u8>>| -> Result<Vec<String>, Box<dyn Error>> {
        let mut files = vec![("a.db", fs::read(folder.path().join("a.db"))?)];
        files.extend(log.map(|log| ("a.db-wal", log)));
        let bundle = Bundle::from_files(files);
        let database = Database::open(&bundle, "a.db")?;
        let chats = database.table("chats").ok_or("the table is missing")?;
        let titles: Result<Vec<_>, _> = database.rows(chats).map(|row| row?.text("title")).collect();
        Ok(titles?.into_iter().flatten().collect())
    };
    let log = fs::read(folder.path().join("a.db-wal"))?;
    assert_eq!(titles(Some(log.clone()))?, ["new", "older"]);
    assert_eq!(titles(None)?, ["old", "older"]);
    // Cut off in the first frame, of another log, and with a changed byte.
    assert_eq!(titles(Some(log[..100].to_vec()))?, ["old", "older"]);
    for at in [2, 10, 17, 25, 32 + 9, 32 + 17, 32 + 24 + 500] {
        let mut changed = log.clone();
        changed[at] ^= 1;
        assert_eq!(titles(Some(changed))?, ["old", "older"], "{at}");
    }
    Ok(())
}

#[test]
fn a_log_with_more_pages_than_fit_is_refused() -> Tested {
    let (folder, _connection) = written(
        "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
         CREATE TABLE chats (title TEXT); INSERT INTO chats VALUES (zeroblob(5000));",
    )?;
    let log = |max_pages| wal::Log::read(bundle(folder.path()).open("a.db-wal")?, 512, max_pages);
    let pages = log(100)?.ok_or("no log")?.len();
    assert!(pages > 10, "{pages}");
    assert_eq!(log(pages - 1).err().map(|error| error.kind), Some(ErrorKind::Limit));
    Ok(())
}

#[test]
fn a_log_that_is_begun_anew_while_it_is_read_is_an_error() -> Tested {
    let (folder, connection) = written(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE chats (title TEXT);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 500)
         INSERT INTO chats SELECT printf('%.*c', 1000, 'x') FROM n; PRAGMA wal_checkpoint(PASSIVE);",
    )?;
    let bundle = Bundle::from_folder(folder.path())?;
    let database = Database::open(&bundle, "a.db")?;
    // The log is in the database, so the next transaction begins it anew.
    connection.execute_batch("UPDATE chats SET title = 'new'")?;
    let chats = database.table("chats").ok_or("the table is missing")?;
    let error = database.rows(chats).find_map(Result::err).ok_or("it is read")?;
    assert_eq!(error.kind, ErrorKind::Io);
    Ok(())
}

#[test]
fn what_is_no_database_is_refused() -> Tested {
    let (folder, _connection) = written("CREATE TABLE chats (title TEXT)")?;
    let whole = fs::read(folder.path().join("a.db"))?;
    let open = |name: &str, bytes: &[u8]| {
        let bundle = Bundle::from_files([
            ("a.db", bytes),
            (name, &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0]),
        ]);
        let sampled = Database::sample(&bundle, "a.db").map(|database| database.is_some());
        let opened = Database::open(&bundle, "a.db").err().map(|error| error.kind);
        (sampled, opened)
    };
    assert_eq!(open("other", &whole), (Ok(true), None));
    // It is recognised, so that the person reads what is to be done.
    assert_eq!(open("a.db-journal", &whole), (Ok(true), Some(ErrorKind::Malformed)));
    assert_eq!(open("other", b""), (Ok(false), Some(ErrorKind::NotThisFormat)));
    assert_eq!(open("a.db-journal", b""), (Ok(false), Some(ErrorKind::NotThisFormat)));
    assert_eq!(open("other", &whole[..16]), (Ok(false), Some(ErrorKind::Malformed)));
    assert_eq!(open("other", &whole[..900]), (Ok(false), Some(ErrorKind::Malformed)));
    for (at, byte) in [(0, b'X'), (16, 3), (19, 3), (20, 255), (59, 9), (100, 2)] {
        let mut changed = whole.clone();
        changed[at] = byte;
        let kind = if at == 0 { ErrorKind::NotThisFormat } else { ErrorKind::Malformed };
        // A page of 4,096 bytes may leave 255 of them to extensions, but no row is where it was.
        if at != 20 {
            assert_eq!(open("other", &changed), (Ok(false), Some(kind)), "{at}");
        }
    }
    Ok(())
}

#[test]
fn a_damaged_page_costs_its_own_rows() -> Tested {
    let (folder, connection) = written(
        "PRAGMA page_size = 512; CREATE TABLE chats (id INTEGER PRIMARY KEY, title TEXT);
         WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO chats (title) SELECT 'title number ' || i FROM n;",
    )?;
    let mut bytes = fs::read(folder.path().join("a.db"))?;
    let leaf = bytes.chunks(512).rposition(|page| page[0] == 0x0d).ok_or("no leaf")?;
    let root = usize::from(
        connection.query_row("SELECT rootpage FROM sqlite_schema", [], |row| row.get::<_, u16>(0))?,
    );
    let read = |bytes: &[u8]| -> Result<(usize, Vec<String>), Box<dyn Error>> {
        let bundle = Bundle::from_files([("a.db", bytes)]);
        let database = Database::open(&bundle, "a.db")?;
        let chats = database.table("chats").ok_or("the table is missing")?;
        let (rows, errors): (Vec<_>, Vec<_>) = database.rows(chats).partition(Result::is_ok);
        let errors = errors.into_iter().filter_map(Result::err);
        Ok((
            rows.len(),
            errors
                .map(|error| format!("{}: {error}", error.locator.as_deref().unwrap_or_default()))
                .collect(),
        ))
    };
    assert_eq!(read(&bytes)?, (2000, vec![]));
    let whole = bytes.clone();
    bytes[leaf * 512] = 0xff;
    let (rows, errors) = read(&bytes)?;
    assert!((1970..2000).contains(&rows), "{rows}");
    assert_eq!(errors, [format!("a.db@{}: the page is no part of a table", leaf * 512)]);
    // The file has lost its end.
    let (rows, errors) = read(&whole[..leaf * 512 + 100])?;
    assert!((1900..2000).contains(&rows), "{rows}");
    assert_eq!(errors[0], format!("a.db@{}: the file ends in the middle of a page", leaf * 512));
    let (rows, errors) = read(&whole[..whole.len() / 2])?;
    assert!(rows < 1000, "{rows}");
    assert!(errors.iter().all(|error| error.starts_with("a.db: the file has no page ")), "{errors:?}");
    // The first and the last child of the root are the same page.
    let (mut twice, start) = (whole.clone(), (root - 1) * 512);
    let first = start + (usize::from(whole[start + 12]) << 8 | usize::from(whole[start + 13]));
    twice.copy_within(first..first + 4, start + 8);
    let (rows, errors) = read(&twice)?;
    assert!(
        rows < 2000 && errors.len() == 1 && errors[0].ends_with("the page is in the table twice"),
        "{errors:?}"
    );
    Ok(())
}

#[test]
fn rows_that_share_their_bytes_are_not_read_without_end() -> Tested {
    let (folder, connection) = written(
        "PRAGMA page_size = 4096; CREATE TABLE files (bytes BLOB); INSERT INTO files VALUES (zeroblob(1000000));",
    )?;
    let root: u16 = connection.query_row("SELECT rootpage FROM sqlite_schema", [], |row| row.get(0))?;
    let mut bytes = fs::read(folder.path().join("a.db"))?;
    // Every cell of the leaf is the same row.
    let (leaf, cells) = (usize::from(root - 1) * 4096, 1_000_u16);
    bytes[leaf + 3..leaf + 5].copy_from_slice(&cells.to_be_bytes());
    let first = leaf + 8;
    for cell in 1..usize::from(cells) {
        bytes.copy_within(first..first + 2, first + 2 * cell);
    }
    let bundle = Bundle::from_files([("a.db", bytes)]);
    let database = Database::open(&bundle, "a.db")?;
    let rows: Vec<_> = database.rows(&database.tables()[0]).collect();
    assert!((1..10).contains(&rows.len()), "{}", rows.len());
    let error = rows.into_iter().find_map(Result::err).ok_or("no error")?;
    assert_eq!(error.message, "the rows have more bytes than the database");
    Ok(())
}

#[test]
fn a_value_that_is_too_large_costs_only_itself() -> Tested {
    let (folder, _connection) = written(&format!(
        "CREATE TABLE files (name TEXT, bytes BLOB); INSERT INTO files VALUES ('large', zeroblob({})), ('whole', zeroblob({MAX_VALUE}));",
        MAX_VALUE + 1
    ))?;
    let bundle = bundle(folder.path());
    let database = Database::open(&bundle, "a.db")?;
    let rows: Vec<_> = database.rows(&database.tables()[0]).collect::<Result<_, _>>()?;
    assert_eq!(rows[0].text("name")?.as_deref(), Some("large"));
    let error = rows[0].get("bytes").err().ok_or("it is read")?;
    assert_eq!((error.kind, error.locator.as_deref()), (ErrorKind::Limit, Some("a.db#files[rowid 1]")));
    assert!(matches!(rows[1].get("bytes")?, Value::Blob(bytes) if bytes.len() as u64 == MAX_VALUE));
    Ok(())
}

#[test]
fn a_value_of_any_size_is_read_in_parts() -> Tested {
    let (folder, connection) = written(
        "CREATE TABLE chats (id INTEGER PRIMARY KEY, title, list);
         INSERT INTO chats VALUES (1, 'Soup', replace(hex(zeroblob(15000000)), '0', 'ab')), (2, 7, 'x')",
    )?;
    let whole: String = connection.query_row("SELECT list FROM chats WHERE id = 1", [], |row| row.get(0))?;
    let database = Database::open(&bundle(folder.path()), "a.db")?;
    let table = database.table("chats").ok_or("no table")?;
    let row = database.row(table, 1)?.ok_or("no row")?;
    assert_eq!(row.get("list").map_err(|error| error.kind), Err(ErrorKind::Limit));
    assert_eq!((row.size("title"), row.size("list")), (Some(4), Some(60_000_000)));
    for (start, end) in [(0, 5), (5_000_000, 5_010_000), (59_999_999, 60_000_001), (70_000_000, 80_000_000)] {
        let expected = &whole.as_bytes()[start.min(60_000_000)..end.min(60_000_000)];
        assert_eq!(row.part("list", start as u64..end as u64)?, expected);
    }
    assert_eq!(row.part("list", 0..u64::MAX).map_err(|error| error.kind), Err(ErrorKind::Limit));
    let other = database.row(table, 2)?.ok_or("no row")?;
    for column in ["id", "title", "unknown"] {
        assert_eq!((other.size(column), other.part(column, 0..9)?), (None, Vec::new()), "{column}");
    }
    Ok(())
}

#[test]
fn objects_have_the_members_of_rows() {
    let mut object = ObjectText::default();
    assert!(object.value("id", &Value::Integer(-3)));
    assert!(object.value("none", &Value::Null));
    assert!(object.value("at", &Value::Real(1.5)));
    assert!(object.value("text", &Value::Blob("\"\u{1}\u{e9}".into())));
    assert!(object.members(" { \"a\": [1] } ") && object.members("{ }"));
    object.json("chat", "{}");
    assert!(
        !object.value("bytes", &Value::Blob(vec![0xff])) && !object.value("far", &Value::Real(f64::INFINITY))
    );
    assert!(!object.members("[1]"));
    assert_eq!(object.finish(), r#"{"id":-3,"at":1.5,"text":"\"\u0001é", "a": [1] ,"chat":{}}"#);
    assert_eq!(ObjectText::default().finish(), "{}");
}

/// What is done to a table.
#[derive(Clone, Debug)]
enum Step {
    Insert { rowid: Option<i64>, text: usize, number: i64, bytes: usize },
    Delete(usize),
    Update(usize, usize),
    AddColumn,
    Checkpoint,
    Vacuum,
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![0..40_usize, 400..600_usize, 3_000..9_000_usize, 60_000..140_000_usize];
    let insert = (prop::option::weighted(0.2, any::<i64>()), size.clone(), any::<i64>(), 0..700_usize);
    prop_oneof![
        12 => insert.prop_map(|(rowid, text, number, bytes)| Step::Insert { rowid, text, number: number >> (number & 63), bytes }),
        3 => any::<usize>().prop_map(Step::Delete),
        3 => (any::<usize>(), size).prop_map(|(row, text)| Step::Update(row, text)),
        1 => Just(Step::AddColumn),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Vacuum),
    ]
}

fn apply(connection: &Connection, step: &Step) -> Tested {
    let text = |length: usize| -> String { "aé🎈".chars().cycle().take(length).collect() };
    let rowids = expected(connection, "rows")?;
    let pick = |index: usize| rowids.get(index % rowids.len().max(1)).map_or(0, |(rowid, _)| *rowid);
    match step {
        Step::Insert { rowid, text: length, number, bytes } => {
            connection.execute(
                "INSERT OR REPLACE INTO rows (rowid, text, number, bytes) VALUES (?, ?, ?, ?)",
                (rowid, text(*length), number, vec![7_u8; *bytes]),
            )?;
        }
        Step::Delete(index) => {
            connection.execute("DELETE FROM rows WHERE rowid = ?", [pick(*index)])?;
        }
        Step::Update(index, length) => {
            connection.execute("UPDATE rows SET text = ? WHERE rowid = ?", (text(*length), pick(*index)))?;
        }
        Step::AddColumn => {
            let columns = connection.prepare("SELECT * FROM rows")?.column_count();
            connection
                .execute_batch(&format!("ALTER TABLE rows ADD COLUMN c{columns} REAL DEFAULT {columns}"))?;
        }
        Step::Checkpoint => connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)")?,
        Step::Vacuum => connection.execute_batch("VACUUM")?,
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_history_is_read_as_sqlite_reads_it(
        steps in prop::collection::vec(step(), 1..60),
        page_size in prop::sample::select(vec![512, 1024, 4096, 65536]),
        encoding in prop::sample::select(vec!["UTF-8", "UTF-16le", "UTF-16be"]),
        mode in prop::sample::select(vec!["WAL", "DELETE"]),
        vacuum in 0..3,
    ) {
        let pragmas = format!(
            "PRAGMA page_size = {page_size}; PRAGMA encoding = '{encoding}'; PRAGMA auto_vacuum = {vacuum};
             PRAGMA journal_mode = {mode}; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF;
             CREATE TABLE rows (text TEXT, number INTEGER, bytes BLOB); CREATE INDEX by_text ON rows (text);"
        );
        let (folder, connection) = written(&pragmas).expect("the database is made");
        for step in &steps {
            apply(&connection, step).expect("the step is done");
        }
        compare(folder.path(), &connection, &["rows"]).expect("it is read");
    }

    #[test]
    fn changed_bytes_never_panic_and_reading_ends(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        near_start in any::<bool>(),
        in_log in any::<bool>(),
    ) {
        let (folder, _connection) = written(
            "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT);
             WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO rows (text) SELECT printf('%.*c', i % 50 * 40, 'x') FROM n;
             PRAGMA wal_checkpoint(PASSIVE); UPDATE rows SET text = 'new' WHERE id % 100 = 0;",
        ).expect("the database is made");
        let read = |name: &str| fs::read(folder.path().join(name)).expect("the file is read");
        let (mut file, mut log) = (read("a.db"), read("a.db-wal"));
        let changed = if in_log { &mut log } else { &mut file };
        let range = if near_start { 4096 } else { changed.len() };
        for (index, byte) in changes {
            changed[index.index(range)] = byte;
        }
        let bundle = Bundle::from_files([("a.db", file), ("a.db-wal", log)]);
        if let Some(database) = Database::sample(&bundle, "a.db").expect("it is no error of the disk") {
            for table in database.tables() {
                for row in database.rows(table).flatten() {
                    let _ = values(&row, table);
                    let _ = database.row(table, row.rowid());
                }
            }
        }
    }
}
