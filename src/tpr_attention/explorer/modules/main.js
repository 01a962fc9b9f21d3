// The rooms of the page, in the order of their tabs.

import { compositionRoom } from "./composition_room.js";
import { imagesRoom } from "./images_room.js";
import { memoryRoom } from "./memory_room.js";
import { sequencesRoom } from "./sequences_room.js";
import { start } from "./shell.js";

export const ROOMS = [
  memoryRoom,
  compositionRoom,
  imagesRoom,
  sequencesRoom,
];
