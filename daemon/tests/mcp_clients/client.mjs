// The official TypeScript client of the Model Context Protocol: the same as client.py.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Either the home folder and the command of a server, or the address of one and a token.
const [modules, where, what, ...args] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const client = new Client({ name: "test", version: "1" });
const overHttp = () =>
    new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${what}` } } });
const overStdio = () => new StdioClientTransport({ command: what, args, env: { HOME: where } });
await client.connect(where.startsWith("http://") ? overHttp() : overStdio());
const tools = await client.listTools();
const search = (query) => client.callTool({ name: "search", arguments: { query } });
const found = await search("honey");
const resources = await client.listResources();
const first = await client.readResource({ uri: resources.resources[0].uri });
const templates = await client.listResourceTemplates();
const prompts = await client.listPrompts();
const prompt = await client.getPrompt({ name: "recall", arguments: { topic: "honey" } });
const refused = await search(5);
const parallel = await Promise.all(Array.from({ length: 100 }, () => search("bees")));
console.log(JSON.stringify({
    server: client.getServerVersion().name,
    tools: tools.tools.map((tool) => tool.name).sort(),
    hits: found.structuredContent.hits,
    resource: JSON.parse(first.contents[0].text),
    templates: templates.resourceTemplates.length,
    prompts: prompts.prompts.map((prompt) => prompt.name),
    prompt: prompt.messages[0].content.text,
    refused: refused.isError === true,
    parallel: parallel.filter((answer) => answer.isError !== true).length,
}));
await client.close();
