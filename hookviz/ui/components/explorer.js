// The explorer in the app: it asks the app's server, and its view is in the address.

import { mount } from "../../explorer/client/explorer.js";
import { viewOf } from "../../explorer/client/link.js";
import { around, followTree, shown } from "./explorer_around.js";
import { scrollUp } from "./page.js";

const RUN = 2000; // milliseconds in which a run of the page hands over another subject, if there is one

// What the link says beside the view: of image and network.
const ofPage = (fields) => {
  const link = new URLSearchParams(location.search);
  for (const { word, isPage } of fields) if (!isPage) link.delete(word);
  return link.toString();
};

// A lens with its settings: by the link, for its widgets begin with what stands there.
const goTo = (words) => {
  const link = new URLSearchParams(location.search);
  for (const [word, text] of Object.entries(words)) {
    if (text) link.set(word, text);
    else link.delete(word);
  }
  scrollUp(); // on a phone the tile was scrolled above the sheet
  window.hookvizGo(link.toString(), "push");
};

const begin = (component, data, tell) => {
  const made = { data };
  let [about, timer] = [ofPage(data.fields), 0];
  const view = () => viewOf(location.search, made.data.fields);
  const held = mount(component.parentElement, {
    ...around(() => made.data, tell),
    view: view(),
    fields: data.fields,
    subject: data.subject,
    questions: data.questions,
    opened: (facts) => (facts.lens ? goTo(facts.lens) : tell("opened", facts)),
  });
  const words = new Set(data.fields.filter((field) => !field.isPage).map(({ word }) => word));
  window.hookvizExplorer = words;
  const leave = followTree(held);
  const show = () => {
    clearTimeout(timer);
    about = ofPage(made.data.fields);
    held.show(view(), made.data.subject);
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
      if (ofPage(made.data.fields) === about) show();
      else timer = setTimeout(show, RUN);
    },
    end: () => {
      clearTimeout(timer);
      if (window.hookvizExplorer === words) window.hookvizExplorer = undefined;
      leave();
      held.end();
    },
  };
};

export default function (component) {
  return shown(component, begin);
}
