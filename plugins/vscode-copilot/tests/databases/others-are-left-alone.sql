PRAGMA page_size = 4096;
PRAGMA user_version = 1;
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable (key, value)
  VALUES ('secret://{"extensionId":"vscode.github-authentication","key":"github.auth"}', '{"type":"Buffer","data":"SECRETKEY"}');
INSERT INTO ItemTable (key, value)
  VALUES ('memento/interactive-session', '{"history":{"copilot":[{"text":"These are the last inputs, SECRETKEY."}]}}');
INSERT INTO ItemTable (key, value)
  VALUES ('chat.ChatSessionStore.index', '{"version":1,"entries":{"5d1c0b5e-7a41-4c1e-9f20-000000000001":{"sessionId":"5d1c0b5e-7a41-4c1e-9f20-000000000001","title":"A title of the index","lastMessageDate":1772452860000,"isImported":false,"initialLocation":"panel","isEmpty":false}}}');
INSERT INTO ItemTable (key, value)
  VALUES ('interactive.sessions', '[]');
