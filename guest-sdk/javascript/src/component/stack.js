// An error's stack in terms of the sources, not of the one file that they were bundled into.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BUNDLE = "handler.js";

// The frames of a stack that lie in a handler's own sources, as `name (file:line:column)`.
export function mapped(stack) {
  const sources = globalThis[Symbol.for("pugmark.sources")];
  const lines = sources === undefined ? [] : decoded(sources.mappings);
  const frames = [];
  for (const line of stack.split("\n")) {
    const [, name, file, row, column] = /^(.*)@(.*?):(\d+):(\d+)$/.exec(line) ?? [];
    if (file !== BUNDLE) {
      continue;
    }
    const place = found(lines[row - 1] ?? [], column - 1);
    const source = place && sources.names[place[1]];
    if (source !== undefined && !source.startsWith("pugmark/")) {
      const at = `${source}:${place[2] + 1}:${place[3] + 1}`;
      frames.push(name === "" ? at : `${name.replace(/^async\*/, "async ")} (${at})`);
    }
  }
  return frames;
}

// An error in one line, with the place it was thrown at.
export function located(error, frames) {
  const place = /([^ (]*:\d+:\d+)\)?$/.exec(frames[0] ?? "")?.[1];
  return place === undefined ? String(error) : `${error} (${place})`;
}

// The last segment of a line that begins at or before a column.
function found(segments, column) {
  return segments.findLast((segment) => segment[0] <= column);
}

// The lines of a source map: of each, segments of generated column, source, line and column.
function decoded(mappings) {
  let [source, line, column] = [0, 0, 0];
  return mappings.split(";").map((text) => {
    let generated = 0;
    const segments = [];
    for (const segment of text === "" ? [] : text.split(",")) {
      const fields = numbers(segment);
      generated += fields[0];
      if (fields.length >= 4) {
        source += fields[1];
        line += fields[2];
        column += fields[3];
        segments.push([generated, source, line, column]);
      }
    }
    return segments;
  });
}

// Numbers of 5 bits a digit, the lowest first; the sixth bit says that another follows.
function numbers(segment) {
  const found = [];
  let [value, shift] = [0, 0];
  for (const character of segment) {
    const digit = DIGITS.indexOf(character);
    value += (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) === 0) {
      found.push(value & 1 ? -(value >>> 1) : value >>> 1);
      [value, shift] = [0, 0];
    }
  }
  return found;
}
