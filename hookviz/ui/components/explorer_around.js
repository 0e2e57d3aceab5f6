// What the explorer has around it in the app, as a whole or as its rows alone: the address, the line to
// the server, the place of its tree, and the keys that came early.

import { namedBefore } from "../../explorer/client/channel_questions.js";
import { forLink } from "../../explorer/client/link.js";
import { unpacked } from "../../explorer/client/shared.js";
import { isBusy, wire } from "./explorer_wire.js";
import { kept } from "./page.js";

/**
 * @param {() => any} current what the page's last run handed over
 * @param {(name: string, value: unknown) => void} tell the page, which runs
 */
export const around = (current, tell) => {
  const line = wire(current, { run: () => tell("opened", { anew: true }), isBusy, said: () => window.hookvizSaid() });
  return {
    ask: line.ask,
    noted: line.note, // the server is told what the address says by now, be nothing asked
    treeElement: window.hookvizTree ?? null,
    early: () => {
      if (!window.hookviz) return [];
      Object.assign(window.hookviz, { ready: true, turns: true });
      return window.hookviz.take();
    },
    /**
     * A choice is one entry in the browser's history.
     * @param {Record<string, string>} view
     * @param {"push" | "replace"} how
     * @param {string[]} words
     */
    changed: (view, how, words) => {
      const link = window.hookvizLink();
      const changes = forLink(view, words, link);
      const gone = changes.channel ? namedBefore(current().questions, link) : {};
      window.hookvizWrite({ ...changes, ...gone }, how);
      line.note();
    },
  };
};

/**
 * Follow the tree's place on the page; returns what ends it.
 * @param {{tree: (element: HTMLElement | ShadowRoot | null) => void}} mounted
 */
export const followTree = (mounted) => {
  const stand = () => mounted.tree(window.hookvizTree ?? null);
  document.documentElement.addEventListener("hookviz:tree", stand);
  return () => {
    document.documentElement.removeEventListener("hookviz:tree", stand);
    if (window.hookviz) window.hookviz.turns = false;
  };
};

/**
 * Show what a run of the page hands over, begun once, and follow the link; returns what leaves it.
 * @param {any} component
 * @param {(component: any, data: any, tell: (name: string, value: unknown) => void) => any} begin
 */
export const shown = (component, begin) => {
  const data = unpacked(component.data);
  const held = kept(component, ({ tell }) => begin(component, data, tell));
  held.show(data);
  held.follow(held.linked);
  return held.leave;
};
