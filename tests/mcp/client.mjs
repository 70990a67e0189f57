// The TypeScript SDK's client: lists and calls every tool, gets progress, cancels, changes its roots, and
// is refused what it must be. PROVIDER_BINARY names the server.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const command = process.env.PROVIDER_BINARY;
assert.ok(command, "PROVIDER_BINARY names the server");
const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url)));
const work = mkdtempSync(join(tmpdir(), "mcp-client-"));
const directory = (name) => {
  const path = join(work, name);
  mkdirSync(path);
  writeFileSync(join(path, "a.txt"), `hello ${name}\n`);
  return path;
};
const [project, other, home] = ["project", "other", "home"].map(directory);

async function connect(args, roots) {
  const client = new Client(
    { name: "official", version: "1" },
    { capabilities: roots ? { roots: { listChanged: true } } : {} },
  );
  const logged = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => {
    logged.push(message.params);
  });
  if (roots) {
    client.setRequestHandler(ListRootsRequestSchema, () => ({
      roots: roots.map((path) => ({ uri: pathToFileURL(path).href })),
    }));
  }
  const transport = new StdioClientTransport({
    command,
    args: ["mcp", ...args],
    cwd: project,
    env: { HOME: home, PATH: process.env.PATH },
    stderr: "ignore",
  });
  await client.connect(transport);
  return { client, transport, logged };
}

const text = (result) => {
  assert.equal(result.content.length, 1);
  assert.equal(result.content[0].type, "text");
  return result.content[0].text;
};

async function until(holds, what) {
  for (let tries = 0; tries < 1000; tries++) {
    if (await holds()) return;
    await delay(20);
  }
  assert.fail(`never: ${what}`);
}

async function everyToolIsListedAndCalled(args) {
  const { client } = await connect(args, [project]);
  await client.ping();
  // The SDK holds structured results to the schemas that are listed.
  const { tools } = await client.listTools();
  for (const tool of Object.keys(calls)) {
    assert.ok(tools.some(({ name }) => name === tool), `${tool} is not listed`);
  }
  for (const { name, annotations, title } of tools) {
    assert.equal(typeof annotations.readOnlyHint, "boolean");
    assert.ok(title);
    const result = await client.callTool({ name, arguments: calls[name] ?? {} });
    if (name in calls) assert.ok(!result.isError, `${name}: ${text(result)}`);
    assert.ok(text(result).length > 0);
    const structured = result.structuredContent !== undefined;
    assert.equal(structured, args.includes("--structured") && !result.isError, name);
  }
  assert.match(text(await client.callTool({ name: "bash", arguments: calls.bash })), /^hello\n\nexit_code: 3$/);
  await client.close();
}

async function progressComesAndACancelEndsTheCommand() {
  const { client } = await connect(["--root", "."]);
  const seen = [];
  const stop = new AbortController();
  const mark = join(project, "ended");
  const ended = client.callTool(
    { name: "bash", arguments: { command: "trap 'touch ended; exit' TERM; echo ready; sleep 1000 & wait" } },
    undefined,
    { signal: stop.signal, onprogress: (progress) => seen.push(progress) },
  );
  const refused = assert.rejects(ended);
  await until(() => seen.some(({ message }) => message === "ready\n"), "progress");
  assert.ok(seen.every(({ progress }, at) => at === 0 || progress > seen[at - 1].progress));
  stop.abort("no longer wanted");
  await refused;
  await until(() => existsSync(mark), "the command is ended");
  assert.match(text(await client.callTool({ name: "bash", arguments: { command: "echo on" } })), /^on\n/);
  await client.close();
}

async function whatMustBeRefusedIs() {
  const { client } = await connect(["--root", "."]);
  const outside = await client.callTool({ name: "read_file", arguments: { path: "/etc/passwd" } });
  assert.equal(outside.isError, true);
  assert.match(text(outside), /outside the roots/);
  const wrong = await client.callTool({ name: "read_file", arguments: { path: 7 } });
  assert.equal(wrong.isError, true);
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), { code: -32602 });
  await assert.rejects(client.listResources());
  await assert.rejects(client.listPrompts());
  await client.close();
}

async function rootsChange() {
  const roots = [project];
  const { client, logged } = await connect([], roots);
  const read = (path) => client.callTool({ name: "read_file", arguments: { path } });
  assert.ok(!(await read(join(project, "a.txt"))).isError);
  assert.ok((await read(join(other, "a.txt"))).isError);
  roots[0] = other;
  await client.sendRootsListChanged();
  await until(async () => !(await read(join(other, "a.txt"))).isError, "the other root");
  assert.ok((await read(join(project, "a.txt"))).isError);
  assert.ok(logged.some(({ level, data }) => level === "info" && data.message === "configured"));
  await client.setLoggingLevel("error");
  await client.close();
}

async function sixtyFourCallsAtOnce() {
  const { client } = await connect(["--root", "."]);
  const asked = Array.from({ length: 64 }, (_, at) =>
    client.callTool({ name: "write_file", arguments: { path: `${at}.out`, content: `${at}` } }),
  );
  for (const result of await Promise.all(asked)) assert.ok(!result.isError, text(result));
  await client.close();
}

function theInspectorListsAndCalls() {
  const inspector = new URL("node_modules/.bin/mcp-inspector", import.meta.url).pathname;
  const run = (...method) =>
    JSON.parse(
      execFileSync(inspector, ["--cli", command, "mcp", "--root", project, "--method", ...method], {
        stdio: ["ignore", "pipe", "ignore"],
      }),
    );
  assert.ok(run("tools/list").tools.length >= Object.keys(calls).length);
  const result = run("tools/call", "--tool-name", "glob", "--tool-arg", "pattern=a.txt");
  assert.equal(text(result), "a.txt");
}

try {
  await everyToolIsListedAndCalled([]);
  writeFileSync(join(project, "a.txt"), "hello project\n");
  await everyToolIsListedAndCalled(["--structured"]);
  await progressComesAndACancelEndsTheCommand();
  await whatMustBeRefusedIs();
  await rootsChange();
  await sixtyFourCallsAtOnce();
  theInspectorListsAndCalls();
  console.log("the TypeScript SDK's client and the inspector: all as it should be");
} finally {
  rmSync(work, { recursive: true, force: true });
}
