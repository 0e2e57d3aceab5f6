// What the page's own scripts share by way of the browser: types alone, for the check of JavaScript.

/** What the server sends to a component: facts in JSON, and a picture where there is one. */
type Facts = Record<string, any>;

/** What Streamlit hands to a component (streamlit.components.v2). */
interface Component {
  data: any;
  parentElement: HTMLElement | ShadowRoot;
  setStateValue(name: string, value: unknown): void;
  setTriggerValue(name: string, value: unknown): void;
}

/** A component: draws once more at each run, and returns what ends it. */
type Draw = (component: Component) => void | (() => void);

interface Window {
  /** The page's sentences in its language, by the English ones. */
  hookvizWords?: Record<string, string>;
  /** The decimal point of the page's language. */
  hookvizPoint?: string;
  /** What early.js keeps of what was pressed before the page was there. */
  hookviz?: any;
  /** address.js: all words of the link; goes to another link, and says whether it is on its way there. */
  hookvizLink(): URLSearchParams;
  hookvizGo(link: string, how: "push" | "replace"): void;
  hookvizGoes(): boolean;
  /** address.js: writes words of the view, null for none. */
  hookvizWrite(changes: Record<string, string | null>, how: "push" | "replace"): void;
  /** address.js: what the server is told of the view, and what a run of the page says of it. */
  hookvizSaid(): { fragment: string; number: number };
  hookvizServer(facts: any): void;
  hookvizViewWords: string[];
  /** presenting.js and slides.js: the presenter's view, and its list of slides. */
  hookvizPresenting?: any;
  hookvizSlides?: any;
  /** live.js: what a stream keeps over the runs of the page. */
  hookvizLive?: any;
  /** live_share.js: what a teacher's camera shows to the class; `hookviz:camera` tells of a change. */
  hookvizCamera?: { kind: string | null; bytes: Uint8Array | null };
  /** explorer_tree.js: where the tree of layers is to stand. */
  hookvizTree?: HTMLElement | ShadowRoot;
  /** terms.js is there. */
  hookvizTerms?: unknown;
}
