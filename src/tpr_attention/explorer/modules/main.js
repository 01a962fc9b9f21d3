// The rooms of the page, in the order of their tabs.

import { compositionRoom } from "./composition/room.js";
import { imagesRoom } from "./images/room.js";
import { memoryRoom } from "./memory/room.js";
import { sequencesRoom } from "./sequences/room.js";
import { start } from "./shell.js";

export const ROOMS = [
  memoryRoom,
  compositionRoom,
  imagesRoom,
  sequencesRoom,
];
