PRAGMA page_size = 1024;
CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    description TEXT NOT NULL DEFAULT '',
    working_dir TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    extension_data TEXT DEFAULT '{}',
    total_tokens INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    accumulated_total_tokens INTEGER,
    accumulated_input_tokens INTEGER,
    accumulated_output_tokens INTEGER,
    schedule_id TEXT,
    recipe_json TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL,
    timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    tokens INTEGER
);
CREATE INDEX idx_messages_session ON messages(session_id);
CREATE INDEX idx_messages_timestamp ON messages(timestamp);
CREATE INDEX idx_sessions_updated ON sessions(updated_at DESC);
ALTER TABLE sessions ADD COLUMN user_recipe_values_json TEXT;
ALTER TABLE messages ADD COLUMN metadata_json TEXT;
ALTER TABLE sessions ADD COLUMN name TEXT DEFAULT '';
ALTER TABLE sessions ADD COLUMN user_set_name BOOLEAN DEFAULT FALSE;
ALTER TABLE sessions ADD COLUMN session_type TEXT NOT NULL DEFAULT 'user';
CREATE INDEX idx_sessions_type ON sessions(session_type);
ALTER TABLE sessions ADD COLUMN provider_name TEXT;
ALTER TABLE sessions ADD COLUMN model_config_json TEXT;
ALTER TABLE messages ADD COLUMN message_id TEXT;
CREATE INDEX idx_messages_message_id ON messages(message_id);
ALTER TABLE sessions ADD COLUMN goose_mode TEXT NOT NULL DEFAULT 'auto';
ALTER TABLE sessions ADD COLUMN thread_id TEXT;
CREATE INDEX idx_sessions_thread ON sessions(thread_id);
CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL DEFAULT 'New Chat',
    user_set_name BOOLEAN DEFAULT FALSE,
    working_dir TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    archived_at TIMESTAMP,
    metadata_json TEXT DEFAULT '{}'
);
CREATE TABLE thread_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id TEXT NOT NULL REFERENCES threads(id),
    session_id TEXT,
    message_id TEXT,
    role TEXT NOT NULL,
    content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL,
    metadata_json TEXT DEFAULT '{}'
);
CREATE INDEX idx_thread_messages_thread ON thread_messages(thread_id);
CREATE INDEX idx_thread_messages_message_id ON thread_messages(message_id);
INSERT INTO schema_version (version, applied_at)
  VALUES (10, '2026-04-01 08:00:00');
INSERT INTO threads (id, name, working_dir, created_at, updated_at, metadata_json)
  VALUES ('6f1d2f0a-0b1c-4d2e-8f3a-000000000001', 'Rye bread', '/home/tomas/bread', '2026-04-02 06:00:00', '2026-04-02 06:10:00', '{"project_id":"bread","provider_id":"openai","model_name":"gpt-5"}');
INSERT INTO threads (id, name, working_dir, created_at, updated_at, archived_at, metadata_json)
  VALUES ('6f1d2f0a-0b1c-4d2e-8f3a-000000000002', 'Fork of Rye bread', '/home/tomas/bread', '2026-04-03 06:00:00', '2026-04-03 06:10:00', '2026-04-09 06:00:00', '{"project_id":"bread","provider_id":"openai"}');
INSERT INTO sessions (id, name, working_dir, created_at, updated_at, session_type, provider_name, model_config_json, thread_id)
  VALUES ('20260402_1', 'Rye bread', '/home/tomas/bread', '2026-04-02 06:00:00', '2026-04-02 06:10:00', 'acp', 'openai', '{"model_name":"gpt-5"}', '6f1d2f0a-0b1c-4d2e-8f3a-000000000001');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_0', '20260402_1', 'user', '[{"type":"text","text":"How much rye goes into a loaf?"}]', 1775109600, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_1', '20260402_1', 'assistant', '[{"type":"text","text":"About 400 grams."}]', 1775109605, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO thread_messages (message_id, session_id, role, content_json, created_timestamp, metadata_json, thread_id)
  VALUES ('tmsg_a0', '20260402_1', 'user', '[{"type":"text","text":"How much rye goes into a loaf?"}]', 1775109600, '{"userVisible":true,"agentVisible":true}', '6f1d2f0a-0b1c-4d2e-8f3a-000000000001');
INSERT INTO thread_messages (message_id, session_id, role, content_json, created_timestamp, metadata_json, thread_id)
  VALUES ('tmsg_a1', '20260402_1', 'assistant', '[{"type":"text","text":"About 400 grams."}]', 1775109605, '{"userVisible":true,"agentVisible":true}', '6f1d2f0a-0b1c-4d2e-8f3a-000000000001');
INSERT INTO thread_messages (message_id, session_id, role, content_json, created_timestamp, metadata_json, thread_id)
  VALUES ('tmsg_b0', '20260402_1', 'user', '[{"type":"text","text":"How much rye goes into a loaf?"}]', 1775109600, '{"userVisible":true,"agentVisible":true}', '6f1d2f0a-0b1c-4d2e-8f3a-000000000002');
INSERT INTO thread_messages (message_id, session_id, role, content_json, created_timestamp, metadata_json, thread_id)
  VALUES ('tmsg_b1', '20260402_1', 'assistant', '[{"type":"text","text":"About 400 grams."}]', 1775109605, '{"userVisible":true,"agentVisible":true}', '6f1d2f0a-0b1c-4d2e-8f3a-000000000002');
INSERT INTO thread_messages (message_id, session_id, role, content_json, created_timestamp, metadata_json, thread_id)
  VALUES ('tmsg_b2', '20260402_1', 'user', '[{"type":"text","text":"And into two loaves?"}]', 1775196000, '{"userVisible":true,"agentVisible":true}', '6f1d2f0a-0b1c-4d2e-8f3a-000000000002');
