// The explorer in the app: it asks the app's server, and its view is in the address.

import { mount } from "../../explorer/client/explorer.js";
import { forLink, viewOf } from "../../explorer/client/link.js";
import { unpacked } from "../../explorer/client/shared.js";
import { wire } from "./explorer_wire.js";
import { kept } from "./page.js";

const RUN = 2000; // milliseconds in which a run of the page hands over another subject, if there is one

// A choice is one entry in the browser's history, and costs no run of the page.
const write = (view, how, words) => window.hookvizWrite(forLink(view, words, location.search), how);

// Whether the page can't be run now: it runs, or its line is cut.
const isBusy = () => {
  const app = /** @type {HTMLElement | null} */ (document.querySelector("[data-testid=stApp]"));
  return app?.dataset.testScriptState === "running" || app?.dataset.testConnectionState !== "CONNECTED";
};

// What the link says beside the view: of image and network.
const ofPage = (fields) => {
  const link = new URLSearchParams(location.search);
  for (const { word, isPage } of fields) if (!isPage) link.delete(word);
  return link.toString();
};

// A lens with its settings: by the link, for its widgets begin with what stands there.
const goTo = (words) => {
  const link = new URLSearchParams(location.search);
  for (const [word, text] of Object.entries(words)) link.set(word, text);
  window.hookvizGo(link.toString(), "push");
};

const begin = (component, data, tell) => {
  const made = { data };
  let [about, timer] = [ofPage(data.fields), 0];
  const { ask } = wire(() => made.data, { run: () => tell("opened", { anew: true }), isBusy });
  const view = () => viewOf(location.search, made.data.fields);
  const held = mount(component.parentElement, {
    view: view(),
    fields: data.fields,
    subject: data.subject,
    ask,
    changed: write,
    opened: (facts) => (facts.lens ? goTo(facts.lens) : tell("opened", facts)),
    treeElement: window.hookvizTree ?? null,
    early: () => {
      if (!window.hookviz) return [];
      window.hookviz.ready = true;
      return window.hookviz.take();
    },
  });
  const words = new Set(data.fields.filter((field) => !field.isPage).map(({ word }) => word));
  window.hookvizExplorer = words;
  const stand = () => held.tree(window.hookvizTree ?? null);
  document.documentElement.addEventListener("hookviz:tree", stand);
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
      document.documentElement.removeEventListener("hookviz:tree", stand);
      held.end();
    },
  };
};

export default function (component) {
  const data = unpacked(component.data);
  const held = kept(component, ({ tell }) => begin(component, data, tell));
  held.show(data);
  held.follow(held.linked);
  return held.leave;
}
