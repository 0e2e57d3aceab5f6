"""Explain the field's words with a plain sentence each; find them, and bold words, in a text.

Bold words stand between ``**``, also in translations.
"""

import re
from functools import cache

from hookviz.language import catalogs
from hookviz.language.saying import mark, say
from hookviz.language.speaking import current, speaking

WORDS = {
    mark("activation"): mark(
        "What a layer puts out for one image: numbers, a map of them for each channel."
    ),
    mark("activation function"): mark(
        "A function of single numbers between layers, such as ReLU; without it all "
        "layers together would be no more than one."
    ),
    mark("batch norm"): mark(
        "It shifts and scales each channel, by a mean and a variance from training, "
        "so that its values stay near zero and about as large as those of the others."
    ),
    mark("bias"): mark(
        "One learned number for each channel, added to the sum of products in every cell."
    ),
    mark("cell"): mark(
        "One number of a feature map: a channel's answer at one place of the image."
    ),
    mark("channel"): mark(
        "One of a layer's detectors; its feature map says where in the image it "
        "answers, and how strongly."
    ),
    mark("constant channel"): mark(
        "A channel whose map has the same value everywhere on this image; one that is zero on "
        "every image is a dead channel."
    ),
    mark("conv layer"): mark(
        "A layer that slides small kernels over its input and puts out a feature map for each."
    ),
    mark("depthwise"): mark(
        "Each channel has one input of its own, instead of a sum over all of them."
    ),
    mark("dilation"): mark(
        "How far apart the kernel's weights touch the input; 1 is side by side."
    ),
    mark("feature map"): mark("A channel's answers at every place of the image, as a picture."),
    mark("groups"): mark(
        "The channels are split into so many parts, and each sees its own part of the input."
    ),
    mark("kernel"): mark(
        "The small grid of learned weights that slides over the input; where the "
        "input looks like it, the answer is large."
    ),
    mark("max pooling"): mark(
        "It keeps the largest of each small patch of a map, which gets smaller by it."
    ),
    mark("multiply-adds"): mark(
        "How many multiplications, each with an addition, it takes for one image; adding a bias "
        "counts as one more."
    ),
    mark("norm"): mark("How large weights are all together: the root of the sum of their squares."),
    mark("padding"): mark(
        "What is put around the input, mostly zeros, so that the kernel can reach its edge."
    ),
    mark("receptive field"): mark(
        "The part of the image that one cell sees; it grows from layer to layer."
    ),
    mark("ReLU"): mark("It keeps what is above zero and turns everything below into zero."),
    mark("stride"): mark(
        "How many cells the kernel moves at each step; with 2 the map gets half as wide."
    ),
    mark("top-5 probability"): mark(
        "How sure the network is of its five likeliest classes; over all classes the "
        "shares add up to 100 %."
    ),
    mark("weights"): mark("The numbers that a network has learned in training."),
}
"""Meaning of each word, in the order of the alphabet."""

_WRITTEN = {
    "batch norm": mark("batch norm|BatchNorm\\dd"),
    "channel": mark("channels?"),
    "conv layer": mark("conv layers?|convolution"),
    "max pooling": mark("max pooling|MaxPool\\dd"),
    "multiply-adds": mark("multiply-adds"),
    "receptive field": mark(
        "receptive field|sees (?:the whole image|[\\d×]+ px)|what the cell sees"
    ),
    "kernel": mark("kernel"),
}
"""Pattern of a word on the page, where it is written in other forms too."""


def pieces(text: str) -> list[tuple[str, str]]:
    """Split `text` into (part, word): a word at its first occurrence, and ``""`` between.

    >>> pieces("bias 0.5, and a bias")
    [('bias', 'bias'), (' 0.5, and a bias', '')]
    """
    parts, start, met = list[tuple[str, str]](), 0, set[str]()
    words, pattern = _patterns(current())
    for match in pattern.finditer(text):
        word = words[(match.lastindex or 1) - 1]
        if word in met:
            continue
        met.add(word)
        parts += [(text[start : match.start()], ""), (match[0], word)]
        start = match.end()
    return [part for part in (*parts, (text[start:], "")) if part[0]]


def explained(text: str) -> list[tuple[str, str]]:
    """Split `text` into (part, sentence): the meaning of a word, and ``""`` between.

    >>> explained("bias 0.5")[0]
    ('bias', 'One learned number for each channel, added to the sum of products in every cell.')
    """
    return [(part, say(WORDS[word]) if word else "") for part, word in pieces(text)]


def document() -> str:
    """Return the glossary as a page of the documents, in English."""
    return (
        "# Words\n\nEnglish · [简体中文](glossary.zh.md)\n\n"
        f"What the page says of them where they stand.\n\n{table()}"
    )


def table() -> str:
    """Return the words with their meanings as a Markdown table, in the current language.

    A word of another language has the English one behind it, for searching papers.
    """
    rows = [
        f"| {word if translation == word else f'{translation} ({word})'} | {say(sentence)} |"
        for word, sentence in WORDS.items()
        for translation in [say(word)]
    ]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


@cache
def _patterns(language: str) -> tuple[list[str], re.Pattern[str]]:
    """Return all words, the longest first, and a pattern with a group for each."""
    with speaking(language):
        words = sorted(WORDS, key=lambda word: len(say(word)), reverse=True)
        forms = [say(_WRITTEN[w]) if w in _WRITTEN else re.escape(say(w)) for w in words]
    # Chinese has nothing between two words; what is Latin in it still ends where letters do.
    edge = "[A-Za-z]" if catalogs.is_unspaced(language) else r"\w"
    either = "|".join(f"({form})" for form in forms)
    return words, re.compile(rf"(?<!{edge})(?:{either})(?!{edge})", re.IGNORECASE)


Part = tuple[str, str, bool]
"""A piece of a sentence, the meaning of its word or ``""``, and whether it is bold."""

_BOLD = re.compile(r"\*\*(.+?)\*\*")


def emphasised(sentence: str) -> list[Part]:
    """Split a sentence into its parts, with the glossary's words explained.

    A part begins as one of `explained` does, so that a client that ignores the third value works.

    >>> emphasised("**A** is here")
    [('A', '', True), (' is here', '', False)]
    """
    pieces = _BOLD.split(sentence)  # every other one is bold
    return [
        (text, meaning, bool(at % 2))
        for at, piece in enumerate(pieces)
        for text, meaning in explained(piece)
    ]


def plainly(sentence: str) -> str:
    """Remove the signs for bold words from a sentence.

    >>> plainly("**A** is here")
    'A is here'
    """
    return _BOLD.sub(r"\1", sentence)
