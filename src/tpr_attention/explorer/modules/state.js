// The state of a room in the address: `#room?key=value&...`, only what differs from the defaults, values as JSON.

/** @returns {string} the hash of a room in a state */
export function hashOf(key, state, defaults) {
  const changed = Object.keys(defaults).filter((name) => JSON.stringify(state[name]) !== JSON.stringify(defaults[name]));
  const parts = changed.map((name) => `${encodeURIComponent(name)}=${encodeURIComponent(JSON.stringify(state[name]))}`);
  return `#${encodeURIComponent(key)}${parts.length ? "?" : ""}${parts.join("&")}`;
}

/** @returns {string} the key of the room that a hash names, or "" */
export function roomOf(hash) {
  return decoded(hash.replace(/^#/, "").split("?")[0]) ?? "";
}

/**
 * The state that a hash describes. What is unknown, malformed or of another kind than the default is left at the
 * default.
 */
export function stateOf(hash, defaults) {
  const state = structured(defaults);
  const query = hash.includes("?") ? hash.slice(hash.indexOf("?") + 1) : "";
  for (const part of query.split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    const name = decoded(part.slice(0, at));
    const value = parsed(decoded(part.slice(at + 1)));
    if (Object.hasOwn(defaults, name) && sameKind(value, defaults[name])) state[name] = value;
  }
  return state;
}

function structured(value) {
  return JSON.parse(JSON.stringify(value));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sameKind(value, like) {
  if (value === undefined || value === null) return false;
  return typeof value === typeof like && Array.isArray(value) === Array.isArray(like);
}
