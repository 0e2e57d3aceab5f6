"""Break the code on purpose in one place at a time, and see which tests notice.

A mutant is a copy of the code with one operator, constant, condition, result or call changed. The
tests of its room, `tests/explaining` for `hookviz/explaining`, are run on it without those of a
browser. A mutant that none of them notices shows what nobody tests; a test that notices nothing
that another does not notice as well, and takes long, can go.

    .venv/bin/python -m scripts.mutants --count 300 --out out/mutants.json
    .venv/bin/python -m scripts.mutants --count 40 --room hooking drawing

What is words is left alone: messages, documentation, annotations.
"""

import argparse
import ast
import copy
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue

from scripts.servers import ROOT

_WORDS = {"say", "mark", "warn", "info", "warning", "debug", "event", "cast", "TypeVar"}
"""Functions whose arguments are words, or nothing that runs."""
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_PATIENCE = 3.0  # times what the room's tests take on the code as it is


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the code.

    Attributes:
        file: path below the top of the repository.
        line: where, from 1.
        before: the changed expression or statement as it is, on one line.
        after: what stands there instead.
        span: the place, as line and column in bytes of its beginning and its end.
    """

    file: str
    line: int
    before: str
    after: str
    span: tuple[int, int, int, int] = field(repr=False)

    @property
    def room(self) -> str:
        """The package whose tests are run."""
        return room_of(Path(self.file))

    def applied(self, source: str) -> str:
        """Return the file's text with the change in it."""
        first, column, last, end = self.span
        lines = source.encode().splitlines(keepends=True)
        kept = b"".join(lines[: first - 1]) + lines[first - 1][:column]
        rest = lines[last - 1][end:] + b"".join(lines[last:])
        return (kept + self.after.encode() + rest).decode()


def room_of(file: Path) -> str:
    """Return the package of a file of `hookviz`, or its own name where it is at the top."""
    return file.parts[1].removesuffix(".py")


def mutants_of(source: str, file: str) -> list[Mutant]:
    r"""Return all changes that can be made to one file.

    Example:
        >>> [each.after for each in mutants_of("def f(a):\n    return a < 1\n", "f.py")]
        ['return None', '(a <= 1)', '2']
    """
    found = []
    for node, changed in _changes(ast.parse(source)):
        span = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        before, after = ast.unparse(node), ast.unparse(changed)
        if isinstance(changed, ast.expr) and not isinstance(changed, ast.Constant):
            after = f"({after})"
        found.append(Mutant(file, node.lineno, before, after, span))  # type: ignore[arg-type]
    return found


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """Yield each node that can be changed with what it becomes, outermost first."""
    for child in _that_run(tree):
        if isinstance(child, ast.expr | ast.stmt):
            yield from ((child, changed) for changed in _changed(child))
        if isinstance(child, ast.If | ast.IfExp | ast.While):
            yield child.test, ast.UnaryOp(ast.Not(), child.test)
        yield from _changes(child)


def _that_run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node's parts but annotations, decorators, messages and documentation."""
    words = {"annotation", "returns", "decorator_list", "type_params", "bases"}
    is_said = isinstance(node, ast.Call) and _name(node.func) in _WORDS
    is_for_types = isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"
    if is_said or is_for_types or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        if name not in words:
            parts = value if isinstance(value, list) else [value]
            yield from (part for part in parts if isinstance(part, ast.AST))


def _name(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node can become."""
    match node:
        case ast.Return(value=ast.AST() as value) if ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Compare(ops=[op]) if type(op) in _SWAPS:
            yield _with(node, ops=[_SWAPS[type(op)]()])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in _SWAPS:
            yield _with(node, op=_SWAPS[type(op)]())
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Expr(value=ast.Call(func=func)) if _name(func) not in _WORDS:
            yield ast.Pass()


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


@dataclass(slots=True)
class Trial:
    """What the tests of its room say of a mutant.

    Attributes:
        mutant: the change.
        killed_by: the tests that fail with it and not without; ``["time"]`` where they don't end.
        seconds: what they took.
    """

    mutant: Mutant
    killed_by: list[str]
    seconds: float


class Rooms:
    """Copies of the repository in which mutants are tried, one at a time in each."""

    def __init__(self, folder: Path, copies: int, *, first: bool = False) -> None:
        """Copy what is committed, `copies` times, into `folder`.

        With `first` a trial ends at the first test that notices.
        """
        self._first = first
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(copies):
            place = folder / str(number)
            subprocess.run(["git", "clone", "-q", str(ROOT), str(place)], check=True)
            self._free.put(place)
        self._usual: dict[str, tuple[set[str], float]] = {}

    def tests_of(self, room: str) -> str | None:
        """Return the path of a room's tests; None where it has none of its own."""
        paths = (f"tests/{room}", f"tests/test_{room}.py")
        return next((path for path in paths if (ROOT / path).exists()), None)

    def prepare(self, room: str) -> None:
        """Run a room's tests on the code as it is: what fails there tells nothing."""
        place = self._free.get()
        try:
            self._usual[room] = _failures(place, str(self.tests_of(room)), 3600)
        finally:
            self._free.put(place)

    def tried(self, mutant: Mutant) -> Trial:
        """Run the tests of a mutant's room on it."""
        usual, seconds = self._usual[mutant.room]
        place = self._free.get()
        file = place / mutant.file
        source = file.read_text("utf-8")
        try:
            file.write_text(mutant.applied(source), "utf-8")
            failed, took = _failures(
                place,
                str(self.tests_of(mutant.room)),
                _PATIENCE * seconds + 30,
                usual if self._first else None,
            )
        finally:
            file.write_text(source, "utf-8")
            self._free.put(place)
        return Trial(mutant, sorted(failed - usual), took)


def _failures(
    place: Path, tests: str, patience: float, usual: set[str] | None = None
) -> tuple[set[str], float]:
    """Return the tests that fail in a copy, and the seconds that all took.

    With `usual`, those that always fail, only the first that fails beside them.
    """
    started = time.monotonic()
    command = [sys.executable, "-B", "-m", "pytest", tests, "-q", "--tb=no", "-rfE"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not sweep and not browser"]
    if usual is not None:
        command += ["-x", *(f"--deselect={test}" for test in usual)]
    try:
        done = subprocess.run(
            command, cwd=place, timeout=patience, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return {"time"}, patience
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE))
    if done.returncode not in (0, 1) and not failed:
        failed = {"collection"}
    return failed, time.monotonic() - started


def chosen(count: int, seed: int, rooms: list[str]) -> list[Mutant]:
    """Choose mutants of the rooms, each place as likely as another."""
    files = [path for path in sorted((ROOT / "hookviz").rglob("*.py")) if path.name[0] != "_"]
    every = [
        mutant
        for path in files
        if not rooms or room_of(path.relative_to(ROOT)) in rooms
        for mutant in mutants_of(path.read_text("utf-8"), str(path.relative_to(ROOT)))
    ]
    chance = random.Random(seed)  # noqa: S311 - the same ones again
    return chance.sample(every, min(count, len(every)))


def report(trials: list[Trial]) -> str:
    """Return the table by room, what survived, and how often each test was the only one."""
    by_room: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_room[trial.mutant.room].append(trial)
    lines = [f"{'room':16} mutants  killed  seconds each"]
    for room, own in sorted(by_room.items()):
        killed = sum(bool(each.killed_by) for each in own)
        seconds = sum(each.seconds for each in own) / len(own)
        lines.append(f"{room:16} {len(own):7} {killed:7} {seconds:13.1f}")
    killed = sum(bool(each.killed_by) for each in trials)
    lines += [f"{'all':16} {len(trials):7} {killed:7}", "", "nobody notices:"]
    lines += [
        f"  {each.mutant.file}:{each.mutant.line}  {each.mutant.before}  →  {each.mutant.after}"
        for each in trials
        if not each.killed_by
    ]
    alone = Counter(each.killed_by[0] for each in trials if len(each.killed_by) == 1)
    lines += ["", "tests that alone noticed one:"]
    lines += [f"  {count:3}  {test}" for test, count in alone.most_common()]
    return "\n".join(lines)


def main() -> None:
    """Try mutants, print what survived, and keep the matrix."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", nargs="*", default=[], help="packages of hookviz; all without")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--first", action="store_true", help="no matrix, and quicker")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants.json")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    try:
        rooms = Rooms(folder, options.workers, first=options.first)
        mutants = [
            each
            for each in chosen(options.count, options.seed, options.room)
            if rooms.tests_of(each.room)
        ]
        trials = []
        with ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(rooms.prepare, sorted({each.room for each in mutants})))
            for trial in pool.map(rooms.tried, mutants):
                trials.append(trial)
                told = f"killed by {len(trial.killed_by)}" if trial.killed_by else "SURVIVED"
                print(f"{len(trials)}/{len(mutants)} {told:14} {trial.mutant}", flush=True)
        options.out.parent.mkdir(exist_ok=True, parents=True)
        options.out.write_text(json.dumps([asdict(each) for each in trials], indent=1), "utf-8")
        print(report(trials))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
