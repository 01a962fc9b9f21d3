// The rooms of the page, in the order of their tabs.

import { memoryRoom } from "./memory_room.js";
import { start } from "./shell.js";

export const ROOMS = [
  memoryRoom,
];
