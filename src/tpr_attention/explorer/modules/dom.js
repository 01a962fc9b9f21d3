// DOM elements from plain values. Texts are only ever set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element.
 * @param {string} tag
 * @param {Object} properties attributes by name; a function under `onclick`, `oninput`, ... handles that event;
 *   null, undefined and false are left out, true is an empty attribute
 * @param {...(Node|string|number|null|Array)} children
 */
export function element(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** An SVG element; as `element`. */
export function svgElement(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") handle(node, name.slice(2), value);
    else if (name === "value") setValue(node, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) {
      node.append(child instanceof Node ? child : String(child));
    }
  }
  if (node.tagName === "SELECT" && "value" in properties) setValue(node, properties.value);
  return node;
}

function setValue(node, value) {
  if (node.tagName === "INPUT") node.setAttribute("value", String(value));
  node.value = String(value);
}

/** Handle an event. A handler is a value of the element, so that `morph` can exchange it. */
function handle(node, type, handler) {
  if (!node.handlers) node.handlers = {};
  if (!(type in node.handlers)) node.addEventListener(type, dispatched);
  node.handlers[type] = handler;
}

function dispatched(event) {
  const handler = event.currentTarget.handlers[event.type];
  if (handler) handler(event);
}

/**
 * Make the children of `old` those of `fresh`. Elements of the same kind and `data-key` stay, with new attributes,
 * texts and handlers: so the focus, a slider that is being dragged and the scroll position are kept.
 */
export function morph(old, fresh) {
  const present = [...old.childNodes];
  const wanted = [...fresh.childNodes];
  wanted.forEach((node, place) => {
    const there = present[place];
    if (there === undefined) old.append(node);
    else if (alike(there, node)) morphOne(there, node);
    else there.replaceWith(node);
  });
  for (const node of present.slice(wanted.length)) node.remove();
}

function alike(a, b) {
  if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName || a.nodeName.toUpperCase() === "CANVAS") return false;
  return a.nodeType !== Node.ELEMENT_NODE || a.getAttribute("data-key") === b.getAttribute("data-key");
}

function morphOne(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  const isOpenByUser = old.nodeName === "DETAILS";
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(isOpenByUser && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value && !(isOpenByUser && name === "open")) old.setAttribute(name, value);
  }
  for (const type of Object.keys({ ...old.handlers, ...fresh.handlers })) {
    handle(old, type, fresh.handlers ? fresh.handlers[type] : undefined);
  }
  morph(old, fresh);
  if ("value" in fresh && /^(INPUT|SELECT|TEXTAREA)$/.test(fresh.nodeName)) {
    if (old.value !== fresh.value) old.value = fresh.value;
    if (old.checked !== fresh.checked) old.checked = fresh.checked;
  }
}
