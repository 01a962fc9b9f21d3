// Memory and attention: the paper's figure 1, alive.

import { element } from "./dom.js";

export const memoryRoom = {
  key: "memory",
  title: "Memory and attention",
  defaults: () => ({ count: 3 }),
  render(place, state, update, data) {
    place.append(element("p", {}, Object.keys(data.roles).join(", ")));
  },
};
