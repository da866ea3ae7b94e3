PRAGMA page_size = 1024;
CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT, created_at INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT);
INSERT INTO sessions VALUES ('s1', 'Of another program', 1760428800);
INSERT INTO messages VALUES (1, 's1', 'user', 'This is not for this importer.');
