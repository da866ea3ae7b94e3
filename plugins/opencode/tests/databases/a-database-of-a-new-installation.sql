PRAGMA page_size = 1024;
CREATE TABLE `workspace` (
  `id` text PRIMARY KEY,
  `type` text NOT NULL,
  `name` text DEFAULT '' NOT NULL,
  `branch` text,
  `directory` text,
  `extra` text,
  `project_id` text NOT NULL,
  `time_used` integer NOT NULL,
  CONSTRAINT `fk_workspace_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
);
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
CREATE TABLE `event_sequence` (
  `aggregate_id` text PRIMARY KEY,
  `seq` integer NOT NULL,
  `owner_id` text
);
CREATE TABLE `event` (
  `id` text PRIMARY KEY,
  `aggregate_id` text NOT NULL,
  `seq` integer NOT NULL,
  `type` text NOT NULL,
  `data` text NOT NULL,
  CONSTRAINT `fk_event_aggregate_id_event_sequence_aggregate_id_fk` FOREIGN KEY (`aggregate_id`) REFERENCES `event_sequence`(`aggregate_id`) ON DELETE CASCADE
);
CREATE TABLE `project` (
  `id` text PRIMARY KEY,
  `worktree` text NOT NULL,
  `vcs` text,
  `name` text,
  `icon_url` text,
  `icon_url_override` text,
  `icon_color` text,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `time_initialized` integer,
  `sandboxes` text NOT NULL,
  `commands` text
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
CREATE TABLE `session_message` (
  `id` text PRIMARY KEY,
  `session_id` text NOT NULL,
  `type` text NOT NULL,
  `seq` integer NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL,
  CONSTRAINT `fk_session_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
);
CREATE TABLE `session` (
  `id` text PRIMARY KEY,
  `project_id` text NOT NULL,
  `workspace_id` text,
  `parent_id` text,
  `slug` text NOT NULL,
  `directory` text NOT NULL,
  `path` text,
  `title` text NOT NULL,
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
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`,`id`);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `session_project_idx` ON `session` (`project_id`);
INSERT INTO `project` (`id`, `worktree`, `vcs`, `icon_url`, `icon_color`, `time_created`, `time_updated`, `sandboxes`, `commands`) VALUES ('7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '/home/rosa/garden', 'git', 'data:image/png;base64,aWNvbg==', 'lime', 1767700000000, 1767700000000, '[]', '{"start":"make water"}');
INSERT INTO `account` (`id`, `email`, `url`, `access_token`, `refresh_token`, `time_created`, `time_updated`) VALUES ('acc_1', 'rosa@garden.example', 'https://console.example', 'SECRETKEY-account', 'SECRETKEY-account-2', 1767700000000, 1767700000000);
INSERT INTO `credential` (`id`, `integration_id`, `label`, `value`, `time_created`, `time_updated`) VALUES ('crd_1', 'anthropic', 'default', '{"type":"key","key":"SECRETKEY-credential"}', 1767700000000, 1767700000000);
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `time_created`, `time_updated`) VALUES ('ses_4007a7e1cffeRosaGarden0007', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '/home/rosa/garden', 'Pictures of beetles', '1.0.120', 1767700700000, 1767700760000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"role":"user","time":{"created":1767700701000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007001ee001Garden0007', 'msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"type":"text","text":"Which beetle is this?"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007002ee001Garden0007', 'msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"type":"file","mime":"image/png","filename":"beetle.png","url":"data:image/png;base64,iVBORw0KGgo="}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007003ee001Garden0007', 'msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"type":"file","mime":"image/jpeg","filename":"far.jpg","url":"https://files.example.org/far.jpg?X-Amz-Signature=SECRETKEY&X-Amz-Date=1"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007004ee001Garden0007', 'msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"type":"file","mime":"image/gif","filename":"torn.gif","url":"data:image/gif;base64,?!"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007005ee001Garden0007', 'msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"type":"text","text":"Ask @explore too."}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007006ee001Garden0007', 'msg_b9007001ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700701000, 1767700701000, '{"type":"agent","name":"explore","source":{"value":"@explore","start":4,"end":12}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007002ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700702000, 1767700702900, '{"role":"assistant","time":{"created":1767700702000,"completed":1767700702900},"parentID":"msg_b9007001ff001Garden0007","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007007ee001Garden0007', 'msg_b9007002ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700702000, 1767700702000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007008ee001Garden0007', 'msg_b9007002ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700702000, 1767700702000, '{"type":"tool","callID":"toolu_31","tool":"screenshot","state":{"status":"completed","input":{"of":"beetle"},"output":"Image read successfully","title":"beetle.png","metadata":{},"time":{"start":1767700702100,"end":1767700702220},"attachments":[{"id":"prt_att_1","sessionID":"ses_4007a7e1cffeRosaGarden0007","messageID":"m","type":"file","mime":"image/png","url":"data:image/png;base64,iVBORw0KGgo="},{"id":"prt_att_2","type":"file","mime":"text/plain","filename":"notes.txt","url":"file:///home/rosa/notes.txt"}]}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007009ee001Garden0007', 'msg_b9007002ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700702400, 1767700702650, '{"type":"text","text":"It is a ladybird.","time":{"start":1767700702400,"end":1767700702650}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900700aee001Garden0007', 'msg_b9007002ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700702000, 1767700702000, '{"type":"step-finish","reason":"stop","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":7,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007003ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700703000, 1767700703000, '{"role":"user","time":{"created":1767700703000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900700bee001Garden0007', 'msg_b9007003ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700703000, 1767700703000, '{"type":"subtask","prompt":"Review the pictures of all beetles.","description":"Review pictures","agent":"explore","command":"review","model":{"providerID":"anthropic","modelID":"claude-haiku-4-5"}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007004ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700704000, 1767700704900, '{"role":"assistant","time":{"created":1767700704000,"completed":1767700704900},"parentID":"msg_b9007003ff001Garden0007","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900700cee001Garden0007', 'msg_b9007004ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700704100, 1767700704350, '{"type":"text","text":"All pictures are sharp.","time":{"start":1767700704100,"end":1767700704350}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007005ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700705000, 1767700705000, '{"role":"user","time":{"created":1767700705000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900700dee001Garden0007', 'msg_b9007005ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700705000, 1767700705000, '{"type":"file","mime":"application/pdf","filename":"beetles.pdf","url":"data:application/pdf;base64,JVBERi0="}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007006ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700706000, 1767700706900, '{"role":"assistant","time":{"created":1767700706000,"completed":1767700706900},"parentID":"msg_b9007005ff001Garden0007","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900700eee001Garden0007', 'msg_b9007006ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700706100, 1767700706350, '{"type":"text","text":"A book about beetles.","time":{"start":1767700706100,"end":1767700706350}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007007ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700707000, 1767700707000, '{"role":"user","time":{"created":1767700707000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900700fee001Garden0007', 'msg_b9007007ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700707000, 1767700707000, '{"type":"text","text":"The following tool was executed by the user","synthetic":true}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007008ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700708000, 1767700708900, '{"role":"assistant","time":{"created":1767700708000,"completed":1767700708900},"parentID":"msg_b9007007ff001Garden0007","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007010ee001Garden0007', 'msg_b9007008ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700708000, 1767700708000, '{"type":"tool","callID":"toolu_32","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"beetle.png","metadata":{"output":"beetle.png"},"time":{"start":1767700708100,"end":1767700708220}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9007009ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700709000, 1767700709000, '{"role":"user","time":{"created":1767700709000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"},"system":"Answer in one sentence.","tools":{"bash":false},"format":{"type":"text"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007011ee001Garden0007', 'msg_b9007009ff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700709000, 1767700709000, '{"type":"text","text":"A plugin has a message for you.","ignored":true}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b900700aff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700710000, 1767700710900, '{"role":"assistant","time":{"created":1767700710000,"completed":1767700710900},"parentID":"msg_b9007009ff001Garden0007","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop","structured":{"answer":"yes"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9007012ee001Garden0007', 'msg_b900700aff001Garden0007', 'ses_4007a7e1cffeRosaGarden0007', 1767700710100, 1767700710350, '{"type":"text","text":"I have read the note.","time":{"start":1767700710100,"end":1767700710350}}');
INSERT INTO `session` (`id`, `project_id`, `slug`, `directory`, `title`, `version`, `revert`, `time_created`, `time_updated`) VALUES ('ses_4005a7e1cffeRosaGarden0005', '7d3c0ffee7d3c0ffee7d3c0ffee7d3c0ffee7d3c', '', '/home/rosa/garden', 'Compost', '1.0.120', '{"messageID":"msg_b9005005ff001Garden0005","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","diff":"--- a/heap.md\n+++ b/heap.md\n"}', 1767700500000, 1767700560000);
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9005001ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700501000, 1767700501000, '{"role":"user","time":{"created":1767700501000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005001ee001Garden0005', 'msg_b9005001ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700501000, 1767700501000, '{"type":"text","text":"How long does compost need?"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9005002ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700502000, 1767700502900, '{"role":"assistant","time":{"created":1767700502000,"completed":1767700502900},"parentID":"msg_b9005001ff001Garden0005","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005002ee001Garden0005', 'msg_b9005002ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700502000, 1767700502000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005003ee001Garden0005', 'msg_b9005002ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700502100, 1767700502350, '{"type":"text","text":"About nine months.","time":{"start":1767700502100,"end":1767700502350}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005004ee001Garden0005', 'msg_b9005002ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700502000, 1767700502000, '{"type":"step-finish","reason":"stop","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":8,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9005003ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700503000, 1767700503000, '{"role":"user","time":{"created":1767700503000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005005ee001Garden0005', 'msg_b9005003ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700503000, 1767700503000, '{"type":"compaction","auto":true,"overflow":false,"tail_start_id":"msg_b9005001ff001Garden0005"}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9005004ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700504000, 1767700504900, '{"role":"assistant","time":{"created":1767700504000,"completed":1767700504900},"parentID":"msg_b9005003ff001Garden0005","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"compaction","agent":"compaction","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop","summary":true}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005006ee001Garden0005', 'msg_b9005004ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700504000, 1767700504000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005007ee001Garden0005', 'msg_b9005004ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700504100, 1767700504350, '{"type":"text","text":"The person asked how long compost needs, and learned that it needs nine months.","time":{"start":1767700504100,"end":1767700504350}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005008ee001Garden0005', 'msg_b9005004ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700504000, 1767700504000, '{"type":"step-finish","reason":"stop","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":40,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9005005ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700505000, 1767700505000, '{"role":"user","time":{"created":1767700505000},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b9005009ee001Garden0005', 'msg_b9005005ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700505000, 1767700505000, '{"type":"text","text":"Continue if you have next steps","synthetic":true}');
INSERT INTO `message` (`id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('msg_b9005006ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700506000, 1767700506900, '{"role":"assistant","time":{"created":1767700506000,"completed":1767700506900},"parentID":"msg_b9005005ff001Garden0005","modelID":"claude-sonnet-4-5","providerID":"anthropic","mode":"build","agent":"build","path":{"cwd":"/home/rosa/garden","root":"/home/rosa/garden"},"cost":0.0123,"tokens":{"input":900,"output":40,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900500aee001Garden0005', 'msg_b9005006ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700506000, 1767700506000, '{"type":"step-start","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f"}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900500bee001Garden0005', 'msg_b9005006ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700506100, 1767700506350, '{"type":"text","text":"There is nothing left to do.","time":{"start":1767700506100,"end":1767700506350}}');
INSERT INTO `part` (`id`, `message_id`, `session_id`, `time_created`, `time_updated`, `data`) VALUES ('prt_b900500cee001Garden0005', 'msg_b9005006ff001Garden0005', 'ses_4005a7e1cffeRosaGarden0005', 1767700506000, 1767700506000, '{"type":"step-finish","reason":"stop","snapshot":"5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f","cost":0.004,"tokens":{"input":12,"output":6,"reasoning":3,"cache":{"read":700,"write":60}}}');
INSERT INTO `session_message` (`id`, `session_id`, `type`, `seq`, `time_created`, `time_updated`, `data`) VALUES ('msg_c1000001001switch', 'ses_4007a7e1cffeRosaGarden0007', 'agent-switched', 1, 1767700000000, 1767700000000, '{"time":{"created":1767700000000},"agent":"build"}');
INSERT INTO `event_sequence` (`aggregate_id`, `seq`) VALUES ('ses_4007a7e1cffeRosaGarden0007', 1);
INSERT INTO `event` (`id`, `aggregate_id`, `seq`, `type`, `data`) VALUES ('evt_1', 'ses_4007a7e1cffeRosaGarden0007', 1, 'session.updated.1', '{"info":{"title":"An event of the session"}}');
