"""The official Python client of the Model Context Protocol: lists and calls everything once, and prints what it got as JSON."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def over_stdio(home, command, *arguments):
    environment = {"HOME": home}
    return stdio_client(StdioServerParameters(command=command, args=list(arguments), env=environment))


@asynccontextmanager
async def over_http(url, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with create_mcp_http_client(headers=headers) as http:
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams


async def main(transport):
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        about = await session.initialize()
        tools = await session.list_tools()
        found = await session.call_tool("search", {"query": "honey"})
        resources = await session.list_resources()
        first = await session.read_resource(resources.resources[0].uri)
        templates = await session.list_resource_templates()
        prompts = await session.list_prompts()
        prompt = await session.get_prompt("recall", {"topic": "honey"})
        refused = await session.call_tool("search", {"query": 5})
        parallel = await asyncio.gather(*(session.call_tool("search", {"query": "bees"}) for _ in range(100)))
        print(json.dumps({
            "server": about.server_info.name,
            "tools": sorted(tool.name for tool in tools.tools),
            "hits": found.structured_content["hits"],
            "resource": json.loads(first.contents[0].text),
            "templates": len(templates.resource_templates),
            "prompts": [prompt.name for prompt in prompts.prompts],
            "prompt": prompt.messages[0].content.text,
            "refused": refused.is_error,
            "parallel": sum(not answer.is_error for answer in parallel),
        }))


over = over_http if sys.argv[1].startswith("http://") else over_stdio
asyncio.run(main(over(*sys.argv[1:])))
