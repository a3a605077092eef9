// A module beside the handler's, that throws at a line which the tests know.

import type { Decision } from "pugmark";

interface Wanted {
  do: string;
}

export function failing(wanted: Wanted): Decision {
  throw new RangeError(`told to ${wanted.do}`);
}
