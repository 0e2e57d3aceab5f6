"""Declare the panel of a table whose rows fold."""

from dataclasses import dataclass

from hookviz.drawing.panels import Cell, TablePanel

_ALL_ROWS = 16  # of a tree, which are so few that none is folded away
_SOME_ROWS, _MOST_ROWS = 6, 40  # that say something, and that one still takes in


@dataclass(frozen=True, eq=False, slots=True)
class TreePanel(TablePanel):
    """A table of nested rows: a row folds those below it that are deeper.

    Attributes:
        depths: of each row, in how many others it stands; 0 is outermost.
    """

    depths: tuple[int, ...] = ()

    @property
    def shown_depth(self) -> int:
        """Depth up to which rows are seen at first.

        Of a short tree these are all; else the outermost, or as many levels as say something.
        """
        if len(self.depths) <= _ALL_ROWS:
            return max(self.depths, default=0)
        counts = [sum(each <= depth for each in self.depths) for depth in sorted({*self.depths})]
        fitting = [depth for depth, count in enumerate(counts) if count <= _MOST_ROWS]
        telling = (depth for depth in fitting if counts[depth] >= _SOME_ROWS)
        return next(telling, fitting[-1] if fitting else 0)

    def _indented(self, sign: str) -> tuple[tuple[Cell, ...], ...]:
        return tuple(
            (f"{sign * depth}{row[0]}", *row[1:])
            for depth, row in zip(self.depths, self.rows, strict=True)
        )
