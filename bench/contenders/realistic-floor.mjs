/** The floor with a timer and an abort for each call. See floor.mjs. */

import { open as openFloor } from "./floor.mjs";

export const open = (scenario, target) => openFloor(scenario, target, true);
