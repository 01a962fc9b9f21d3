// Equations as MathML, written in a small part of TeX's notation: `O_{s}`, `r^{⊤}`, `∑_s`, words in quotes.

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TOKEN = /"[^"]*"|[A-Za-zα-ωΑ-Ω]|\d+(?:\.\d+)?|\S/gu;

/**
 * An equation: letters are variables, `"words"` are upright, `_` and `^` take what follows or a group in braces,
 * and bold letters are written as `*M`.
 */
export function equation(text) {
  const tokens = text.match(TOKEN) ?? [];
  const math = mathElement("math", row(tokens, { at: 0 }));
  math.setAttribute("aria-label", text.replaceAll(/["*{}]/g, ""));
  return math;
}

function mathElement(tag, children, attributes = {}) {
  const node = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function row(tokens, place) {
  const found = [];
  while (place.at < tokens.length && tokens[place.at] !== "}") found.push(scripted(tokens, place));
  return found;
}

function scripted(tokens, place) {
  const isSum = tokens[place.at] === "∑" || tokens[place.at] === "∏";
  const body = atom(tokens, place);
  const scripts = {};
  while (tokens[place.at] === "_" || tokens[place.at] === "^") {
    const mark = tokens[place.at++];
    scripts[mark] = atom(tokens, place);
  }
  if (isSum && scripts._) return mathElement("munder", [body, scripts._]);
  if (scripts._ && scripts["^"]) return mathElement("msubsup", [body, scripts._, scripts["^"]]);
  if (scripts._) return mathElement("msub", [body, scripts._]);
  return scripts["^"] ? mathElement("msup", [body, scripts["^"]]) : body;
}

function atom(tokens, place) {
  const token = tokens[place.at++] ?? "";
  if (token === "{") {
    const group = mathElement("mrow", row(tokens, place));
    place.at++; // the closing brace
    return group;
  }
  if (token === "*") return mathElement("mi", [tokens[place.at++] ?? ""], { class: "bold" });
  if (token.startsWith('"')) return mathElement("mtext", [token.slice(1, -1)]);
  if (/^\d/.test(token)) return mathElement("mn", [token]);
  if (token === "⊤") return mathElement("mo", [token], { lspace: "0", rspace: "0" });
  return mathElement(/^\p{L}/u.test(token) ? "mi" : "mo", [token], token === "∑" ? { movablelimits: "false", largeop: "true" } : {});
}
