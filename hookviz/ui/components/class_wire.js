// A page's connection to its class. It comes back by itself until the class is over.

const CLASS_PAUSES = [500, 1000, 2000, 4000, 8000]; // milliseconds before it is tried again
const CLASS_GIVEN_UP = [4401, 4403]; // codes after which trying again is no use
const CLASS_FULL = 4430; // and after which it is, later

const CLASS_AGAIN = 5000; // milliseconds after which a page that did not hear that it is over is told again

const CLASS_BEAT = 10_000; // milliseconds after which a page says again that it is there
const CLASS_SILENCE = 26_000; // and after which a line on which nothing is answered is none any more

// `on` has news(view) with what is new, frame(buffer) with a picture of the teacher's camera,
// state("open" | "lost" | "full" | "over", why), and here(), which says whether somebody looks at the page.
export const openClass = ({ path, code, token, before = "" }, on) => {
  /** @type {WebSocket} */
  let socket;
  /** @type {number | undefined} */
  let timer;
  let [tries, ended, heard] = [0, false, Date.now()];
  const isOpen = () => socket.readyState === WebSocket.OPEN;
  const say = (message) => {
    if (isOpen()) socket.send(JSON.stringify(message));
    return isOpen();
  };
  // Bytes, where no more than so many wait already.
  const send = (bytes, most) => isOpen() && socket.bufferedAmount <= most && socket.send(bytes);
  const over = (why) => {
    stop();
    timer = setTimeout(() => over(why), CLASS_AGAIN); // its server may be away, too
    on.state("over", why);
  };
  // A socket that is let go is heard no more: its line may take minutes to end.
  const drop = () => {
    const dropped = socket;
    dropped.onopen = dropped.onmessage = dropped.onclose = null;
    dropped.close();
  };
  const lose = (isFull = false) => {
    drop();
    on.state(isFull ? "full" : "lost");
    tries = Math.min(Math.max(tries, 0) + 1, CLASS_PAUSES.length);
    clearTimeout(timer);
    timer = setTimeout(connect, CLASS_PAUSES[tries - 1] * (1 + Math.random() / 2));
  };
  const connect = () => {
    const url = new URL(path, location.origin);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    heard = Date.now();
    socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      socket.send(JSON.stringify({ code, token, before }));
      say({ here: on.here() });
    };
    socket.onmessage = ({ data }) => {
      heard = Date.now();
      if (typeof data !== "string") return on.frame?.(data);
      const view = JSON.parse(data);
      if (tries !== -1) on.state("open");
      tries = -1;
      if (view.over) over(view.over);
      else on.news(view);
    };
    socket.onclose = ({ code: closed }) => {
      if (ended) return;
      if (CLASS_GIVEN_UP.includes(closed)) return over("unknown");
      lose(closed === CLASS_FULL);
    };
  };
  // A browser tells at once that its network is gone, and a line that is cut elsewhere says nothing.
  const beat = () => {
    if (!document.hidden && socket.readyState <= WebSocket.OPEN && Date.now() - heard > CLASS_SILENCE) lose();
    else say({ here: on.here() });
  };
  const offline = () => lose();
  const retry = () => {
    clearTimeout(timer);
    if (socket.readyState > WebSocket.OPEN) connect();
  };
  const shown = () => {
    if (!document.hidden) {
      heard = Math.max(heard, Date.now() - CLASS_SILENCE + 5000); // the page slept, and hears now
      retry();
    }
    say({ here: on.here() });
  };
  const beating = setInterval(beat, CLASS_BEAT);
  const stop = () => {
    ended = true;
    clearTimeout(timer);
    clearInterval(beating);
    removeEventListener("offline", offline);
    removeEventListener("online", retry);
    document.removeEventListener("visibilitychange", shown);
    drop();
  };
  addEventListener("offline", offline);
  addEventListener("online", retry);
  document.addEventListener("visibilitychange", shown);
  connect();
  return { say, send, close: stop };
};

/**
 * Have the page know that the bar tells of a line that is cut, so that Streamlit's dialog need not.
 * @param {boolean} isCut
 */
export const tellOfLine = (isCut) => document.documentElement.classList.toggle("hv-class-cut", isCut);

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

export const keepOfClass = (kept) => {
  try {
    if (kept) sessionStorage.setItem(CLASS_KEPT, JSON.stringify(kept));
    else sessionStorage.removeItem(CLASS_KEPT);
  } catch {
    // a browser that keeps nothing
  }
};
