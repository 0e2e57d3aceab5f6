// The explorer in the app: it asks the app's server, and its view is in the address.

import { mount } from "../../explorer/client/explorer.js";
import { viewOf } from "../../explorer/client/link.js";
import { around, followTree, shown } from "./explorer_around.js";
import { scrollUp } from "./page.js";

const RUN = 2000; // milliseconds in which a run of the page hands over another subject, if there is one

// A lens with its settings: by the link, for its widgets begin with what stands there.
const goTo = (words) => {
  const link = window.hookvizLink();
  for (const [word, text] of Object.entries(words)) {
    if (text) link.set(word, text);
    else link.delete(word);
  }
  scrollUp(); // on a phone the tile was scrolled above the sheet
  window.hookvizGo(link.toString(), "push");
};

const begin = (component, data, tell) => {
  const made = { data };
  let [about, timer] = [location.search, 0];
  const view = () => viewOf(window.hookvizLink(), made.data.fields);
  const page = around(() => made.data, tell);
  const held = mount(component.parentElement, {
    ...page,
    view: view(),
    fields: data.fields,
    subject: data.subject,
    questions: data.questions,
    opening: data.opening,
    opened: (facts) => (facts.lens ? goTo(facts.lens) : tell("opened", facts)),
  });
  const leave = followTree(held);
  const show = () => {
    clearTimeout(timer);
    about = location.search;
    held.show(view(), made.data.subject, made.data.opening);
  };
  return {
    show: (next) => {
      made.data = next;
      show();
    },
    // Back and Forward, and whatever else writes the link. Of another image or network a run of the page
    // hands over what the view is about, and until then it would be taken for one of those before.
    linked: () => {
      clearTimeout(timer);
      page.noted();
      if (location.search === about) show();
      else timer = setTimeout(show, RUN);
    },
    end: () => {
      clearTimeout(timer);
      leave();
      held.end();
    },
  };
};

export default function (component) {
  return shown(component, begin);
}
