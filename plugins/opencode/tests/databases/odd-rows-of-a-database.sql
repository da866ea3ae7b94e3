PRAGMA page_size = 1024;
CREATE TABLE `project` (
	`id` text PRIMARY KEY,
	`worktree` text NOT NULL,
	`vcs` text,
	`name` text,
	`icon_url` text,
	`icon_color` text,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	`time_initialized` integer,
	`sandboxes` text NOT NULL
);
CREATE TABLE `message` (
	`id` text PRIMARY KEY,
	`session_id` text NOT NULL,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	`data` text NOT NULL,
	CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
);
CREATE TABLE `part` (
	`id` text PRIMARY KEY,
	`message_id` text NOT NULL,
	`session_id` text NOT NULL,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	`data` text NOT NULL,
	CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
);
CREATE TABLE `session` (
	`id` text PRIMARY KEY,
	`project_id` text NOT NULL,
	`parent_id` text,
	`slug` text NOT NULL,
	`directory` text NOT NULL,
	`title` text NOT NULL,
	`version` text NOT NULL,
	`share_url` text,
	`summary_additions` integer,
	`summary_deletions` integer,
	`summary_files` integer,
	`summary_diffs` text,
	`revert` text,
	`permission` text,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	`time_compacting` integer,
	`time_archived` integer,
	CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
);
CREATE TABLE `todo` (
	`session_id` text NOT NULL,
	`content` text NOT NULL,
	`status` text NOT NULL,
	`priority` text NOT NULL,
	`position` integer NOT NULL,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	CONSTRAINT `todo_pk` PRIMARY KEY(`session_id`, `position`),
	CONSTRAINT `fk_todo_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
);
CREATE TABLE `session_share` (
	`session_id` text PRIMARY KEY,
	`id` text NOT NULL,
	`secret` text NOT NULL,
	`url` text NOT NULL,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	CONSTRAINT `fk_session_share_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
);
CREATE INDEX `message_session_idx` ON `message` (`session_id`);
CREATE INDEX `part_message_idx` ON `part` (`message_id`);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `session_project_idx` ON `session` (`project_id`);
CREATE INDEX `session_parent_idx` ON `session` (`parent_id`);
CREATE INDEX `todo_session_idx` ON `todo` (`session_id`);
ALTER TABLE `project` ADD `commands` text;
CREATE TABLE `control_account` (
	`email` text NOT NULL,
	`url` text NOT NULL,
	`access_token` text NOT NULL,
	`refresh_token` text NOT NULL,
	`token_expiry` integer,
	`active` integer NOT NULL,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL,
	CONSTRAINT `control_account_pk` PRIMARY KEY(`email`, `url`)
);
ALTER TABLE `session` ADD `workspace_id` text;
CREATE TABLE `account` (
	`id` text PRIMARY KEY,
	`email` text NOT NULL,
	`url` text NOT NULL,
	`access_token` text NOT NULL,
	`refresh_token` text NOT NULL,
	`token_expiry` integer,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL
);
ALTER TABLE `project` ADD `icon_url_override` text;
ALTER TABLE `session` ADD `path` text;
ALTER TABLE `session` ADD `agent` text;
ALTER TABLE `session` ADD `model` text;
ALTER TABLE `session` ADD `cost` real DEFAULT 0 NOT NULL;
ALTER TABLE `session` ADD `tokens_input` integer DEFAULT 0 NOT NULL;
ALTER TABLE `session` ADD `tokens_output` integer DEFAULT 0 NOT NULL;
ALTER TABLE `session` ADD `tokens_reasoning` integer DEFAULT 0 NOT NULL;
ALTER TABLE `session` ADD `tokens_cache_read` integer DEFAULT 0 NOT NULL;
ALTER TABLE `session` ADD `tokens_cache_write` integer DEFAULT 0 NOT NULL;
ALTER TABLE `session` ADD `metadata` text;
CREATE TABLE `credential` (
	`id` text PRIMARY KEY,
	`integration_id` text,
	`label` text NOT NULL,
	`value` text NOT NULL,
	`connector_id` text,
	`method_id` text,
	`active` integer,
	`time_created` integer NOT NULL,
	`time_updated` integer NOT NULL
);
ALTER TABLE `session` ADD `goal` text;
INSERT INTO `project` (`id`, `worktree`, `vcs`, `icon_url`, `icon_color`, `time_created`, `time_updated`, `sandboxes`, `commands`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '/home/rosa/garden', 'git', 'data:image/png;base64,aWNvbg==', 'lime', 1767700000000, 1767700000000, '[]', '{"start":"make water"}');
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`, `model`, `goal`) VALUES ('ses_3b40a7e1cffeRosaGarden0060', '0000missing', '', '/home/rosa/garden', 'New session - 2026-09-21T14:13:20.000Z', '1.17.0', 1790000000000, 1790000060000, '{"id":', 'Find out why the beans are pale');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7000001ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"role":"user","time":{"created":1790000001000}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000001ee001Garden0060', 'msg_c7000001ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"type":"text","text":"Why are the beans pale?"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000001ee002Garden0060', 'msg_c7000001ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"type":"text","text":"cut o');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000001ee003Garden0060', 'msg_c7000001ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, 'null');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7000002ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000002000, 1790000002000, '[7]');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7000003ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000003000, 1790000003000, '{"role":"assistant","time"');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7000004ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000004000, 1790000004000, '{"role":"assistant","modelID":"claude-sonnet-4-5"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000004ee002Garden0060', 'msg_c7000004ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"type":"text","text":"They want iron."}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000004ee001Garden0060', 'msg_c7000004ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"type":"reasoning","text":"Pale leaves, green veins.","time":{"start":1790000004100,"end":1790000004200}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000009ee001Garden0060', 'msg_c7000009ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"type":"text","text":"A part without its message."}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7000005ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000005000, 1790000005000, '{"role":"judge","time":{"created":1790000005000}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000005ee001Garden0060', 'msg_c7000005ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000001000, 1790000001000, '{"type":"riddle","text":"What is green and climbs?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES (NULL, 'ses_3b40a7e1cffeRosaGarden0060', 1790000006000, 1790000006000, '{"role":"user"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7000007ee001Garden0060', 'msg_c7000001ff001Garden0060', 'ses_3b40a7e1cffeRosaGarden0060', 1790000007000, 1790000007000, X'00ff');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7100001ff001Garden0061', 'ses_3b41a7e1cffeRosaGarden0061', 1790000001000, 1790000001000, '{"role":"user","time":{"created":1790000001000}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7100001ee001Garden0061', 'msg_c7100001ff001Garden0061', 'ses_3b41a7e1cffeRosaGarden0061', 1790000001000, 1790000001000, '{"type":"text","text":"Where is my session?"}');
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_3b42a7e1cffeRosaGarden0062', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '/home/rosa/garden', 'No messages', '1.17.0', 1790000000000, 1790000060000);
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c7200001ee001Garden0063', 'msg_c7200001ff001Garden0063', 'ses_3b43a7e1cffeRosaGarden0063', 1790000001000, 1790000001000, '{"type":"text","text":"A part without its session."}');
INSERT INTO `todo` (`session_id`, `content`, `status`, `priority`, `position`, `time_created`, `time_updated`) VALUES ('ses_3b43a7e1cffeRosaGarden0063', 'A task without its session', 'pending', 'low', 0, 1790000000000, 1790000000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES (NULL, '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '', 'No id', '', 1790000000000, 1790000000000);
