// In place of jco, of which componentize-js uses three functions and installs 300 MB: what comes
// out is the core module, and pugmark makes it a component itself.

import { fileURLToPath } from "node:url";

export const componentNew = async (core) => core;
export const metadataAdd = async (core) => core;
// It is read, and then unused.
export const preview1AdapterReactorPath = () => fileURLToPath(import.meta.url);
