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
INSERT INTO `project` (`id`, `worktree`, `vcs`, `icon_url`, `icon_color`, `time_created`, `time_updated`, `sandboxes`, `commands`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '/home/rosa/garden', 'git', 'data:image/png;base64,aWNvbg==', 'lime', 1767700000000, 1767700000000, '[]', '{"start":"make water"}');
INSERT INTO `control_account` (`email`, `url`, `access_token`, `refresh_token`, `active`, `time_created`, `time_updated`) VALUES ('rosa@garden.example', 'https://console.example', 'SECRETKEY-access', 'SECRETKEY-refresh', 1, 1767700000000, 1767700000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_3f40a7e1cffeRosaGarden0040', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'old-oak', '/home/rosa/garden', 'Prune the old oak', '1.1.60', 1770000000000, 1770000060000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c1100001ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1770000001000, 1770000001000, '{"role":"user","time":{"created":1770000001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c1100001ee001Garden0040', 'msg_c1100001ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1770000001000, 1770000001000, '{"type":"text","text":"When do I prune the oak?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c1100002ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1770000002000, 1770000009000, '{"role":"assistant","time":{"created":1770000002000,"completed":1770000009000},"parentID":"msg_c1100001ff001Garden0040","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.001,"tokens":{"input":90,"output":12,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c1100002ee001Garden0040', 'msg_c1100002ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1770000003000, 1770000009000, '{"type":"text","text":"In winter, while it sleeps.","time":{"start":1770000003000,"end":1770000009000}}');
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_3d50a7e1cffeRosaGarden0043', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'soft-moss', '/home/rosa/garden', 'Rake the moss', '1.2.10', 1771550000000, 1771550060000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2200001ff001Garden0043', 'ses_3d50a7e1cffeRosaGarden0043', 1771550001000, 1771550001000, '{"role":"user","time":{"created":1771550001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2200001ee001Garden0043', 'msg_c2200001ff001Garden0043', 'ses_3d50a7e1cffeRosaGarden0043', 1771550001000, 1771550001000, '{"type":"text","text":"How do I get rid of moss?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2200002ff001Garden0043', 'ses_3d50a7e1cffeRosaGarden0043', 1771550002000, 1771550009000, '{"role":"assistant","time":{"created":1771550002000,"completed":1771550009000},"parentID":"msg_c2200001ff001Garden0043","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.001,"tokens":{"input":90,"output":12,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2200002ee001Garden0043', 'msg_c2200002ff001Garden0043', 'ses_3d50a7e1cffeRosaGarden0043', 1771550003000, 1771550009000, '{"type":"text","text":"Rake it","time":{"start":1771550003000,"end":1771550009000}}');
-- The rows that follow are in the write-ahead log.
INSERT INTO `session_share` (`session_id`, `id`, `secret`, `url`, `time_created`, `time_updated`) VALUES ('ses_3f40a7e1cffeRosaGarden0040', 'shr_3', 'SECRETKEY-share', 'https://opncd.ai/share/shr_3', 1771600000000, 1771600000000);
UPDATE `session` SET `title` = 'Prune the oaks', `time_updated` = 1771600060000 WHERE `id` = 'ses_3f40a7e1cffeRosaGarden0040';
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2000001ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1771600001000, 1771600001000, '{"role":"user","time":{"created":1771600001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000001ee001Garden0040', 'msg_c2000001ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1771600001000, 1771600001000, '{"type":"text","text":"And the young one?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2000002ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1771600002000, 1771600009000, '{"role":"assistant","time":{"created":1771600002000,"completed":1771600009000},"parentID":"msg_c2000001ff001Garden0040","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.001,"tokens":{"input":90,"output":12,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000002ee001Garden0040', 'msg_c2000002ff001Garden0040', 'ses_3f40a7e1cffeRosaGarden0040', 1771600003000, 1771600009000, '{"type":"text","text":"Not before its third year.","time":{"start":1771600003000,"end":1771600009000}}');
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_3e40a7e1cffeRosaGarden0042', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'green-leaf', '/home/rosa/garden', 'Sow the lettuce', '1.2.10', 1771500000000, 1771500060000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2100001ff001Garden0042', 'ses_3e40a7e1cffeRosaGarden0042', 1771500001000, 1771500001000, '{"role":"user","time":{"created":1771500001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2100001ee001Garden0042', 'msg_c2100001ff001Garden0042', 'ses_3e40a7e1cffeRosaGarden0042', 1771500001000, 1771500001000, '{"type":"text","text":"How deep does lettuce go?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2100002ff001Garden0042', 'ses_3e40a7e1cffeRosaGarden0042', 1771500002000, 1771500009000, '{"role":"assistant","time":{"created":1771500002000,"completed":1771500009000},"parentID":"msg_c2100001ff001Garden0042","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.001,"tokens":{"input":90,"output":12,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2100002ee001Garden0042', 'msg_c2100002ff001Garden0042', 'ses_3e40a7e1cffeRosaGarden0042', 1771500003000, 1771500009000, '{"type":"text","text":"Half a centimetre.","time":{"start":1771500003000,"end":1771500009000}}');
UPDATE `part` SET `data` = '{"type":"text","text":"Rake it out, and let in the light.","time":{"start":1771550003000,"end":1771550009000}}', `time_updated` = 1771550009004 WHERE `id` = 'prt_c2200002ee001Garden0043';
