// The TypeScript SDK's client at the command of ts_client.py, by lines of JSON on stdin and stdout.
//
//   node ts_client.cjs FOLDER sdk|client stdio COMMAND ARGUMENT... | streamable-http URL | sse URL
//
// FOLDER holds node_modules; `sdk` is @modelcontextprotocol/sdk (1.x), `client` the package which
// succeeded it (2.x). A line {"id", "call", "args"} calls a method of the client and is answered by
// {"id", "result"} or {"id", "error"}; {"seen", "value"} is told, {"ask", "method", "params"} is
// to be answered by {"answer", "result"}.
const { createRequire } = require("node:module");
const readline = require("node:readline");
const [folder, generation, kind, ...target] = process.argv.slice(2);
const load = createRequire(`${folder}/package.json`);

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const asked = new Map(); // what we asked, by number
const ask = (method, params) =>
  new Promise((resolve) => {
    asked.set(asked.size, resolve);
    say({ ask: asked.size - 1, method, params });
  });

const classes = {};
let answers; // (client, method, handler): register a handler for the server's requests
let callTool;
if (generation === "sdk") {
  const types = load("@modelcontextprotocol/sdk/types.js");
  const schemas = {
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "elicitation/create": types.ElicitRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
  };
  Object.assign(
    classes,
    load("@modelcontextprotocol/sdk/client/index.js"),
    load("@modelcontextprotocol/sdk/client/stdio.js"),
    load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    load("@modelcontextprotocol/sdk/client/sse.js"),
  );
  answers = (client, method, handler) => client.setRequestHandler(schemas[method], handler);
  callTool = (client, params, options) => client.callTool(params, undefined, options);
} else {
  Object.assign(classes, load("@modelcontextprotocol/client"), load("@modelcontextprotocol/client/stdio"));
  answers = (client, method, handler) => client.setRequestHandler(method, handler);
  callTool = (client, params, options) => client.callTool(params, options);
}

function transport() {
  if (kind === "stdio") return new classes.StdioClientTransport({ command: target[0], args: target.slice(1) });
  const Transport = kind === "sse" ? classes.SSEClientTransport : classes.StreamableHTTPClientTransport;
  return new Transport(new URL(target[0]));
}

async function connect(channel, options) {
  const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };
  const client = new classes.Client({ name: "ts", version: "0" }, { capabilities, ...options });
  for (const method of ["sampling/createMessage", "elicitation/create", "roots/list"])
    answers(client, method, (request) => ask(method, request.params));
  client.fallbackNotificationHandler = async (message) => say({ seen: message.method, value: message.params });
  client.onerror = (error) => process.stderr.write(`onerror: ${error}\n`);
  await client.connect(channel);
  return client;
}

async function main() {
  const channel = transport();
  const told = channel.setProtocolVersion;
  let revision;
  channel.setProtocolVersion = (version) => {
    revision = version;
    told?.call(channel, version);
  };
  const client = await connect(channel);
  say({ hello: { server: client.getServerVersion(), capabilities: client.getServerCapabilities(), revision } });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, call, args, answer, result } = JSON.parse(line);
    if (answer !== undefined) asked.get(answer)(result);
    else perform(client, call, args).then((result) => say({ id, result }), (error) =>
      say({ id, error: { code: error.code ?? null, message: String(error.message) } }));
  }
  if (kind === "streamable-http") await channel.terminateSession();
  await client.close();
  if (generation === "client" && kind !== "sse") {
    // It can ask for the stateless revision first, and fall back.
    const client = await connect(transport(), { versionNegotiation: { mode: "auto" } });
    await client.callTool({ name: "test_simple_text", arguments: {} });
    say({ found: client.getNegotiatedProtocolVersion() });
    await client.close();
  }
}

function perform(client, call, args) {
  if (call !== "callTool") return client[call](...args);
  const onprogress = (value) => say({ seen: "progress", value: value.progress });
  return callTool(client, args[0], { onprogress });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
