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
CREATE TABLE `kv` (
          `key` text PRIMARY KEY,
          `value` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL
        );
CREATE TABLE `session_v2` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `fork_session_id` text,
          `fork_boundary` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          `time_suspended` integer, `resume_attempts` integer DEFAULT 0 NOT NULL, `time_idle` integer, `time_viewed` integer, `idle_outcome` text,
          CONSTRAINT `fk_session_v2_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE IF NOT EXISTS "session_message" (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `type` text NOT NULL,
          `seq` integer NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_session_message_session_id_session_v2_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session_v2`(`id`) ON DELETE CASCADE
        );
CREATE UNIQUE INDEX `session_message_session_seq_idx` ON `session_message` (`session_id`,`seq`);
CREATE INDEX `session_v2_project_idx` ON `session_v2` (`project_id`);
INSERT INTO `project` (`id`, `worktree`, `vcs`, `icon_url`, `icon_color`, `time_created`, `time_updated`, `sandboxes`, `commands`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '/home/rosa/garden', 'git', 'data:image/png;base64,aWNvbg==', 'lime', 1767700000000, 1767700000000, '[]', '{"start":"make water"}');
INSERT INTO `control_account` (`email`, `url`, `access_token`, `refresh_token`, `active`, `time_created`, `time_updated`) VALUES ('rosa@garden.example', 'https://console.example', 'SECRETKEY-access', 'SECRETKEY-refresh', 1, 1767700000000, 1767700000000);
INSERT INTO `account` (`id`, `email`, `url`, `access_token`, `refresh_token`, `time_created`, `time_updated`) VALUES ('acc_1', 'rosa@garden.example', 'https://console.example', 'SECRETKEY-account', 'SECRETKEY-account-2', 1767700000000, 1767700000000);
INSERT INTO `credential` (`id`, `integration_id`, `label`, `value`, `time_created`, `time_updated`) VALUES ('crd_1', 'anthropic', 'default', '{"type":"key","key":"SECRETKEY-credential"}', 1767700000000, 1767700000000);
INSERT INTO `kv` (`key`, `value`, `time_created`, `time_updated`) VALUES ('migration.v1-v2', '{"phase":"completed"}', 1788900000000, 1788900000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_3d40a7e1cffeRosaGarden0050', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'old-oak', '/home/rosa/garden', 'Feed the roses', '1.18.25', 1788000000000, 1788000060000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c3100001ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 1788000001000, 1788000001000, '{"role":"user","time":{"created":1788000001000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c3100001ee001Garden0050', 'msg_c3100001ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 1788000001000, 1788000001000, '{"type":"text","text":"What do roses eat?"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c3100001ee002Garden0050', 'msg_c3100001ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 1788000001000, 1788000001000, '{"type":"text","text":"Called the Read tool with the following input: {\"filePath\":\"roses.md\"}","synthetic":true}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_c3100002ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 1788000002000, 1788000009000, '{"role":"assistant","time":{"created":1788000002000,"completed":1788000009000},"parentID":"msg_c3100001ff001Garden0050","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.001,"tokens":{"input":90,"output":12,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c3100002dd001Garden0050', 'msg_c3100002ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 1788000002000, 1788000002000, '{"type":"tool","callID":"call_50","tool":"bash","state":{"status":"completed","input":{"command":"cat roses.md"},"output":"pale leaves\n","title":"cat roses.md","metadata":{"output":"pale leaves\n","exit":0},"time":{"start":1788000002500,"end":1788000002900}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_c3100002ee001Garden0050', 'msg_c3100002ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 1788000003000, 1788000009000, '{"type":"text","text":"Bone meal in spring.","time":{"start":1788000003000,"end":1788000009000}}');
INSERT INTO `session_v2` (`project_id`, `slug`, `directory`, `path`, `version`, `id`, `title`, `agent`, `model`, `cost`, `tokens_input`, `tokens_output`, `time_created`, `time_updated`, `time_idle`, `idle_outcome`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'mild-wind', '/home/rosa/garden', '', '1.18.25', 'ses_3d40a7e1cffeRosaGarden0050', 'Feed the roses', 'build', '{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"}', 0.002, 190, 40, 1788000000000, 1789000009000, 1789000009100, 'succeeded');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c3100001ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 'user', 0, 1788000001000, 1788000001001, '{"text":"What do roses eat?","time":{"created":1788000001000}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c3100001ff00q0bQmW2xZfJp4a', 'ses_3d40a7e1cffeRosaGarden0050', 'synthetic', 7, 1788000001000, 1788000001001, '{"text":"Called the Read tool with the following input: {\"filePath\":\"roses.md\"}","time":{"created":1788000001000}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c3100002ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 'assistant', 1, 1788000002000, 1788000002001, '{"agent":"build","model":{"providerID":"anthropic","id":"claude-sonnet-4-5","variant":"default"},"content":[{"type":"tool","id":"call_50","name":"shell","state":{"status":"completed","input":{"command":"cat roses.md"},"content":[{"type":"text","text":"pale leaves\n"}],"metadata":{"output":"pale leaves\n","exit":0}},"time":{"created":1788000002500,"completed":1788000002900}},{"type":"text","text":"Bone meal in spring."}],"finish":"stop","cost":0.001,"tokens":{"input":100,"output":12,"reasoning":0,"cache":{"read":20,"write":0}},"time":{"created":1788000002000,"completed":1788000009000}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c3100002ff001zSystem0050', 'ses_3d40a7e1cffeRosaGarden0050', 'system', 2, 1788000002000, 1788000002001, '{"text":"The available tools have changed.\n\nThe `bash` tool is now `shell` and must be called by that name.","time":{"created":1788000002000}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c4000001ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 'agent-switched', 3, 1789000000000, 1789000000001, '{"time":{"created":1789000000000},"agent":"build","previous":"build"}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c4000002ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 'user', 4, 1789000001000, 1789000001001, '{"time":{"created":1789000001000},"text":"And in autumn?","files":[]}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c4000003ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 'assistant', 5, 1789000002000, 1789000002001, '{"time":{"created":1789000002000,"streamed":1789000008000,"completed":1789000009000},"agent":"build","model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"content":[{"type":"text","text":"Nothing more."}],"finish":"stop","rawFinish":"end_turn","cost":0.001,"tokens":{"input":100,"output":5,"reasoning":0,"cache":{"read":20,"write":0}}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c4000004ff001Garden0050', 'ses_3d40a7e1cffeRosaGarden0050', 'idle', 6, 1789000009100, 1789000009101, '{"time":{"created":1789000009100},"outcome":"succeeded"}');
INSERT INTO `session_v2` (`project_id`, `slug`, `directory`, `path`, `version`, `id`, `agent`, `model`, `cost`, `tokens_input`, `tokens_output`, `tokens_cache_read`, `time_created`, `time_updated`, `fork_session_id`, `fork_boundary`, `metadata`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'mild-wind', '/home/rosa/garden', '', '2.0.26', 'ses_3c40a7e1cffeRosaGarden0051', 'build', '{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"}', 0.0123, 500, 90, 80, 1789100000000, 1789100090000, 'ses_3d40a7e1cffeRosaGarden0050', '{"type":"before","messageID":"msg_c4000002ff001Garden0050"}', '{"source":"desktop"}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000001ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'user', 1, 1789100001000, 1789100001001, '{"time":{"created":1789100001000},"text":"Which beetle is on @bean.png?","files":[{"data":"iVBORw0KGgo=","mime":"image/png","name":"bean.png","source":{"type":"inline"},"mention":{"start":18,"end":27,"text":"@bean.png"}},{"uri":"file:///home/rosa/garden/beans.md","mime":"text/plain","name":"beans.md"}],"agents":[{"name":"explore","mention":{"start":0,"end":5,"text":"Which"}}]}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000002ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'synthetic', 2, 1789100001500, 1789100001501, '{"time":{"created":1789100001500},"text":"<system-reminder>The person prefers short answers.</system-reminder>","description":"A reminder about the style","metadata":{"source":"plugin"}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000003ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'assistant', 3, 1789100002000, 1789100002001, '{"time":{"created":1789100002000,"streamed":1789100004000,"completed":1789100005000},"agent":"build","model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"content":[{"type":"reasoning","text":"It has ten lines on its back.","native":{"anthropic":{"signature":"c2lnbmF0dXJl"}},"time":{"created":1789100002100,"completed":1789100002600}},{"type":"text","text":"I look it up.","native":{"itemId":"rs_2"}},{"type":"tool","id":"call_0","name":"read","executed":false,"native":{"anthropic":{"signature":"c2lnbmF0dXJl"}},"state":{"status":"completed","input":{"path":"beetles.md"},"content":[{"type":"text","text":"Read file beetles.md, lines 1-1"},{"type":"text","text":"1: potato beetle: ten lines"},{"type":"file","uri":"data:image/png;base64,iVBORw0KGgo=","mime":"image/png","name":"beetle.png"}],"metadata":{"truncated":false}},"time":{"created":1789100002700,"ran":1789100002800,"completed":1789100002900}},{"type":"tool","id":"call_0","name":"shell","executed":true,"state":{"status":"error","input":{"command":"count beetles"},"error":{"type":"tool.execution","message":"count: not found"},"metadata":{"exit":127}},"time":{"created":1789100003000,"ran":1789100003100,"completed":1789100003200}},{"type":"tool","id":"call_1","name":"todo","state":{"status":"running","input":{},"metadata":{}},"time":{"created":1789100003300,"ran":1789100003300}},{"type":"tool","id":"call_2","name":"edit","state":{"status":"streaming","input":"{\"path\": \"bee"},"time":{"created":1789100003400}}],"snapshot":{"start":"5e1f5e1f","end":"5e1f5e20","files":["beetles.md"]},"finish":"tool-calls","rawFinish":"tool_use","native":{"anthropic":{"signature":"c2lnbmF0dXJl"}},"cost":0.01,"tokens":{"input":100,"output":60,"reasoning":0,"cache":{"read":20,"write":0}},"retry":{"attempt":1,"at":1789100002050,"error":{"type":"provider.overloaded","message":"Overloaded"}}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000004ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'assistant', 4, 1789100006000, 1789100006001, '{"time":{"created":1789100006000,"completed":1789100007000},"agent":"build","model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"content":[],"finish":"error","error":{"type":"provider.auth","message":"The key is not valid"}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000005ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'model-switched', 5, 1789100008000, 1789100008001, '{"time":{"created":1789100008000},"model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"previous":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000006ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'shell', 6, 1789100009000, 1789100009001, '{"time":{"created":1789100009000,"completed":1789100009100},"shellID":"sh_51","command":"ls beds","status":"exited","exit":0,"output":{"output":"beans\nroses\n","cursor":12,"size":12,"truncated":false}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000007ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'shell', 7, 1789100009200, 1789100009201, '{"time":{"created":1789100009200},"shellID":"sh_52","command":"watch beds","status":"running"}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000008ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'skill', 8, 1789100009300, 1789100009301, '{"time":{"created":1789100009300},"skill":"composting","name":"Composting","text":"Turn the heap every second week."}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000009ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'compaction', 9, 1789100009400, 1789100009401, '{"time":{"created":1789100009400},"status":"completed","reason":"manual","model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"summary":"The beetle has ten lines: a potato beetle.","recent":"SECRETRECENT","providerContext":{"anthropic":{"encrypted":"ZW5jcnlwdGVk"}},"cost":0.001,"tokens":{"input":100,"output":20,"reasoning":0,"cache":{"read":20,"write":0}}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000010ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'compaction', 10, 1789100009500, 1789100009501, '{"time":{"created":1789100009500},"status":"failed","reason":"auto","error":{"type":"unknown","message":"The summary was empty"}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000011ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'location-switched', 11, 1789100009600, 1789100009601, '{"time":{"created":1789100009600},"location":{"directory":"/home/rosa/orchard"}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000012ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'poll', 12, 1789100009700, 1789100009701, '{"time":{"created":1789100009700},"text":"Was this answer good?"}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000013ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'user', 13, 1789100009800, 1789100009801, '{"time":{"created":1789100009800},"text":"","files":[{"data":"?!","mime":"image/gif","name":"torn.gif","source":{"type":"inline"}}],"skills":[{"id":"composting"}]}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c5000014ff001Garden0051', 'ses_3c40a7e1cffeRosaGarden0051', 'idle', 14, 1789100009900, 1789100009901, '{"time":{"created":1789100009900},"outcome":"interrupted"}');
INSERT INTO `session_v2` (`project_id`, `slug`, `directory`, `path`, `version`, `id`, `title`, `time_created`, `time_updated`, `fork_session_id`, `fork_boundary`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'mild-wind', '/home/rosa/garden', '', '2.0.26', 'ses_3c42a7e1cffeRosaGarden0053', 'Feed the roses (fork #1)', 1789100030000, 1789100031000, 'ses_3d40a7e1cffeRosaGarden0050', '{"type":"through","messageID":"msg_c3100002ff001Garden0050"}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7777777ff001Garden0053_9', 'ses_3c42a7e1cffeRosaGarden0053', 'assistant', 9, 1788000002000, 1788000002001, '{"time":{"created":1788000002000,"completed":1788000009000},"agent":"build","model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"content":[{"type":"text","text":"Bone meal in spring."}],"finish":"stop","cost":0.001,"tokens":{"input":100,"output":12,"reasoning":0,"cache":{"read":20,"write":0}}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7777777ff001Garden0053_10', 'ses_3c42a7e1cffeRosaGarden0053', 'system', 10, 1788000002000, 1788000002001, '{"text":"The available tools have changed.","time":{"created":1788000002000}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c7777777ff001Garden0053_8', 'ses_3c42a7e1cffeRosaGarden0053', 'user', 8, 1788000001000, 1788000001001, '{"text":"What do roses eat?","time":{"created":1788000001000}}');
INSERT INTO `session_v2` (`project_id`, `slug`, `directory`, `path`, `version`, `id`, `title`, `parent_id`, `time_created`, `time_updated`, `time_archived`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', 'mild-wind', '/home/rosa/garden', '', '2.0.26', 'ses_3c41a7e1cffeRosaGarden0052', 'Find the nest', 'ses_3c40a7e1cffeRosaGarden0051', 1789100002000, 1789100003000, 1789100020000);
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c6000001ff001Garden0052', 'ses_3c41a7e1cffeRosaGarden0052', 'user', 1, 1789100002000, 1789100002001, '{"time":{"created":1789100002000},"text":"Find the nest of the beetles."}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c6000002ff001Garden0052', 'ses_3c41a7e1cffeRosaGarden0052', 'assistant', 2, 1789100002500, 1789100002501, '{"time":{"created":1789100002500},"agent":"explore","model":{"id":"claude-sonnet-5","providerID":"anthropic","variant":"default"},"content":[{"type":"text","text":"Under the third leaf."}]}');
