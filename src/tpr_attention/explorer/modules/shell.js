// Tabs, routing, theme and pictures. Rooms are known by the table that `start` is given.

import { unpack } from "./arrays.js";
import { element, morph } from "./dom.js";
import { savePicture } from "./picture.js";
import { hashOf, roomOf, stateOf } from "./state.js";
import { button } from "./widgets.js";

const THEMES = ["auto", "light", "dark"];
const HASH_DELAY = 200; // browsers limit how often an address may be changed

/**
 * Show the rooms that have data.
 * A room is `{ key, title, defaults(data), check?(state, data), render(place, state, update, data) }`:
 * `render` fills an empty element for a state, `update(patch)` changes the state and renders again; a patch is an
 * object, or a function of the newest state that returns one. `check` returns a state that can be rendered.
 */
export async function start(rooms) {
  const open = [];
  for (const room of rooms) {
    const block = document.getElementById(`data-${room.key}`);
    if (block) open.push({ room, data: await unpack(JSON.parse(block.textContent)) });
  }
  const page = { open, current: null, state: null, planned: false, timer: null, theme: "auto" };
  window.addEventListener("hashchange", () => enter(page, location.hash));
  enter(page, location.hash);
  document.documentElement.dataset.ready = String(Math.round(performance.now())); // milliseconds since the page was asked for
}

function enter(page, hash) {
  const current = page.open.find(({ room }) => room.key === roomOf(hash)) ?? page.open[0];
  page.current = current;
  page.state = checked(current, stateOf(hash, current.room.defaults(current.data)));
  show(page);
}

function checked({ room, data }, state) {
  if (!room.check) return state;
  try {
    return room.check(state, data);
  } catch {
    return room.defaults(data); // of a malformed link
  }
}

function update(page, of, patch) {
  if (page.current !== of) return;
  const changes = typeof patch === "function" ? patch(page.state) : patch;
  page.state = checked(of, { ...page.state, ...changes });
  if (!page.planned) {
    page.planned = true;
    requestAnimationFrame(() => {
      page.planned = false;
      show(page);
    });
  }
}

function show(page) {
  const { open, current } = page;
  const { room, data } = current;
  const place = element("div");
  try {
    room.render(place, page.state, (patch) => update(page, current, patch), data);
  } catch (error) {
    console.error(error);
    place.replaceChildren(element("p", { class: "error" }, `This view cannot be drawn: ${error.message}`));
  }
  morph(document.getElementById("room"), place);
  const tabs = open.map((one) =>
    element(
      "a",
      {
        class: "tab",
        href: `#${encodeURIComponent(one.room.key)}`,
        "data-key": `room-${one.room.key}`,
        "aria-current": one === current ? "page" : null,
      },
      one.room.title,
    ),
  );
  morph(document.getElementById("rooms"), element("div", {}, tabs));
  morph(document.getElementById("tools"), element("div", {}, tools(page)));
  document.documentElement.dataset.room = room.key; // whose styles hold
  document.title = `${room.title} · TPR-Attention explorer`;
  clearTimeout(page.timer);
  page.timer = setTimeout(() => {
    const hash = hashOf(room.key, page.state, room.defaults(data));
    if (page.current === current && location.hash !== hash) history.replaceState(null, "", hash);
  }, HASH_DELAY);
}

function tools(page) {
  const { room, data } = page.current;
  const named = (form) => ({
    key: `picture-${form}`,
    label: form.toUpperCase(),
    title: `Save this view as ${form.toUpperCase()}`,
    onClick: () => savePicture(document.getElementById("room"), `tpr-attention-${room.key}`, form),
  });
  const next = THEMES[(THEMES.indexOf(page.theme) + 1) % THEMES.length];
  return [
    button({
      key: "link",
      label: "Copy link",
      title: "Copy a link to this view",
      onClick: () => copyLink(hashOf(room.key, page.state, room.defaults(data))),
    }),
    button(named("svg")),
    button(named("png")),
    button({
      key: "reset",
      label: "Reset",
      title: "Back to the first view of this room",
      onClick: () => update(page, page.current, room.defaults(data)),
    }),
    button({
      key: "theme",
      label: { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[page.theme],
      title: `Change to ${next}`,
      onClick: () => {
        page.theme = next;
        if (next === "auto") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = next;
        show(page);
      },
    }),
  ];
}

async function copyLink(hash) {
  const address = location.href.replace(/#.*/, "") + hash;
  history.replaceState(null, "", hash);
  try {
    await navigator.clipboard.writeText(address);
    say("The link is copied.");
  } catch {
    say("The address line has the link.");
  }
}

/** Tell something, on the page and to screen readers. */
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  clearTimeout(place.timer);
  place.timer = setTimeout(() => (place.textContent = ""), 4000);
}
