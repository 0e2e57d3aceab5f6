// The picked channel is in the link, as everywhere. The stream does not wait until it is there, and
// where keys go over many channels, the one that they rest on is one step of the browser's Back.

const LINK_LATEST = 5000; // milliseconds after which a link that did not follow is believed again

const linkedChannel = () => {
  const channel = new URLSearchParams(location.search).get("channel") ?? "";
  return /^\d{1,6}$/.test(channel) ? Number(channel) : null;
};

// `show(channel)` puts it on the screen, `tell(channel)` asks for the link.
export const channelInLink = (show, tell) => {
  /** @type {number | null} */
  let picked = null;
  /** @type {number | null | undefined} undefined where the link is believed */
  let wanted;
  /** @type {number | undefined} */
  let timer, patience;
  const set = (channel) => {
    picked = channel;
    show(channel);
  };
  const follow = () => {
    const channel = linkedChannel();
    if (wanted === channel) wanted = undefined;
    if (wanted === undefined && channel !== picked) set(channel);
  };
  return {
    follow,
    get picked() {
      return picked;
    },
    pick: (channel, pause = 0) => {
      if (channel === picked) return;
      set(channel);
      wanted = channel;
      clearTimeout(timer);
      clearTimeout(patience);
      timer = setTimeout(() => (linkedChannel() === channel ? (wanted = undefined) : tell(channel)), pause);
      patience = setTimeout(() => (wanted = undefined), pause + LINK_LATEST);
    },
    stop: () => {
      clearTimeout(timer);
      clearTimeout(patience);
    },
  };
};
