"""Drives `tongs-agents mcp` with the Model Context Protocol's own Python client.

  client.py BINARY

A round trip for every tool, in a throw-away home; the client checks the
documents against the schemas that the server lists.
"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TOOLS = [
    "agents_status",
    "agents_wait",
    "fleet_cleanup",
    "fleet_focus",
    "fleet_session",
    "fleet_sessions_needing_attention",
    "fleet_status",
]


def structured(result):
    """The document of a result that is none of an error, by either spelling."""
    wrong = getattr(result, "isError", None)
    wrong = getattr(result, "is_error", False) if wrong is None else wrong
    assert not wrong, result
    document = getattr(result, "structuredContent", None)
    if document is None:
        document = getattr(result, "structured_content", None)
    assert document == json.loads(result.content[0].text), result
    return document


async def drive(binary, home):
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def agents(*words):
        subprocess.run([binary, "agents", *words], env=environment, check=True, cwd=home)

    agents("notify", "--harness", "other", "--session", "build", "--status", "waiting")
    server = StdioServerParameters(command=binary, args=["agents", "mcp"], env=environment)
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            names = sorted(tool.name for tool in (await session.list_tools()).tools)
            assert names == TOOLS, names

            async def call(name, **arguments):
                return structured(await session.call_tool(name, arguments))

            status = await call("fleet_status")
            assert status["summary"]["total"] == 1, status
            one = await call("fleet_session", session_id="build")
            assert one["status"] == "waiting", one
            attention = await call("fleet_sessions_needing_attention")
            assert attention["message"] == "1 session may need input", attention
            assert (await call("agents_status", harness="other"))["summary"]["total"] == 1
            focus = await call("fleet_focus", query="build")
            assert not focus["success"] and focus["error"] == focus["reason"], focus
            assert "removed" in await call("fleet_cleanup")
            timeout = await call("agents_wait", session_id="build", until="idle", timeout_ms=50)
            assert timeout["reason"] == "timeout", timeout
            waiting = asyncio.create_task(
                call("agents_wait", session_id="build", until="idle", timeout_ms=30000)
            )
            # Others are answered while it waits.
            await call("fleet_status")
            agents("notify", "--harness", "other", "--session", "build", "--status", "idle")
            found = await waiting
            assert found["status"] == "idle" and found["confidence"], found
            missing = await session.call_tool("fleet_session", {"session_id": "none"})
            text = missing.content[0].text
            assert "no session has the id 'none'" in text, missing
    print(f"mcp: {len(TOOLS)} tools answered the official client")


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o700)
        asyncio.run(drive(binary, pathlib.Path(home)))


main()
