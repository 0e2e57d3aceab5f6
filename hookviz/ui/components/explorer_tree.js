// The place of the tree of layers, at the side of the page: the explorer puts it there.

export default function ({ parentElement }) {
  const host = document.documentElement;
  window.hookvizTree = parentElement;
  host.dispatchEvent(new Event("hookviz:tree"));
  return () => {
    if (window.hookvizTree === parentElement) window.hookvizTree = undefined;
    host.dispatchEvent(new Event("hookviz:tree"));
  };
}
