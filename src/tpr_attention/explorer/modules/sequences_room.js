// Sequences.

import { element } from "./dom.js";
import { storedPairs } from "./sequence_models.js";

export const sequencesRoom = {
  key: "sequences",
  title: "Sequences",
  defaults: () => ({ count: 3 }),
  render(place, state, update, data) {
    place.append(element("p", {}, data.tasks[0].title, typeof storedPairs));
  },
};
