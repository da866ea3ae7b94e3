PRAGMA page_size = 1024;
CREATE TABLE memu_resources (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, url VARCHAR NOT NULL, modality VARCHAR NOT NULL, local_path VARCHAR NOT NULL, caption TEXT, embedding_json TEXT, PRIMARY KEY (id));
CREATE INDEX ix_memu_resources_id ON memu_resources (id);
CREATE TABLE memu_memory_categories (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, name VARCHAR NOT NULL, description TEXT NOT NULL, embedding_json TEXT, summary TEXT, PRIMARY KEY (id));
CREATE INDEX ix_memu_memory_categories_name ON memu_memory_categories (name);
CREATE TABLE memu_memory_items (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, resource_id VARCHAR, memory_type VARCHAR NOT NULL, summary TEXT NOT NULL, embedding_json TEXT, PRIMARY KEY (id));
CREATE TABLE memu_category_items (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, item_id VARCHAR NOT NULL, category_id VARCHAR NOT NULL, PRIMARY KEY (id));
CREATE UNIQUE INDEX idx_memu_category_items_unique ON memu_category_items (item_id, category_id);
INSERT INTO "memu_memory_categories" (user_id, id, created_at, updated_at, name, description, embedding_json, summary) VALUES ('rosa', 'c-2', '2026-01-05 09:00:00.000000', '2026-01-05 09:00:00.000000', 'Habits & routines', 'Daily habits', NULL, NULL);
INSERT INTO "memu_memory_items" (user_id, id, created_at, updated_at, resource_id, memory_type, summary, embedding_json) VALUES ('rosa', 'i-1', '2026-01-05 09:00:00.000000', '2026-01-05 09:00:00.000000', NULL, 'profile', 'Rosa keeps five goats.', NULL);
INSERT INTO "memu_memory_items" (user_id, id, created_at, updated_at, resource_id, memory_type, summary, embedding_json) VALUES (NULL, 'i-8', '2026-01-06 09:00:00.000000', '2026-01-06 09:00:00.000000', NULL, 'knowledge', 'Emil owns a blue boat.', NULL);
INSERT INTO "memu_category_items" (user_id, id, created_at, updated_at, item_id, category_id) VALUES ('rosa', 'l-1', '2026-01-06 09:00:00.000000', '2026-01-06 09:00:00.000000', 'i-1', 'c-2');
