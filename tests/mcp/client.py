"""The Python SDK's client, with the handshake and with the newest version, which has none: lists and calls
every tool, gets progress, cancels, names roots, and is refused what it must be. PROVIDER_BINARY names the server.
"""

import asyncio
import json
import os
import pathlib
import tempfile

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

HERE = pathlib.Path(__file__).parent
CALLS = json.loads((HERE / "calls.json").read_text())


def text(result: types.CallToolResult) -> str:
    assert len(result.content) == 1 and result.content[0].type == "text", result
    return result.content[0].text


class Work:
    """A directory for one client."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)
        for name in ["project", "home"]:
            (self.path / name).mkdir()
        self.project = self.path / "project"
        (self.project / "a.txt").write_text("hello\n")

    def client(self, mode: str, *arguments: str) -> Client:
        parameters = StdioServerParameters(
            command=os.environ["PROVIDER_BINARY"],
            args=["mcp", *arguments],
            cwd=str(self.project),
            env={"HOME": str(self.path / "home"), "PATH": os.environ["PATH"]},
        )

        async def roots(_: object) -> types.ListRootsResult:
            return types.ListRootsResult(roots=[types.Root(uri=self.project.as_uri())])

        transport = stdio_client(parameters, errlog=open(os.devnull, "w", encoding="utf-8"))
        return Client(transport, mode=mode, list_roots_callback=roots)


async def every_tool_is_listed_and_called(work: Work, mode: str, *arguments: str) -> None:
    async with work.client(mode, *arguments) as client:
        # Whoever picks the newest version without asking learns no name.
        assert mode == "2026-07-28" or client.server_info.name == "provider-workspace"
        tools = (await client.list_tools()).tools
        assert set(CALLS) <= {tool.name for tool in tools}
        for tool in tools:
            assert tool.title and tool.annotations.read_only_hint is not None
            assert (tool.output_schema is not None) == ("--structured" in arguments)
            # The SDK holds structured results to the schemas that are listed.
            result = await client.call_tool(tool.name, CALLS.get(tool.name, {}))
            assert tool.name not in CALLS or not result.is_error, text(result)
            assert text(result)
        assert text(await client.call_tool("bash", CALLS["bash"])) == "hello\n\nexit_code: 3"


async def progress_comes_and_a_cancel_ends_the_command(work: Work, mode: str) -> None:
    async with work.client(mode, "--root", ".") as client:
        ready = asyncio.Event()

        async def progress(_: float, __: float | None, message: str | None) -> None:
            if message == "ready\n":
                ready.set()

        command = "trap 'touch ended; exit' TERM; echo ready; sleep 1000 & wait"
        call = asyncio.create_task(client.call_tool("bash", {"command": command}, progress_callback=progress))
        await asyncio.wait_for(ready.wait(), 30)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        wait = "until [ -e ended ]; do sleep 0.02; done; echo ended"
        assert text(await client.call_tool("bash", {"command": wait})) == "ended\n\nexit_code: 0"


async def what_must_be_refused_is(work: Work, mode: str) -> None:
    async with work.client(mode, "--root", ".") as client:
        outside = await client.call_tool("read_file", {"path": "/etc/passwd"})
        assert outside.is_error and "outside the roots" in text(outside)
        assert (await client.call_tool("read_file", {"path": 7})).is_error
        for refused in [client.call_tool("no_such_tool", {}), client.list_prompts()]:
            try:
                await refused
            except MCPError:
                continue
            raise AssertionError("it was not refused")


async def main() -> None:
    for mode in ["legacy", "auto", "2026-07-28"]:
        for story in [
            every_tool_is_listed_and_called,
            lambda work, mode: every_tool_is_listed_and_called(work, mode, "--structured"),
            progress_comes_and_a_cancel_ends_the_command,
            what_must_be_refused_is,
        ]:
            with tempfile.TemporaryDirectory() as path:
                await asyncio.wait_for(story(Work(path), mode), 120)
    print("the Python SDK's client: all as it should be")


asyncio.run(main())
