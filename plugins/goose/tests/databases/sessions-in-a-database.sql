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
INSERT INTO schema_version (version, applied_at)
  VALUES (17, '2026-06-01 08:00:00');
INSERT INTO sessions (id, name, description, user_set_name, session_type, working_dir, created_at, updated_at, extension_data, total_tokens, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, accumulated_total_tokens, accumulated_input_tokens, accumulated_output_tokens, accumulated_cache_read_tokens, accumulated_cache_write_tokens, accumulated_cost, schedule_id, recipe_json, user_recipe_values_json, provider_name, model_config_json, goose_mode, archived_at, project_id, parent_session_id)
  VALUES ('20251024_3', 'Oven schedule', '', 0, 'user', '/home/tomas/ovens', '2025-10-24 10:00:00', '2025-10-24 10:20:31', '{"enabled_extensions.v0":{"extensions":[{"type":"stdio","name":"ovens","description":"Reads the ovens of the bakery","cmd":"npx","args":["-y","oven-mcp"],"envs":{"OVEN_KEY":"SECRETKEY"},"env_keys":["OVEN_KEY"],"timeout":300},{"type":"streamable_http","name":"weather","uri":"https://weather.example/mcp","headers":{"Authorization":"Bearer SECRETKEY"}}]},"todo.v0":{"content":"- [x] read the ovens\n- [ ] write the schedule"}}', 4196, 4100, 96, 12, NULL, 18820, 18100, 720, 48, NULL, 0.0713, NULL, '{"version":"1.0.0","title":"Oven planner","description":"Plans the ovens of a week","instructions":"You plan ovens. Ask before you change a schedule.","prompt":"Plan next week","parameters":[{"key":"week","input_type":"string","requirement":"required","description":"The week to plan"}]}', '{"week":"44"}', 'anthropic', '{"model_name":"claude-sonnet-4-5","context_limit":200000,"temperature":null,"max_tokens":null,"toolshim":false}', 'smart_approve', '2025-11-02T08:00:00+00:00', 'ovens', NULL);
INSERT INTO sessions (id, name, session_type, working_dir, created_at, updated_at, provider_name, model_config_json, parent_session_id, parent_delegation)
  VALUES ('20251024_4', 'Delegate: count the free ovens', 'sub_agent', '/home/tomas/ovens', '2025-10-24 10:05:00', '2025-10-24 10:06:00', 'anthropic', '{"model_name":"claude-haiku-4-5"}', '20251024_3', '{"execution_mode":"foreground","parent_delegate_message_id":"msg_20251024_3_3","result_delivered_to_parent":true}');
INSERT INTO sessions (id, name, working_dir, created_at, updated_at)
  VALUES ('20251025_1', 'New Chat', '/home/tomas', '2025-10-25 07:00:00', '2025-10-25 07:00:00');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_1', '20251024_3', 'user', '[{"type":"text","text":"Plan the ovens for week 44."}]', 1761300000, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_2', '20251024_3', 'assistant', '[{"type":"thinking","thinking":"I need the list of ovens.","signature":""},{"type":"redactedThinking","data":"SECRETBLOB"},{"type":"text","text":"I''ll look at the ovens."},{"type":"toolRequest","id":"call_a","toolCall":{"status":"success","value":{"name":"ovens__list","arguments":{"week":44}}},"thoughtSignature":"SECRETSIG2","_meta":{"goose.toolSummary.title":"listing the ovens"}}]', 1761300003, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false,"inference":{"provider":"anthropic","requestedModel":"claude-sonnet-4-5","resolvedModel":"claude-sonnet-4-5-20250929"},"usage":{"inputTokens":1500,"outputTokens":80,"totalTokens":1580,"cacheReadTokens":12,"cost":0.0059,"costSource":"estimated","elapsedMs":2300}}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_4_1', '20251024_4', 'user', '[{"type":"text","text":"Count the free ovens of week 44."}]', 1761300300, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_4_2', '20251024_4', 'assistant', '[{"type":"text","text":"Three of four are free."}]', 1761300310, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true,"inference":{"provider":"anthropic","requestedModel":"claude-haiku-4-5","resolvedModel":"claude-haiku-4-5-20251001"}}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_3', '20251024_3', 'user', '[{"type":"toolResponse","id":"call_a","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"oven 1: free\noven 2: Tuesday"}],"structuredContent":{"ovens":2},"isError":false,"_meta":{"took":"0.2s"}}},"metadata":{"thoughtSignature":"SECRETSIG3","index":1}}]', 1761300004, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_4', '20251024_3', 'assistant', '[{"type":"text","text":"Oven 2 is taken on Tuesday."}]', 1761300009, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false,"inference":{"provider":"anthropic","requestedModel":"claude-sonnet-4-5","resolvedModel":"claude-sonnet-4-5-20250929"},"usage":{"inputTokens":1600,"outputTokens":40,"totalTokens":1640,"cacheReadTokens":12,"cost":0.0054,"costSource":"estimated","elapsedMs":2300}}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_5', '20251024_3', 'assistant', '[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Compaction complete: the conversation was summarised."}]', 1761300010, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_6', '20251024_3', 'user', '[{"type":"text","text":"Summary: the person plans week 44; oven 2 is taken on Tuesday."}]', 1761300010, '2026-01-02 03:04:05', '{"userVisible":false,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_7', '20251024_3', 'assistant', '[{"type":"text","text":"The earlier conversation was summarised. I continue without mentioning it."}]', 1761300010, '2026-01-02 03:04:05', '{"userVisible":false,"agentVisible":true}');
INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens, cost, cost_source)
  VALUES ('20251024_3', 1761300009, 'claude-sonnet-4-5', 1600, 40, 1640, 0.0054, 'estimated');
-- The rows below are in the write-ahead log.
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_8', '20251024_3', 'user', '[{"type":"text","text":"Is oven 1 free on Friday?"}]', 1761300900, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_9', '20251024_3', 'assistant', '[{"type":"actionRequired","data":{"actionType":"elicitation","id":"eli_1","message":"Which Friday do you mean?","requested_schema":{"type":"object","properties":{"day":{"type":"string","description":"The date"}}}}}]', 1761300903, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_10', '20251024_3', 'user', '[{"type":"actionRequired","data":{"actionType":"elicitationResponse","id":"eli_1","user_data":{"day":"2025-10-31"},"action":"accept"}}]', 1761300920, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_11', '20251024_3', 'assistant', '[{"type":"actionRequired","data":{"actionType":"toolConfirmation","id":"call_b","toolName":"ovens__reserve","arguments":{"oven":1},"prompt":null}},{"type":"frontendToolRequest","id":"call_c","toolCall":{"status":"success","value":{"name":"show_calendar","arguments":{"day":"2025-10-31"}}}}]', 1761300921, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":false}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20251024_3_12', '20251024_3', 'assistant', '[{"type":"text","text":"Oven 1 is free on Friday, 31 October."}]', 1761300930, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true,"inference":{"provider":"anthropic","requestedModel":"claude-sonnet-4-5","resolvedModel":"claude-sonnet-4-5-20250929"},"usage":{"inputTokens":4100,"outputTokens":96,"totalTokens":4196,"cacheReadTokens":12,"cost":0.0137,"costSource":"estimated","elapsedMs":2300},"outputTokenLimitReached":true}');
INSERT INTO sessions (id, name, user_set_name, session_type, working_dir, created_at, updated_at, schedule_id, provider_name, model_config_json)
  VALUES ('20260301_2', 'Sourdough notes', 1, 'scheduled', '/home/tomas/bread', '2026-03-01 05:30:00', '2026-03-01 05:30:09', 'daily-feed', 'ollama', '{"model_name":"qwen3"}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20260301_2_a', '20260301_2', 'user', '[{"type":"text","text":"Write into the notes that the starter was fed at half past six."}]', 1772343000, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json)
  VALUES ('msg_20260301_2_b', '20260301_2', 'assistant', '[{"type":"text","text":"It is noted: the starter was fed at 6:30."}]', 1772343008, '2026-01-02 03:04:05', '{"userVisible":true,"agentVisible":true}');
