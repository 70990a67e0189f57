// The protocol's own conformance suite. It speaks HTTP, so a bridge passes each message on to a server on
// standard input and output. Of its scenarios these apply: the others call tools, resources and prompts that
// only the suite's own server has, or are about HTTP. PROVIDER_BINARY names the server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const SCENARIOS = ["server-initialize", "ping", "logging-set-level", "tools-list"];

const command = process.env.PROVIDER_BINARY;
assert.ok(command, "PROVIDER_BINARY names the server");
const work = mkdtempSync(join(tmpdir(), "mcp-conformance-"));
const sessions = new Map();

// One server for each session.
async function bridge() {
  const stdio = new StdioClientTransport({
    command,
    args: ["mcp", "--root", "."],
    cwd: work,
    env: { HOME: work, PATH: process.env.PATH },
    stderr: "ignore",
  });
  const http = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, { http, stdio }),
  });
  http.onmessage = (message) => stdio.send(message);
  stdio.onmessage = (message) => http.send(message).catch(() => {});
  await http.start();
  await stdio.start();
  return http;
}

const server = createServer(async (request, response) => {
  const session = sessions.get(request.headers["mcp-session-id"]);
  await (session?.http ?? (await bridge())).handleRequest(request, response);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}/mcp`;

// The suite needs a newer Node.js than the clients do.
const node = new URL("node_modules/node/bin/node", import.meta.url).pathname;
const suite = new URL("node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url).pathname;
try {
  for (const scenario of SCENARIOS) {
    await promisify(execFile)(node, [suite, "server", "--url", url, "--scenario", scenario, "--output-dir", work]);
    const [results] = readdirSync(work).filter((name) => name.startsWith(`server-${scenario}`));
    const checks = JSON.parse(readFileSync(join(work, results, "checks.json")));
    const counted = checks.filter(({ status }) => status === "SUCCESS").length;
    assert.ok(counted > 0, `${scenario} checked nothing`);
    for (const { id, status, errorMessage } of checks) {
      assert.notEqual(status, "FAILURE", `${scenario}: ${id}: ${errorMessage}`);
    }
    console.log(`conformance, ${scenario}: ${counted} checks met`);
  }
} finally {
  for (const { stdio } of sessions.values()) await stdio.close();
  server.close();
  server.closeAllConnections();
  rmSync(work, { recursive: true, force: true });
}
