// An OpenID provider of the npm registry as the authorization server of one resource.
//
//   node oidc.cjs FOLDER PORT RESOURCE
//
// Its own pages ask the person; whoever wants to be a client registers; access tokens are JWTs.
const { generateKeyPairSync } = require("node:crypto");
const { createRequire } = require("node:module");
const [folder, port, resource] = process.argv.slice(2);
const { Provider, errors } = createRequire(`${folder}/package.json`)("oidc-provider");

const key = (kind, options, more) =>
  ({ ...generateKeyPairSync(kind, options).privateKey.export({ format: "jwk" }), use: "sig", ...more });
const keys = [
  key("rsa", { modulusLength: 2048 }, { kid: "r1" }),
  key("ec", { namedCurve: "P-256" }, { kid: "e1", alg: "ES256" }),
];
const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys },
  scopes: ["openid", "offline_access", "mcp"],
  cookies: { keys: ["for this test alone"] },
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo(context, indicator) {
        if (indicator !== resource) throw new errors.InvalidTarget();
        const alg = process.env.ALG ?? "RS256";
        return { scope: "mcp", audience: resource, accessTokenFormat: "jwt", jwt: { sign: { alg } } };
      },
    },
  },
});
provider.on("server_error", (context, error) => console.error(error));
provider.listen(Number(port), "127.0.0.1");
