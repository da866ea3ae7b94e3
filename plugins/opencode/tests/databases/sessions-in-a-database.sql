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
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `summary_additions`, `summary_deletions`, `summary_files`, `time_created`, `time_updated`) VALUES ('ses_4014a7e1cffeRosaGarden0020', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'quiet-fern', '/home/rosa/garden', 'Water the tomato beds', '1.0.120', 3, 1, 1, 1767702000000, 1767702060000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9014001ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702001000, 1767702001000, '{"role":"user","time":{"created":1767702001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"},"summary":{"title":"Which bed is dry","diffs":[{"file":"beds.toml","before":"moisture = 12\n","after":"moisture = 40\n","additions":1,"deletions":1}]}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014001ee001Garden0020', 'msg_b9014001ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702001000, 1767702001000, '{"type":"text","text":"Read @beds.toml and tell me which bed is dry."}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014002ee001Garden0020', 'msg_b9014001ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702001000, 1767702001000, '{"type":"file","mime":"text/plain","filename":"beds.toml","url":"file:///home/rosa/garden/beds.toml","source":{"type":"file","path":"beds.toml","text":{"value":"@beds.toml","start":5,"end":15}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014003ee001Garden0020', 'msg_b9014001ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702001000, 1767702001000, '{"type":"text","text":"Called the Read tool with the following input: {\"filePath\":\"/home/rosa/garden/beds.toml\"}","synthetic":true}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014004ee001Garden0020', 'msg_b9014001ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702001000, 1767702001000, '{"type":"text","text":"<file>\n00001| [tomato]\n00002| moisture = 12\n</file>","synthetic":true}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002000, 1767702002900, '{"role":"assistant","time":{"created":1767702002000,"completed":1767702002900},"parentID":"msg_b9014001ff001Garden0020","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"tool-calls"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014005ee001Garden0020', 'msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002000, 1767702002000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014006ee001Garden0020', 'msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002100, 1767702002400, '{"type":"reasoning","text":"The tomato bed has a low number.","time":{"start":1767702002100,"end":1767702002400},"metadata":{"anthropic":{"signature":"c2lnbmF0dXJl"}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014007ee001Garden0020', 'msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002400, 1767702002650, '{"type":"text","text":"The tomato bed is dry. I look at the plan first.","time":{"start":1767702002400,"end":1767702002650}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014008ee001Garden0020', 'msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002000, 1767702002000, '{"type":"tool","callID":"toolu_01","tool":"read","state":{"status":"completed","input":{"filePath":"/home/rosa/garden/plan.md"},"output":"<file>\n00001| Water on Monday.\n</file>","title":"plan.md","metadata":{"preview":"Water on Monday."},"time":{"start":1767702002700,"end":1767702002820}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014009ee001Garden0020', 'msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002000, 1767702002000, '{"type":"step-finish","reason":"tool-calls","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":31,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b901400aee001Garden0020', 'msg_b9014002ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702002000, 1767702002000, '{"type":"patch","hash":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","files":["/home/rosa/garden/beds.toml"]}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9014003ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702003000, 1767702003900, '{"role":"assistant","time":{"created":1767702003000,"completed":1767702003900},"parentID":"msg_b9014001ff001Garden0020","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"tool-calls"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b901400bee001Garden0020', 'msg_b9014003ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702003000, 1767702003000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b901400cee001Garden0020', 'msg_b9014003ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702003000, 1767702003000, '{"type":"tool","callID":"toolu_02","tool":"edit","state":{"status":"error","input":{"filePath":"/home/rosa/garden/beds.toml","oldString":"moisture = 12","newString":"moisture = 40"},"error":"Error: oldString not found in content","time":{"start":1767702003100,"end":1767702003220}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b901400dee001Garden0020', 'msg_b9014003ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702003000, 1767702003000, '{"type":"tool","callID":"toolu_03","tool":"bash","state":{"status":"completed","input":{"command":"cat beds.toml","description":"Shows the beds"},"output":"[tomato]\nmoisture = 12\n","title":"cat beds.toml","metadata":{"output":"[tomato]\nmoisture = 12\n","exit":0,"description":"Shows the beds"},"time":{"start":1767702003300,"end":1767702003420}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b901400eee001Garden0020', 'msg_b9014003ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702003000, 1767702003000, '{"type":"step-finish","reason":"tool-calls","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":22,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9014004ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702004000, 1767702004900, '{"role":"assistant","time":{"created":1767702004000,"completed":1767702004900},"parentID":"msg_b9014001ff001Garden0020","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b901400fee001Garden0020', 'msg_b9014004ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702004000, 1767702004000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014010ee001Garden0020', 'msg_b9014004ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702004100, 1767702004350, '{"type":"text","text":"Water the tomato bed on Monday.\n\nThe others can wait.","time":{"start":1767702004100,"end":1767702004350}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014011ee001Garden0020', 'msg_b9014004ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702004000, 1767702004000, '{"type":"step-finish","reason":"stop","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":17,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9014005ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702005000, 1767702005000, '{"role":"user","time":{"created":1767702005000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014012ee001Garden0020', 'msg_b9014005ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702005000, 1767702005000, '{"type":"text","text":"Thank you, and what about the beans?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9014006ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702006000, 1767702006900, '{"role":"assistant","time":{"created":1767702006000,"completed":1767702006900},"parentID":"msg_b9014005ff001Garden0020","modelID":"gpt-5.1","providerID":"openai","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop","variant":"high"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014013ee001Garden0020', 'msg_b9014006ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702006000, 1767702006000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014014ee001Garden0020', 'msg_b9014006ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702006200, 1767702006450, '{"type":"text","text":"The beans are fine until Thursday.","time":{"start":1767702006200,"end":1767702006450}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9014015ee001Garden0020', 'msg_b9014006ff001Garden0020', 'ses_4014a7e1cffeRosaGarden0020', 1767702006000, 1767702006000, '{"type":"step-finish","reason":"stop","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":9,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `todo` (`session_id`, `content`, `status`, `priority`, `position`, `time_created`, `time_updated`) VALUES ('ses_4014a7e1cffeRosaGarden0020', 'Measure the moisture of the beans', 'completed', 'high', 0, 1767700000000, 1767700000000);
INSERT INTO `todo` (`session_id`, `content`, `status`, `priority`, `position`, `time_created`, `time_updated`) VALUES ('ses_4014a7e1cffeRosaGarden0020', 'Repair the hose', 'pending', 'low', 1, 1767700000000, 1767700000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_4013a7e1cffeRosaGarden0019', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '/home/rosa/garden', 'New session - 2026-01-06T11:46:40.000Z', '1.0.120', 1767701900000, 1767701960000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9013003ff001Garden0019', 'ses_4013a7e1cffeRosaGarden0019', 1767701903000, 1767701903000, '{"role":"user","time":{"created":1767701903000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9013003ee001Garden0019', 'msg_b9013003ff001Garden0019', 'ses_4013a7e1cffeRosaGarden0019', 1767701903000, 1767701903000, '{"type":"text","text":"Three."}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9013001ff001Garden0019', 'ses_4013a7e1cffeRosaGarden0019', 1767701901000, 1767701901000, '{"role":"user","time":{"created":1767701901000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9013001ee001Garden0019', 'msg_b9013001ff001Garden0019', 'ses_4013a7e1cffeRosaGarden0019', 1767701901000, 1767701901000, '{"type":"text","text":"One."}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9013002ff001Garden0019', 'ses_4013a7e1cffeRosaGarden0019', 1767701902000, 1767701902900, '{"role":"assistant","time":{"created":1767701902000,"completed":1767701902900},"parentID":"msg_b9013001ff001Garden0019","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9013002ee001Garden0019', 'msg_b9013002ff001Garden0019', 'ses_4013a7e1cffeRosaGarden0019', 1767701902100, 1767701902350, '{"type":"text","text":"Two.","time":{"start":1767701902100,"end":1767701902350}}');
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
INSERT INTO `account` (`id`, `email`, `url`, `access_token`, `refresh_token`, `time_created`, `time_updated`) VALUES ('acc_1', 'rosa@garden.example', 'https://console.example', 'SECRETKEY-account', 'SECRETKEY-account-2', 1767700000000, 1767700000000);
INSERT INTO `credential` (`id`, `integration_id`, `label`, `value`, `time_created`, `time_updated`) VALUES ('crd_1', 'anthropic', 'default', '{"type":"key","key":"SECRETKEY-credential"}', 1767700000000, 1767700000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_4006a7e1cffeRosaGarden0006', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '/home/rosa/garden', 'Paint the shed', '1.0.120', 1767700600000, 1767700660000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006001ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700601000, 1767700601000, '{"role":"user","time":{"created":1767700601000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006001ee001Garden0006', 'msg_b9006001ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700601000, 1767700601000, '{"type":"text","text":"Paint the shed green."}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006002ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700602000, 1767700602900, '{"role":"assistant","time":{"created":1767700602000,"completed":1767700602900},"parentID":"msg_b9006001ff001Garden0006","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"error":{"name":"MessageAbortedError","data":{"message":"The operation was aborted by the person."}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006002ee001Garden0006', 'msg_b9006002ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700602000, 1767700602000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006003ee001Garden0006', 'msg_b9006002ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700602000, 1767700602000, '{"type":"retry","attempt":1,"error":{"name":"APIError","data":{"message":"The service is overloaded","statusCode":529,"isRetryable":true}},"time":{"created":1767700602050}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006004ee001Garden0006', 'msg_b9006002ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700602100, 1767700602350, '{"type":"text","text":"I begin with the door.","time":{"start":1767700602100,"end":1767700602350}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006003ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700603000, 1767700603000, '{"role":"user","time":{"created":1767700603000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006005ee001Garden0006', 'msg_b9006003ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700603000, 1767700603000, '{"type":"text","text":"Go on with the roof."}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006004ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700604000, 1767700604900, '{"role":"assistant","time":{"created":1767700604000,"completed":1767700604900},"parentID":"msg_b9006003ff001Garden0006","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"error":{"name":"ProviderAuthError","data":{"providerID":"anthropic","message":"The key of the provider is missing."}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006005ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700605000, 1767700605000, '{"role":"user","time":{"created":1767700605000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006006ee001Garden0006', 'msg_b9006005ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700605000, 1767700605000, '{"type":"text","text":"And now?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606000, 1767700606000, '{"role":"assistant","time":{"created":1767700606000},"parentID":"msg_b9006005ff001Garden0006","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006007ee001Garden0006', 'msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606000, 1767700606000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006008ee001Garden0006', 'msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606010, 1767700606310, '{"type":"reasoning","text":"","time":{"start":1767700606010,"end":1767700606310},"metadata":{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"ZW5jcnlwdGVk"}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9006009ee001Garden0006', 'msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606020, 1767700606270, '{"type":"text","text":"","time":{"start":1767700606020,"end":1767700606270}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900600aee001Garden0006', 'msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606000, 1767700606000, '{"type":"tool","callID":"toolu_21","tool":"glob","state":{"status":"running","input":{"pattern":"*.toml"},"title":"Searching","time":{"start":1767700606100}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900600bee001Garden0006', 'msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606000, 1767700606000, '{"type":"tool","callID":"toolu_22","tool":"glob","state":{"status":"pending","input":{},"raw":"{\"pattern\": \"*.to"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900600cee001Garden0006', 'msg_b9006006ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700606000, 1767700606000, '{"type":"tool","callID":"toolu_23","tool":"bash","state":{"status":"error","input":{"command":"sleep 9"},"error":"Tool execution aborted","metadata":{"output":"halfway through","interrupted":true},"time":{"start":1767700606300,"end":1767700606420}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006007ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700607000, 1767700607000, '{"role":"assistant","time":{"created":1767700607000},"parentID":"msg_b9006005ff001Garden0006","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9006008ff001Garden0006', 'ses_4006a7e1cffeRosaGarden0006', 1767700608000, 1767700608900, '{"role":"assistant","time":{"created":1767700608000,"completed":1767700608900},"parentID":"msg_b9006005ff001Garden0006","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"error":{"name":"MessageOutputLengthError","data":{}}}');
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_4010a7e1cffeRosaGarden0016', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '/home/rosa/garden', 'Nothing', '1.0.120', 1767701600000, 1767701660000);
INSERT INTO `session_share` (`session_id`, `id`, `secret`, `url`, `time_created`, `time_updated`) VALUES ('ses_4014a7e1cffeRosaGarden0020', 'shr_1', 'SECRETKEY-share', 'https://opncd.ai/share/shr_1', 1767702000000, 1767702000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `share_url`, `summary_additions`, `summary_deletions`, `summary_files`, `summary_diffs`, `permission`, `time_created`, `time_updated`, `workspace_id`, `path`, `agent`, `model`, `metadata`, `cost`, `tokens_input`, `tokens_output`, `tokens_reasoning`, `tokens_cache_read`, `tokens_cache_write`) VALUES ('ses_3fd0a7e1cffeRosaGarden0030', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'calm-moss', '/home/rosa/garden', 'Count the seed packets', '1.15.10', 'https://opncd.ai/share/shr_2', 1, 0, 1, '[{"file":"packets.csv","before":"SECRETCONTENT","after":"SECRETCONTENT 2","additions":1,"deletions":0}]', '[{"permission":"question","pattern":"*","action":"deny"}]', 1779000000000, 1779000060000, 'wrk_garden', '', 'build', '{"id":"claude-sonnet-4-5","providerID":"anthropic","variant":"default"}', '{"source":"desktop"}', 0.0125, 900, 25, 4, 10, 2);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2000001ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000001000, 1779000001000, '{"role":"user","time":{"created":1779000001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000001ee001Garden0030', 'msg_c2000001ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000001000, 1779000001000, '{"type":"text","text":"How many packets of beans are left?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c2000002ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000002000, 1779000009000, '{"role":"assistant","time":{"created":1779000002000,"completed":1779000009000},"parentID":"msg_c2000001ff001Garden0030","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0125,"tokens":{"input":900,"output":25,"reasoning":4,"cache":{"read":10,"write":2}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000004ee001Garden0030', 'msg_c2000002ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000008000, 1779000009000, '{"type":"text","text":"Seven packets are left.","time":{"start":1779000008000,"end":1779000009000}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000003ee001Garden0030', 'msg_c2000002ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000002000, 1779000002000, '{"type":"tool","callID":"toolu_30","tool":"read","state":{"status":"completed","input":{"filePath":"packets.csv"},"output":"beans,7","title":"packets.csv","metadata":{},"time":{"start":1779000003000,"end":1779000004000}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000002ee001Garden0030', 'msg_c2000002ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000002000, 1779000002000, '{"type":"step-start"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c2000005ee001Garden0030', 'msg_c2000002ff001Garden0030', 'ses_3fd0a7e1cffeRosaGarden0030', 1779000002000, 1779000002000, '{"type":"step-finish","reason":"stop","cost":0.0125,"tokens":{"input":900,"output":25,"reasoning":4,"cache":{"read":10,"write":2}}}');
INSERT INTO `todo` (`session_id`, `content`, `status`, `priority`, `position`, `time_created`, `time_updated`) VALUES ('ses_3fd0a7e1cffeRosaGarden0030', 'Order more peas', 'pending', 'low', 1, 1767700000000, 1767700000000);
INSERT INTO `todo` (`session_id`, `content`, `status`, `priority`, `position`, `time_created`, `time_updated`) VALUES ('ses_3fd0a7e1cffeRosaGarden0030', 'Count the beans', 'completed', 'high', 0, 1767700000000, 1767700000000);
