"""Where marked sentences go: a check, by reading the code, that each one reaches `say`.

A sentence that is given to `mark` and then shown as it stands is translated by somebody, and never
seen in their language. The code is read as a graph: names, fields and parameters are nodes, and an
edge leads from a value to what it is assigned, given or returned to. What is formatted or joined
without `say` leads nowhere. Fields, functions and parameters are known by their names alone, so a
sentence can be taken for said that is not; one that is reported is said by nobody.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Node = tuple[str, ...]
"""Its kind and names: ``("mark", place, text)``, ``("name", scope, name)``, ``("field", name)``."""

_SAY = {"say": 1, "say_count": 2}  # and how many of the arguments are sentences
_SAID: Node = ("said",)
_HANDS_ON = {  # builtins and methods whose result has parts of what they are given
    *("next", "iter", "tuple", "list", "dict", "set", "frozenset", "sorted", "zip", "enumerate"),
    *("reversed", "filter", "max", "min", "cast", "MappingProxyType", "chain", "get", "values"),
    *("items", "pop", "setdefault", "copy", "islice"),
}


class _Module(ast.NodeVisitor):
    """The edges of one module."""

    def __init__(self, name: str, tree: ast.Module, graph: "Graph") -> None:
        self._graph = graph
        self._module = name
        self._scopes: list[tuple[str, frozenset[str]]] = [(name, frozenset())]
        self._functions: list[str] = []
        self._imports: dict[str, Node] = {}
        self.visit(tree)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._imports[alias.asname or alias.name] = ("name", node.module or "", alias.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            self._graph.fields[node.name] += self._graph.fields[_called(base)]
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    self._graph.fields[node.name].append(name)
                    if value is not None:
                        self._edges(value, ("field", name))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._edges(value, ("field", name))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = [argument.arg for argument in arguments]
        scope = f"{self._scopes[-1][0]}.{node.name}:{node.lineno}"
        if names[:1] in (["self"], ["cls"]):
            names = names[1:]
        defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        if any(isinstance(value, ast.Name) and value.id == "say" for value in defaults):
            for name in names:
                self._graph.link(("name", scope, name), _SAID)
        for place, name in enumerate(names):
            self._graph.link(("parameter", node.name, str(place)), ("name", scope, name))
            self._graph.link(("parameter", node.name, name), ("name", scope, name))
        stored = {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        captured = {part.name for part in ast.walk(node) if isinstance(part, ast.MatchAs)}
        local = frozenset({*names, *stored, *filter(None, captured)})
        self._scopes.append((scope, local))
        self._functions.append(node.name)
        self.generic_visit(node)
        self._functions.pop()
        self._scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - as ast calls it

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign | ast.AugAssign | ast.NamedExpr) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)
        self.generic_visit(node)

    visit_AugAssign = visit_NamedExpr = visit_AnnAssign  # noqa: N815 - as ast calls it

    def visit_For(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        self._assign(node.target, node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_comprehension = visit_For  # noqa: N815 - as ast calls it

    def visit_Match(self, node: ast.Match) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.MatchAs) and part.name:
                self._edges(node.subject, self._name(part.name))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return | ast.Yield | ast.YieldFrom) -> None:
        if node.value is not None and self._functions:
            self._edges(node.value, ("result", self._functions[-1]))
        self.generic_visit(node)

    visit_Yield = visit_YieldFrom = visit_Return  # noqa: N815 - as ast calls it

    def visit_Compare(self, node: ast.Compare) -> None:
        if isinstance(node.ops[0], ast.In):  # then it is one of these
            for target in self._sources(node.left):
                self._edges(node.comparators[0], target)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        if name in {"append", "add"} and isinstance(node.func, ast.Attribute):
            for target in self._sources(node.func.value):
                self._edges(node.args[0], target)
        said = node.args[: _SAY.get(name, 0)]
        if name in {"partial", "map"} and _called(node.args[0]) == "say":
            said = node.args[1:]
        for argument in said:
            self._edges(argument, _SAID)
        if name not in _SAY and name not in _HANDS_ON:
            for place, argument in enumerate(node.args):
                self._edges(argument, ("parameter", name, str(place)))
            for keyword in node.keywords:
                self._edges(keyword.value, ("parameter", name, keyword.arg or "**"))
                self._edges(keyword.value, ("field", keyword.arg or "**"))
        self.generic_visit(node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self._edges(value, self._name(part.id))
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                self._edges(value, ("field", part.attr))
            elif isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
                self._edges(value, self._name(part.value.id))

    def _edges(self, value: ast.expr, target: Node) -> None:
        for source in self._sources(value):
            self._graph.link(source, target)

    def _name(self, name: str) -> Node:
        for scope, local in reversed(self._scopes[1:]):
            if name in local:
                return "name", scope, name
        return self._imports.get(name, ("name", self._module, name))

    def _sources(self, value: ast.expr) -> Iterator[Node]:
        """Return what can be, or be in, the value of an expression."""
        match value:
            case ast.Name():
                yield self._name(value.id)
            case ast.Attribute():
                yield "field", value.attr
                if isinstance(value.value, ast.Name):  # of a module
                    _, *module = self._imports.get(value.value.id, ("",))
                    yield "name", ".".join(module), value.attr
            case ast.Call():
                yield from self._results(value)
            case ast.JoinedStr() | ast.Compare():
                return
            case _:
                for part in ast.iter_child_nodes(value):
                    if isinstance(part, ast.expr):
                        yield from self._sources(part)

    def _results(self, call: ast.Call) -> Iterator[Node]:
        name = _called(call)
        if name == "mark" and isinstance(call.args[0], ast.Constant):
            yield "mark", f"{self._module}:{call.lineno}", str(call.args[0].value)
        elif name not in _SAY:
            yield "result", name
        if name in _HANDS_ON:
            of = [call.func.value] if isinstance(call.func, ast.Attribute) else []
            for part in (*of, *call.args, *(keyword.value for keyword in call.keywords)):
                yield from self._sources(part)


class Graph:
    """Where the values of a package go, see the module."""

    def __init__(self, package: Path) -> None:
        self.fields: dict[str, list[str]] = defaultdict(list)
        self._targets: dict[Node, set[Node]] = defaultdict(set)
        for file in sorted(package.rglob("*.py")):
            name = ".".join(file.relative_to(package.parent).with_suffix("").parts)
            _Module(name, ast.parse(file.read_text("utf-8")), self)
        for kind, fields in self.fields.items():
            for place, field in enumerate(fields):
                self.link(("parameter", kind, str(place)), ("field", field))

    def link(self, source: Node, target: Node) -> None:
        """Have what is at `source` come to `target`, too."""
        self._targets[source].add(target)

    def unsaid(self) -> list[str]:
        """Return the marked sentences that no `say` is given, with the place of each."""
        marks = [node for node in self._targets if node[0] == "mark"]
        said = {text for _, place, text in marks if self._is_said(text, place)}
        return [f"{place} {text!r}" for _, place, text in marks if text not in said]

    def _is_said(self, text: str, place: str) -> bool:
        ahead: list[Node] = [("mark", place, text)]
        seen: set[Node] = set()
        while ahead:
            node = ahead.pop()
            if node == _SAID:
                return True
            if node not in seen:
                seen.add(node)
                ahead.extend(self._targets.get(node, ()))
        return False


def _called(node: ast.expr) -> str:
    """Return the name of what is called, without what it is of."""
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "id", getattr(function, "attr", ""))
