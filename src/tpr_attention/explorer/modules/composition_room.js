// Composition: a reference, a transform and an action, and what each trained model answers.

import { element } from "./dom.js";
import { answerOf } from "./composition_models.js";
import { readableHead, transfersOf } from "./composition_heads.js";
import { bestAnswer, decodeObject, drawQuestion, encodeFactors, errorsOf, heldOutAlong, kindOf, rightRoles, substituteFactors } from "./composition_task.js";

export const compositionRoom = {
  key: "composition",
  title: "Composition",
  defaults: () => ({}),
  render(place) {
    place.append(element("p", {}, "..."));
  },
};
