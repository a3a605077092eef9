// Makes a core module of a handler's sources. Run by `pugmark build`, with a plan:
//
//   tools   the folder with node_modules that has componentize-js and esbuild
//   source  the handler's module
//   sdk     the SDK's folder
//   wit     the contract's folder
//   work    an empty folder
//   wizer   what is run in place of wizer
//   output  where the module goes

import { readFile, writeFile } from "node:fs/promises";
import { createRequire, isBuiltin } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const plan = JSON.parse(await readFile(process.argv[2], "utf8"));

// The names of temporary folders come from it, and are in what is built.
Math.random = () => 0.5;

class Problem extends Error {}

// Lines that say again, or in the engine's own terms, what others say.
const NOISE =
  /^(Failed to initialize|Exception while|Additionally, some promises|Promise rejected|Stack:|\s*$)/;

try {
  const bundle = await bundled();
  const path = join(plan.work, "handler.js");
  await writeFile(path, bundle.text);
  await writeFile(plan.output, await componentized(path, bundle));
} catch (error) {
  // esbuild has said itself what is wrong.
  if (!Array.isArray(error.errors)) {
    console.error(error instanceof Problem ? error.message : error);
  }
  process.exit(1);
}

// The handler, all that it imports, and the SDK, in one module.
async function bundled() {
  const { build } = createRequire(join(plan.tools, "package.json"))("esbuild");
  const here = dirname(plan.source);
  const sdk = (path) => join(plan.sdk, path);
  const contents = [
    `import ${JSON.stringify(sdk("src/component/prelude.js"))};`,
    `import { steps } from ${JSON.stringify(sdk("src/component/step.js"))};`,
    `import * as handler from ${JSON.stringify(plan.source)};`,
    "export const step = steps(handler);",
  ].join("\n");
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: here, sourcefile: "pugmark/entry.js" },
    absWorkingDir: here,
    alias: { pugmark: sdk("src/index.js"), "pugmark/testing": sdk("src/testing.js") },
    bundle: true,
    charset: "utf8",
    conditions: ["pugmark", "module"],
    // A component has no address.
    define: { "import.meta": "{}" },
    external: ["pugmark:handler/*"],
    format: "esm",
    legalComments: "none",
    logLevel: "warning",
    mainFields: ["module", "main"],
    // Comments with paths of this machine would be left in otherwise.
    minifyWhitespace: true,
    outfile: join(here, "handler.js"),
    platform: "neutral",
    plugins: [{ name: "sandbox", setup: refuseBuiltins }],
    sourcemap: "external",
    sourcesContent: false,
    target: "es2022",
    write: false,
  });
  const [map, code] = ["handler.js.map", "handler.js"].map((name) => {
    return outputFiles.find((file) => file.path.endsWith(name)).text;
  });
  const { sources, mappings } = JSON.parse(map);
  const names = sources.map((source) => named(join(here, source), here));
  const table = JSON.stringify({ names, mappings });
  return { text: `${code}globalThis[Symbol.for("pugmark.sources")]=${table};\n`, names, mappings };
}

// What errors call a source.
function named(path, here) {
  const inSdk = relative(plan.sdk, path);
  const name = inSdk.startsWith("..") ? relative(here, path) : join("pugmark", inSdk);
  return name.split(sep).join("/");
}

function refuseBuiltins(build) {
  build.onResolve({ filter: /^[a-z0-9:_/]+$/ }, ({ path, pluginData }) => {
    if (path.startsWith("pugmark:") || pluginData === "refused" || !isBuiltin(path)) {
      return undefined;
    }
    const text = `\`${path}\` is Node's own: there are no files, no network and no processes in the sandbox`;
    return { errors: [{ text }] };
  });
}

async function componentized(path, bundle) {
  const scope = join(plan.tools, "node_modules/@bytecodealliance");
  const load = (file) => import(pathToFileURL(join(scope, file)));
  const { componentize } = await load("componentize-js/src/componentize.js");
  try {
    const { component } = await componentize({
      sourcePath: path,
      witPath: plan.wit,
      worldName: "handler",
      wizerBin: plan.wizer,
      disableFeatures: ["fetch-event"],
    });
    return component;
  } catch (error) {
    throw new Problem(await explained(error.message, bundle));
  }
}

// What the engine says of a module whose top level fails, in terms of the sources.
async function explained(message, bundle) {
  globalThis[Symbol.for("pugmark.sources")] = bundle;
  const { mapped } = await import(pathToFileURL(join(plan.sdk, "src/component/stack.js")));
  const lines = message.split("\n").flatMap((line) => {
    const frame = /(\S*@\S+:\d+:\d+)/.exec(line)?.[1];
    if (frame !== undefined) {
      return mapped(frame).map((place) => `    at ${place}`);
    }
    return NOISE.test(line) ? [] : [line.replace(/^handler\.js:\d+:\d+ /, "")];
  });
  return ["the module cannot be evaluated:", ...lines].join("\n");
}
