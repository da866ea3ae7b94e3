PRAGMA page_size = 1024;
CREATE TABLE session (id text PRIMARY KEY, user_id text NOT NULL, token text NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, data text NOT NULL);
INSERT INTO session (id, user_id, token) VALUES ('ses_1', 'rosa', 'SECRETKEY-login');
INSERT INTO message (id, session_id, data) VALUES ('msg_1', 'ses_1', '{"role":"user"}');
