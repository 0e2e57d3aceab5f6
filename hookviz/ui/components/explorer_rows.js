// The explorer's rows and its tree over a stream or a lens: a choice is written into the address, and the
// page runs.

import { viewOf } from "../../explorer/client/link.js";
import { rows } from "../../explorer/client/rows.js";
import { around, followTree, shown } from "./explorer_around.js";

const begin = (component, data, tell) => {
  const made = { data };
  const view = () => viewOf(location.search, made.data.fields);
  const surroundings = around(() => made.data, tell);
  const held = rows(component.parentElement, {
    ...data,
    ...surroundings,
    view: view(),
    changed: (next, how, words) => {
      surroundings.changed(next, how, words);
      tell("opened", { chosen: Object.fromEntries(words.map((word) => [word, next[word] ?? null])) });
    },
  });
  const leave = followTree(held);
  return {
    show: (next) => {
      made.data = next;
      held.show(view(), next);
    },
    linked: () => held.show(view()),
    end: () => {
      leave();
      held.end();
    },
  };
};

export default function (component) {
  return shown(component, begin);
}
