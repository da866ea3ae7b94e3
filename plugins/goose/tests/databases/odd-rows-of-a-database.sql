PRAGMA page_size = 1024;
CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL DEFAULT '',
    user_set_name BOOLEAN DEFAULT FALSE,
    session_type TEXT NOT NULL DEFAULT 'user',
    working_dir TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    extension_data TEXT DEFAULT '{}',
    total_tokens INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    accumulated_total_tokens INTEGER,
    accumulated_input_tokens INTEGER,
    accumulated_output_tokens INTEGER,
    accumulated_cache_read_tokens INTEGER,
    accumulated_cache_write_tokens INTEGER,
    accumulated_cost REAL,
    schedule_id TEXT,
    recipe_json TEXT,
    user_recipe_values_json TEXT,
    provider_name TEXT,
    model_config_json TEXT,
    goose_mode TEXT NOT NULL DEFAULT 'auto',
    archived_at TIMESTAMP,
    project_id TEXT,
    parent_session_id TEXT,
    parent_delegation TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL,
    timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    tokens INTEGER,
    metadata_json TEXT
);
CREATE TABLE usage_ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    created_timestamp INTEGER NOT NULL,
    model TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    total_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    cost REAL,
    cost_source TEXT,
    is_compaction INTEGER DEFAULT 0
);
CREATE INDEX idx_messages_session ON messages(session_id);
CREATE INDEX idx_messages_timestamp ON messages(timestamp);
CREATE INDEX idx_messages_message_id ON messages(message_id);
CREATE INDEX idx_messages_session_created ON messages(session_id, created_timestamp, id);
CREATE INDEX idx_sessions_updated ON sessions(updated_at DESC);
CREATE INDEX idx_sessions_type ON sessions(session_type);
CREATE INDEX idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX idx_usage_ledger_session ON usage_ledger(session_id);
ALTER TABLE sessions ADD COLUMN remark TEXT;
INSERT INTO schema_version (version, applied_at)
  VALUES (18, '2026-06-01 08:00:00');
INSERT INTO sessions (id, name, working_dir, created_at, updated_at, extension_data, recipe_json, remark)
  VALUES ('20260501_1', 'Odd rows', '/home/tomas/odd', '2026-05-01 08:00:00', '2026-05-01 09:00:00', '{"enabled_extensions.v0":{"extensions":[{"envs":{"K":"SECRETKEY"', 'no JSON with SECRETKEY', 'A column that nobody knows says this.');
INSERT INTO sessions (id, name, working_dir, created_at, updated_at)
  VALUES ('', 'Without an id', '/home/tomas/odd', '2026-05-01 08:00:00', '2026-05-01 09:00:00');
INSERT INTO sessions (id, name, working_dir, created_at, updated_at)
  VALUES ('odd-empty', 'Only broken rows', '/home/tomas/odd', '2026-05-01 08:00:00', '2026-05-01 09:00:00');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m1', '20260501_1', 'user', '[{"type":"text","text":"This is the first prompt."}]', 1777622400, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m3', '20260501_1', 'assistant', '[{"type":"text","text":"This is the answer to the second one."}]', 1777622420, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m2', '20260501_1', 'user', '[{"type":"text","text":"This was written before the answer above."}]', 1777622410, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m4', '20260501_1', 'user', '[{"type":"text","text":"It is cut o', 1777622430, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m5', '20260501_1', 'assistant', '[{"type":"text","text":"Its metadata are broken."}]', 1777622440, '2026-01-02 03:04:05', '{"userVisible":');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m6', '20260501_1', 'tool', '[{"type":"text","text":"The role is unknown."}]', 1777622450, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m7', '20260501_1', 'user', x'fffe00', 1777622460, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES (NULL, '20260501_1', 'assistant', '[{"type":"text","text":"It has no time."}]', 'soon', '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json, tokens)
  VALUES ('m9', '20260501_1', 'assistant', '[]', 1777622470, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}', 7);
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m10', 'gone', 'user', '[{"type":"text","text":"Its session was removed."}]', 1777622480, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('m11', 'odd-empty', 'user', '7 8', 1777622490, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
