// The picked channel is in the link, as everywhere. Where keys go over many channels, the one that they
// rest on is one step of the browser's Back.

const linkedChannel = () => {
  const channel = window.hookvizLink().get("channel") ?? "";
  return /^\d{1,6}$/.test(channel) ? Number(channel) : null;
};

// `show(channel)` puts it on the screen, `write(channel)` into the link.
export const channelInLink = (show, write) => {
  /** @type {number | null} */
  let picked = null;
  /** @type {number | undefined} */
  let timer;
  const set = (channel) => {
    picked = channel;
    show(channel);
  };
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    follow: () => {
      if (timer === undefined && linkedChannel() !== picked) set(linkedChannel());
    },
    get picked() {
      return picked;
    },
    pick: (channel, pause = 0) => {
      if (channel === picked) return;
      set(channel);
      stop();
      timer = setTimeout(() => {
        timer = undefined;
        write(channel);
      }, pause);
    },
    /** Write what waits, before something else is written. */
    settle: () => {
      if (timer === undefined) return;
      stop();
      write(picked);
    },
    stop,
  };
};
