"""The parameters of the link that the page's code names by a literal."""

import ast
from collections.abc import Iterable, Iterator

from scripts.servers import ROOT


def in_code() -> set[str]:
    """Those that a widget binds, that hold a choice of words, and that the code reads."""
    return _named_by(_calls())


def bound() -> set[str]:
    return _named_by(call for call in _calls() if any(each.arg == "bind" for each in call.keywords))


def _calls() -> Iterator[ast.Call]:
    for path in (ROOT / "hookviz" / "ui").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield node


def _named_by(calls: Iterable[ast.Call]) -> set[str]:
    keys = [each.value for call in calls for each in _keys(call) if isinstance(each, ast.Constant)]
    return {key for key in keys if isinstance(key, str)}


def _is_of_link(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith("st.query_params.") or ast.unparse(call.func) == "word"


def _keys(call: ast.Call) -> list[ast.expr]:
    named = {each.arg: each.value for each in call.keywords}
    keys = [named["key"]] if "bind" in named and "key" in named else []
    if _is_of_link(call):
        keys += call.args[:1]
    if ast.unparse(call.func) == "linked_choice":
        keys += call.args[3:4]
    return keys
