PRAGMA page_size = 1024;
CREATE TABLE memu_resources (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, url VARCHAR NOT NULL, modality VARCHAR NOT NULL, local_path VARCHAR NOT NULL, caption TEXT, embedding JSON, PRIMARY KEY (id));
CREATE INDEX ix_memu_resources_id ON memu_resources (id);
CREATE TABLE memu_memory_categories (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, name VARCHAR NOT NULL, description TEXT NOT NULL, embedding JSON, content TEXT, track VARCHAR DEFAULT 'memory' NOT NULL, PRIMARY KEY (id));
CREATE INDEX ix_memu_memory_categories_name ON memu_memory_categories (name);
CREATE TABLE memu_memory_items (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, resource_id VARCHAR, memory_type VARCHAR NOT NULL, summary TEXT NOT NULL, embedding JSON, happened_at DATETIME, extra JSON, PRIMARY KEY (id));
CREATE TABLE memu_category_items (
	user_id VARCHAR, id VARCHAR NOT NULL, created_at DATETIME DEFAULT (CURRENT_TIMESTAMP) NOT NULL, updated_at DATETIME NOT NULL, item_id VARCHAR NOT NULL, category_id VARCHAR NOT NULL, PRIMARY KEY (id));
CREATE UNIQUE INDEX idx_memu_category_items_unique ON memu_category_items (item_id, category_id);
INSERT INTO "memu_memory_categories" (user_id, id, created_at, updated_at, name, description, embedding, content, track) VALUES ('rosa', 'c-9', '2026-06-20 09:00:00.000000', '2026-06-21 09:00:00.000000', 'cheese', 'About cheese', 'null', 'Rosa makes cheese from goat milk.', 'memory');
INSERT INTO "memu_memory_items" (user_id, id, created_at, updated_at, resource_id, memory_type, summary, embedding, happened_at, extra) VALUES ('rosa', 'i-9', '2026-06-20 09:00:00.000000', '2026-06-21 09:00:00.000000', NULL, 'knowledge', 'Rosa lets her cheese ripen for sixty days.', '[0.42, 0.86, -0.597]', NULL, '{}');
INSERT INTO "memu_category_items" (user_id, id, created_at, updated_at, item_id, category_id) VALUES ('rosa', 'l-9', '2026-06-20 09:00:00.000000', '2026-06-20 09:00:00.000000', 'i-9', 'c-9');
