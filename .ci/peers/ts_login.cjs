// Log in with the TypeScript SDK's client, for ts_login.py, which plays the person and the browser.
//
//   node ts_login.cjs FOLDER sdk|client URL
//
// FOLDER and the packages are those of ts_client.cjs. A line {"open"} on stdout is a page; the line on
// stdin that answers it is where the browser ended up. {"notes"} is what the server said in the end.
const { createRequire } = require("node:module");
const readline = require("node:readline");
const [folder, generation, url] = process.argv.slice(2);
const load = createRequire(`${folder}/package.json`);
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  generation === "client"
    ? load("@modelcontextprotocol/client")
    : {
        ...load("@modelcontextprotocol/sdk/client/index.js"),
        ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...load("@modelcontextprotocol/sdk/client/auth.js"),
      };

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let back; // where the browser ended up
const kept = {};
const provider = {
  redirectUrl: "http://127.0.0.1:3999/callback",
  clientMetadata: {
    client_name: "the TypeScript SDK", redirect_uris: ["http://127.0.0.1:3999/callback"],
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (value) => { kept.client = value; },
  tokens: () => kept.tokens,
  saveTokens: (value) => { kept.tokens = value; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (value) => { kept.verifier = value; },
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (value) => { kept.discovery = value; },
  async redirectToAuthorization(page) {
    process.stdout.write(JSON.stringify({ open: String(page) }) + "\n");
    back = new URL((await lines.next()).value);
  },
};

// Do something with a connected client; where it leads to a login, finish that and do it again.
async function once(work) {
  const channel = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const client = new Client({ name: "ts", version: "0" });
  try {
    await client.connect(channel);
    return await work(client);
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || !back) throw error;
    const said = back.searchParams;
    back = undefined;
    await (generation === "client" ? channel.finishAuth(said) : channel.finishAuth(said.get("code")));
    return once(work);
  } finally {
    await client.close();
  }
}

async function main() {
  await once((client) => client.callTool({ name: "notes", arguments: {} }));
  // 1.x answers a challenge for more scope with a refresh, which gives no more, and gives up.
  if (generation === "sdk") delete kept.tokens.refresh_token;
  await once((client) => client.callTool({ name: "write", arguments: { text: "from TypeScript" } }));
  const { content } = await once((client) => client.callTool({ name: "notes", arguments: {} }));
  process.stdout.write(JSON.stringify({ notes: content[0].text }) + "\n");
  process.exit(0); // stdin is still open
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
