PRAGMA page_size = 4096;
PRAGMA user_version = 1;
CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable (key, value)
  VALUES ('interactive.sessions', '[{"requesterUsername":"mira","responderUsername":"GitHub Copilot","requests":[{"message":"Is the bread done?","response":["Yes."],"isCanceled":false}],"sessionId":"5d1c0b5e-7a41-4c1e-9f20-000000000031","creationDate":1700000000031,"providerId":"copilot"},7,{"odd":"This is no session."},{"requesterUsername":"mira","responderUsername":"GitHub Copilot","requests":[{"message":"Is the soup done?","response":["Yes."],"isCanceled":false}],"sessionId":"5d1c0b5e-7a41-4c1e-9f20-000000000032","creationDate":1700000000032,"providerId":"copilot"},{"requesterUsername":"mira","responderUsername":"GitHub Copilot","requests":[{"message":"This session is cut off?","response":["Yes."],"isCanceled":false}],"sessionId":"5d1c0b5e-7a41-4c1e-9f20-0000000');
