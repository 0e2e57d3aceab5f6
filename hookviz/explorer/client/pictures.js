// Pictures that come as bytes or as text, made ready to be drawn.

/**
 * A picture that can be drawn, of its URL.
 * @param {string} url
 * @returns {Promise<HTMLImageElement>}
 */
export const decoded = async (url) => {
  const picture = new Image();
  picture.src = url;
  await picture.decode();
  return picture;
};

/**
 * URLs for pictures in an element, of which the one before is let go.
 * @param {string} mime
 */
export const urls = (mime) => {
  let url = "";
  return {
    /** @param {BlobPart} data */
    of(data) {
      const before = url;
      url = URL.createObjectURL(new Blob([data], { type: mime }));
      if (before) setTimeout(() => URL.revokeObjectURL(before), 1000); // once the new one is shown
      return url;
    },
    end: () => url && URL.revokeObjectURL(url),
  };
};
