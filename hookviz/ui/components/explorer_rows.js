// The explorer's rows and its tree over a stream or a lens: a choice is written into the address, which
// runs the page.

import { viewOf } from "../../explorer/client/link.js";
import { rows } from "../../explorer/client/rows.js";
import { around, followTree, shown } from "./explorer_around.js";

const begin = (component, data, tell) => {
  const made = { data };
  const view = () => viewOf(window.hookvizLink(), made.data.fields);
  const held = rows(component.parentElement, {
    ...data,
    ...around(() => made.data, tell),
    view: view(),
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
