"""Find all mutants of a module: small changes of its source that a test should notice.

The source is changed as text, in the place that the syntax tree names, so that a diff shows one change and no other.
Left alone: docstrings and other texts, type annotations, imports for types, arguments of log calls and of errors.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
"""Replacements of operators."""

LOCK = re.compile(r"lock|mutex|condition|semaphore", re.IGNORECASE)
LOCK_MADE = re.compile(r"(\w+)\b[^=\n]*=\s*(?:threading|asyncio)\.(?:R?Lock|Condition|Semaphore)\(")
LOG_CALL = re.compile(r"_?(?:log|logger)\.\w+$")

NO_LOCK = '__import__("contextlib").nullcontext()'

Lines = tuple[int, int]


@dataclass(frozen=True, order=True)
class Mutant:
    """One change of one file."""

    file: str
    line: int
    start: int
    end: int
    new: str
    kind: str
    reached_by: tuple[Lines, ...]
    """Lines whose tests reach the change, the narrowest range first; empty if it is made at import."""

    def applied(self, source: str) -> str:
        """Make the changed source."""
        return source[: self.start] + self.new + source[self.end :]

    def diff(self, source: str, context: int = 3) -> str:
        """Show the change as a unified diff."""
        old, new = source.splitlines(), self.applied(source).splitlines()
        lines = difflib.unified_diff(old, new, f"a/{self.file}", f"b/{self.file}", n=context, lineterm="")
        return "\n".join(lines)

    def compiles(self, source: str) -> bool:
        """Check that the changed source is valid and a different program."""
        try:
            return ast.dump(ast.parse(self.applied(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False

    def short(self, source: str) -> str:
        """Show the change in one line."""
        changed = [
            line for line in self.diff(source, 0).splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}
        ]
        old = " ".join(line[1:].strip() for line in changed if line[0] == "-")
        new = " ".join(line[1:].strip() for line in changed if line[0] == "+")
        return f"{_cut(old)}  ->  {_cut(new)}"


def find_mutants(file: str, source: str) -> list[Mutant]:
    """Find all mutants of a module, in the order of its text."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found))


def _cut(text: str, width: int = 90) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: str) -> None:
        self._file, self._source = file, source
        lines = source.splitlines(keepends=True)
        self._lines = [line.encode() for line in lines]
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._tokens = [
            (self._starts[token.start[0] - 1] + token.start[1], token.string)
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type in {tokenize.OP, tokenize.NAME}
        ]
        self._locks = set(LOCK_MADE.findall(source))
        self._statement: Lines | None = None
        self._in_function = False
        self.found: list[Mutant] = []

    # -- places

    def _place(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self._place(node.lineno, node.col_offset),
            self._place(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def _text(self, node: ast.AST) -> str:
        return ast.get_source_segment(self._source, node) or ""

    def _add(self, kind: str, start: int, end: int, new: str, lines: Lines) -> None:
        line = bisect_right(self._starts, start)
        ranges = (lines, self._statement) if self._in_function else ()
        reached_by = tuple(dict.fromkeys(found for found in ranges if found))
        self.found.append(Mutant(self._file, line, start, end, new, kind, reached_by))

    def _replace(self, kind: str, node: ast.expr | ast.stmt, new: str) -> None:
        self._add(kind, *self._span(node), new, (node.lineno, node.end_lineno or node.lineno))

    def _swap(self, kind: str, left: ast.expr, right: ast.expr, operator: ast.AST) -> None:
        """Swap the operator between two expressions."""
        if type(operator) not in SWAPS:
            return
        old, new = SWAPS[type(operator)]
        words = old.split()
        after, before = self._span(left)[1], self._span(right)[0]
        between = self._tokens[bisect_left(self._tokens, (after, "")) : bisect_left(self._tokens, (before, ""))]
        found = [token for token in between if token[1] in words]
        start, (last, text) = found[0][0], found[len(words) - 1]
        lines = (left.lineno, right.end_lineno or right.lineno)
        self._add(f"{kind}: {old} becomes {new}", start, last + len(text), new, lines)

    # -- statements

    def visit(self, node: ast.AST) -> None:
        """Keep the statement, or only its header if it has a body."""
        if not isinstance(node, ast.stmt) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            super().visit(node)
            return
        before = self._statement
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        last = node.end_lineno or node.lineno
        if body:
            first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
            last = max(node.lineno, first.lineno - 1)
        self._statement = (node.lineno, last)
        super().visit(node)
        self._statement = before

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        before, self._in_function = self._in_function, True
        for statement in node.body:
            self.visit(statement)
        self._in_function = before

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function  # noqa: N815  as ast names them

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Visit its defaults and its body."""
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults), node.body):
            self.visit(default)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Skip bases, keywords and decorators: they declare a shape."""
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Skip the annotation."""
        if node.value is not None:
            if not isinstance(node.target, ast.Name):
                self._replace("statement removed", node, "pass")
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remove assignments to attributes and items; a missing name would only be an error."""
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & {"__all__", "model_config"}:
            return
        if not names and not all(isinstance(target, ast.Tuple) for target in node.targets):
            self._replace("statement removed", node, "pass")
        if self._in_function or not isinstance(node.value, ast.BinOp):  # else a union of types, or of texts
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Remove the statement, and swap its operator."""
        self._replace("statement removed", node, "pass")
        if type(node.op) in SWAPS and not _is_text(node.value):
            old, new = SWAPS[type(node.op)]
            start = next(at for at, text in self._tokens if at >= self._span(node.target)[1] and text == f"{old}=")
            self._add(f"arithmetic: {old}= becomes {new}=", start, start + len(old), new, (node.lineno, node.lineno))
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        """Remove it."""
        self._replace("statement removed", node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        """Remove calls."""
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and self._text(call.func) != "assert_never":
            self._replace("statement removed", node, "pass")
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Remove the statement; the error's text is not mutated."""
        self._replace("raise removed", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        """Return None; most callers treat it like False."""
        if node.value is None:
            return
        if not (isinstance(node.value, ast.Constant) and node.value.value in {None, False}):
            self._replace("return value dropped", node.value, "None")
        self.visit(node.value)

    def visit_Break(self, node: ast.Break) -> None:
        """Replace it with `continue`."""
        self._replace("break becomes continue", node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """Replace it with `break`."""
        self._replace("continue becomes break", node, "break")

    def _force(self, test: ast.expr, *values: str) -> None:
        if not isinstance(test, ast.Constant):
            for value in values:
                self._replace(f"condition is {value}", test, value)
        self.visit(test)

    def visit_If(self, node: ast.If) -> None:
        """Force the condition."""
        if self._text(node.test) != "TYPE_CHECKING":
            self._force(node.test, "True", "False")
            for statement in node.body:
                self.visit(statement)
        for statement in node.orelse:
            self.visit(statement)

    def visit_While(self, node: ast.While) -> None:
        """Never enter the loop; an endless loop would only take time."""
        self._force(node.test, "False")
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Force the condition."""
        self._force(node.test, "True", "False")
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Force the conditions."""
        self.visit(node.iter)
        for test in node.ifs:
            self._force(test, "True")

    def visit_match_case(self, node: ast.match_case) -> None:
        """Force the guard."""
        if node.guard is not None:
            self._force(node.guard, "True", "False")
        for statement in node.body:
            self.visit(statement)

    def _visit_with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            name = self._text(item.context_expr).rpartition(".")[2]
            if LOCK.search(name) or name in self._locks:
                self._replace("lock not taken", item.context_expr, NO_LOCK)
            self.visit(item.context_expr)
        for statement in node.body:
            self.visit(statement)

    visit_With = visit_AsyncWith = _visit_with  # noqa: N815

    # -- expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        """Swap each comparison."""
        operands = [node.left, *node.comparators]
        for (left, right), operator in zip(pairwise(operands), node.ops, strict=True):
            self._swap("comparison", left, right, operator)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Swap each ``and`` and ``or``."""
        for left, right in pairwise(node.values):
            self._swap("boolean", left, right, node.op)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Swap arithmetic, unless it joins texts."""
        if not (_is_text(node.left) or _is_text(node.right)):
            self._swap("arithmetic", node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Remove ``not``."""
        if isinstance(node.op, ast.Not):
            start, end = self._span(node)[0], self._span(node.operand)[0]
            self._add("not removed", start, end, "", (node.lineno, node.end_lineno or node.lineno))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change numbers and truth."""
        if isinstance(node.value, bool):
            self._replace(f"constant: {node.value} becomes {not node.value}", node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._replace(f"constant: {node.value} becomes {node.value + 1}", node, str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        """Skip a log call's arguments, and the types of ``isinstance`` and ``cast``."""
        name = self._text(node.func)
        if LOG_CALL.search(name):
            return
        arguments = {"isinstance": node.args[:1], "issubclass": node.args[:1], "cast": node.args[1:]}
        self.visit(node.func)
        for argument in (*arguments.get(name, node.args), *(keyword.value for keyword in node.keywords)):
            self.visit(argument)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip texts."""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
