// A page's connection to its class. It comes back by itself until the class is over.

const CLASS_PAUSES = [500, 1000, 2000, 4000, 8000]; // milliseconds before it is tried again
const CLASS_GIVEN_UP = [4401, 4403, 4430]; // codes after which trying again is no use

// `on` has news(view) with what is new, and state("open" | "lost" | "over", why).
export const openClass = ({ path, code, token, before = "" }, on) => {
  /** @type {WebSocket} */
  let socket;
  /** @type {number | undefined} */
  let timer;
  let [tries, ended] = [0, false];
  const over = (why) => {
    ended = true;
    on.state("over", why);
  };
  const connect = () => {
    const url = new URL(path, location.origin);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(url);
    socket.onopen = () => socket.send(JSON.stringify({ code, token, before }));
    socket.onmessage = ({ data }) => {
      const view = JSON.parse(data);
      if (tries !== -1) on.state("open");
      tries = -1;
      if (view.over) over(view.over);
      else on.news(view);
    };
    socket.onclose = ({ code: closed }) => {
      if (ended) return;
      if (CLASS_GIVEN_UP.includes(closed)) return over("unknown");
      on.state("lost");
      tries = Math.min(Math.max(tries, 0) + 1, CLASS_PAUSES.length);
      timer = setTimeout(connect, CLASS_PAUSES[tries - 1] * (1 + Math.random() / 2));
    };
  };
  connect();
  return {
    say: (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message)),
    close: () => {
      ended = true;
      clearTimeout(timer);
      socket.close();
    },
  };
};

// What was said of a class in this tab, which a reload keeps and other tabs do not have.
const CLASS_KEPT = "hookviz-class";
export const keptOfClass = (code) => {
  try {
    const kept = JSON.parse(sessionStorage.getItem(CLASS_KEPT) ?? "null") ?? {};
    return kept.code === code ? kept : {};
  } catch {
    return {};
  }
};
/**
 * Tell the page whether a question stands on it, so that it can make room.
 * @param {boolean} is
 */
export const polls = (is) => {
  if (document.documentElement.classList.toggle("hv-polls", is) !== wasPolled) dispatchEvent(new Event("resize"));
  wasPolled = is;
};
let wasPolled = false;

export const keepOfClass = (kept) => {
  try {
    if (kept) sessionStorage.setItem(CLASS_KEPT, JSON.stringify(kept));
    else sessionStorage.removeItem(CLASS_KEPT);
  } catch {
    // a browser that keeps nothing
  }
};
