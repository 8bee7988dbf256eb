// The main story with the official TypeScript client: node story.mjs FOLDER ERA (stdio COMMAND ARGS… | http URL)
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, era, transport, ...rest] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const mode = era === '2026' ? { pin: '2026-07-28' } : 'legacy';
const client = new Client({ name: 'story', version: '1' }, { versionNegotiation: { mode } });
await client.connect(
  transport === 'stdio'
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: 'ignore' })
    : new StreamableHTTPClientTransport(new URL(rest[0])),
);

const value = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, JSON.stringify(result.content));
  return result.structuredContent;
};

const { tools } = await client.listTools();
assert.equal(tools.length, 25);
assert.match(client.getInstructions(), /kb_search/);

await value('kb_reindex', { wait: true });
const hit = (await value('kb_search', { query: 'caching' })).results[0];
assert.equal(hit.path, 'a.md');
const page = await value('kb_read', hit.readHint);
assert.ok(page.elements.length > 0);

const operations = [{ kind: 'replace_element', pointer: hit.pointer, markdown: 'Quite another sentence.' }];
const done = await value('kb_patch', { path: 'a.md', operations });
assert.equal(done.applied, true);
const stale = await client.callTool({ name: 'kb_patch', arguments: { path: 'a.md', operations } });
assert.equal(stale.isError, true);
assert.equal(JSON.parse(stale.content[0].text).code, 'CONFLICT');
await value('kb_undo', { changeId: done.changeId });

const context = await client.callTool({ name: 'kb_context', arguments: { query: 'caching' } });
assert.match(context.content[0].text, /caching/);
const { contents } = await client.readResource({ uri: 'kb://document/a.md' });
assert.match(contents[0].text, /^---\n/);
const { prompts } = await client.listPrompts();
assert.deepEqual(prompts.map((prompt) => prompt.name), ['find_decisions', 'summarise_section', 'edit_safely']);

await client.close();
console.log('story told');
