"""The assertions of tests in Rust (and of those in Python): what is one, and how two versions of one differ.

An assertion is
  - each condition of `assert!(a && b)`, and of its kin in proptest; both sides of `assert_eq!` and
    `assert_ne!`; snapshots
  - `.unwrap_err()` and `.expect_err()`, with what they are called on
  - a test that runs: `#[test]` without `#[ignore]`
Messages do not count. Within `known_failure(…)` (crates/testing) it counts as a known failure, which is
less than a plain one.
"""

import ast
import bisect
import collections
import dataclasses
import functools
import re

KNOWN = "known failure: "
TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)|(?P<block>/\*)
    |(?P<string>b?r(?P<hash>\#*)"(?s:.*?)"(?P=hash)|[bc]?"(?:\\(?s:.)|[^"\\])*")
    |(?P<char>b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])')|(?P<life>'\w+)
    |(?P<number>0[xob][\da-fA-F_]+(?:[iu](?:8|16|32|64|128|size))?|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?:_?[iuf](?:8|16|32|64|128|size))?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<op>\.\.=|\.\.|<<=|>>=|==|!=|<=|>=|&&|\|\||->|=>|::|[-+*/%^&|]=|(?s:.))""",
    re.X,
)
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
RELATIONS = ("<", "<=", ">", ">=")
ONE, TWO = {"assert", "prop_assert", "debug_assert"}, {"assert_eq", "assert_ne", "prop_assert_eq", "prop_assert_ne"}
WHOLE = {"assert_snapshot", "assert_matches"}
# Constants that are bounds by their name, wherever they are used.
BOUND_NAME = re.compile(r"TOLERANCE|LIMIT|BOUND|MARGIN|SLACK|CEILING|AT_MOST|AT_LEAST")


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    line: int


@dataclasses.dataclass(frozen=True)
class Assertion:
    kind: str
    tokens: tuple
    file: str
    function: str
    line: int

    @property
    def where(self):
        return self.file, self.function

    def place(self):
        return f"{self.file}:{self.line} in {self.function or 'no function'}"

    def text(self):
        text = f"{self.kind} {pretty(self.tokens)}"
        return text if len(text) <= 160 else text[:157] + "…"


def pretty(tokens):
    """Returns tokens as they are usually written."""
    text = " ".join(tokens)
    text = re.sub(r" ?(\.|::|\.\.=?|\?) ?", r"\1", text)
    text = re.sub(r"(\w) ([(\[!])", r"\1\2", text)
    return re.sub(r"([(\[!&*]) ", r"\1", re.sub(r" ([)\],;])", r"\1", text))


def tokens_of(text):
    """Returns the tokens of a source text, without comments."""
    starts = [match.end() for match in re.finditer("\n", text)]
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        kind = match.lastgroup if match.lastgroup != "hash" else "string"
        at = match.end()
        if kind == "block":
            depth = 1
            while depth and (edge := re.compile(r"/\*|\*/").search(text, at)):
                depth, at = depth + (1 if edge[0] == "/*" else -1), edge.end()
            at = at if not depth else len(text)
        elif kind == "number" and found and found[-1].text == ".":
            # A field of a tuple, or two of them.
            at = match.start() + len(re.match(r"\d+", match[0])[0])
            found.append(Token("name", text[match.start() : at], found[-1].line))
        elif kind != "skip":
            found.append(Token(kind, match[0], bisect.bisect_right(starts, match.start()) + 1))
    return found


def closing(tokens, at):
    """Returns the index of the bracket that closes the one at `at`; the last token if none does."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].kind == "op":
            depth += (tokens[i].text in OPEN) - (tokens[i].text in CLOSE)
            if not depth:
                return i
    return len(tokens) - 1


def split(tokens, separator):
    """Returns the parts between separators that stand in no bracket and no `::<…>`."""
    parts, depth, angle = [[]], 0, 0
    for i, token in enumerate(tokens):
        if token.kind == "op":
            depth += (token.text in OPEN) - (token.text in CLOSE)
            angle += token.text == "<" and i > 0 and tokens[i - 1].text == "::"
            angle -= angle > 0 and token.text == ">"
        if token.text == separator and token.kind == "op" and not depth and not angle:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def bare(tokens):
    """Returns an expression without brackets around all of it."""
    while len(tokens) > 1 and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1 and len(split(tokens[1:-1], ",")) == 1:
        tokens = tokens[1:-1]
    return tokens


def texts(tokens):
    """Returns what is compared: the texts, without commas before closing brackets, numbers without `_`."""
    kept = []
    for token in tokens:
        if kept and kept[-1] == "," and token.text in CLOSE and token.kind == "op":
            kept.pop()
        kept.append(token.text.replace("_", "") if token.kind == "number" else token.text)
    return tuple(kept)


def may_have_tests(path):
    """Returns whether a file may have tests, by its name."""
    return path.endswith(".rs") or bool(re.search(r"(^|/)(tests?/.*|test_\w+)\.py$", path)) and not path.startswith("tools/")


def is_test_file(path):
    """Returns whether the whole of a Rust file is for tests, by its name."""
    return bool(re.search(r"(^|/)((\w+_)?tests?|fuzz/targets|testing|interop)/|(^|/)(\w+_)?tests?\.rs$", path))


@functools.lru_cache(maxsize=8)
def test_parts(path, text):
    """Returns the tokens of a file that are tests: all, or those of its `#[cfg(test)] mod … { … }`."""
    # What stands before is not looked at: that is most of the code.
    first = re.search(r"^\s*#\[cfg\(test\)\]", text, re.M)
    # Tests without `#[cfg(test)]`: that stands before the `mod` by which another file includes this one.
    if is_test_file(path) or not first and re.search(r"^\s*#\[test\]", text, re.M):
        return tokens_of(text)
    if not first:
        return []
    before = text.count("\n", 0, first.start())
    tokens = [dataclasses.replace(it, line=it.line + before) for it in tokens_of(text[first.start() :])]
    kept, i = [], 0
    while i < len(tokens):
        if [it.text for it in tokens[i : i + 7]] == ["#", "[", "cfg", "(", "test", ")", "]"]:
            i += 7
            while i < len(tokens) and tokens[i].text not in ("{", ";"):
                i += 1
            end = closing(tokens, i) if i < len(tokens) and tokens[i].text == "{" else i
            kept += tokens[i : end + 1]
            i = end
        i += 1
    return kept


def lines_of(text):
    """Returns what two texts are compared by before they are taken apart: their lines without comments, in
    any order."""
    lines = (line.strip() for line in text.splitlines())
    return collections.Counter(line for line in lines if line and not line.startswith("//"))


@functools.lru_cache(maxsize=20_000)
def of_file(path, text):
    """Returns the assertions of a file's tests, in order."""
    return of_python(path, text) if path.endswith(".py") else of_tokens(path, test_parts(path, text))


def of_tokens(path, tokens):
    """Returns the assertions of tokens in Rust, in order."""
    found, function, known_until, attributes = [], "", -1, []

    def add(kind, part, line):
        prefix = KNOWN if i < known_until else ""
        found.append(Assertion(prefix + kind, texts(part), path, function, line))

    for i, token in enumerate(tokens):
        after = [it.text for it in tokens[i + 1 : i + 3]]
        if token.text == "#" and after[:1] == ["["]:
            attributes.append(" ".join(it.text for it in tokens[i + 2 : closing(tokens, i + 1)]))
        # Not the type of a function, which has no name.
        elif token.text == "fn" and token.kind == "name" and after and after[0] != "(":
            function = after[0]
            if "test" in attributes and not any(it.startswith("ignore") for it in attributes):
                add("#[test]", [tokens[i + 1]], token.line)
            for panics in (it for it in attributes if it.startswith("should_panic")):
                add("#[should_panic]", tokens_of(panics)[1:], token.line)
            attributes = []
        elif token.text in ("{", "}", ";"):
            attributes = []
        elif token.text == "known_failure" and after[:1] == ["("]:
            known_until = closing(tokens, i + 1)
        elif token.kind == "name" and after[:1] == ["!"] and len(after) == 2 and after[1] in OPEN:
            inside = tokens[i + 3 : closing(tokens, i + 2)]
            args = split(inside, ",")
            name = token.text
            if name in ONE and args:
                for part in conditions(bare(args[0])):
                    add("assert", bare(part), token.line)
            elif name in TWO and len(args) >= 2:
                comma = Token("op", ",", token.line)
                add(name.removeprefix("prop_"), [*args[0], comma, *args[1]], token.line)
            elif name in WHOLE:
                add(name, inside, token.line)
        elif token.text in ("unwrap_err", "expect_err") and after[:1] == ["("] and tokens[i - 1].text == ".":
            add("is an error", receiver(tokens, i - 1), token.line)
    return found


def conditions(tokens):
    """Returns the conditions of `a && b`, or the one condition that there is."""
    parts = split(tokens, "&&")
    closure = any(it.text in ("|", "||") for it in parts[0][:2]) if parts else False
    return [tokens] if len(split(tokens, "||")) > 1 or closure else parts


def receiver(tokens, dot):
    """Returns the expression that ends before the dot: `f(x).y` of `let z = f(x).y.unwrap_err()`."""
    at, depth = dot, 0
    while at > 0:
        before = tokens[at - 1]
        if before.kind == "op":
            if before.text in CLOSE and not (before.text == "}" and not depth):
                depth += 1
            elif before.text in OPEN and depth:
                depth -= 1
            elif not depth and before.text not in (".", "::", "?", "&"):
                break
        at -= 1
    return tokens[at:dot]


def of_python(path, text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    found = []

    def walk(node, function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Assert):
            parts = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
            for part in parts:
                found.append(Assertion("assert", texts(tokens_of(ast.unparse(part))), path, function, node.lineno))
        for child in ast.iter_child_nodes(node):
            walk(child, function)

    walk(tree, "")
    return found


def is_number(text):
    return text[0].isdigit()


def value(text):
    text = re.sub(r"([iu](8|16|32|64|128|size)|f(32|64))$", "", text) if not text.startswith("0x") else text
    try:
        return float(int(text, 0)) if re.match(r"0[xob]", text) else float(text)
    except ValueError:
        return 0.0


def number_places(tokens):
    """Returns the indexes of the numbers that may be bounds: not those of `x[3]`, nor fields of tuples."""
    def is_index(i):
        if not (0 < i < len(tokens) - 1 and tokens[i - 1] == "[" and tokens[i + 1] == "]" and i > 1):
            return False
        return tokens[i - 2] in (")", "]") or tokens[i - 2][0].isalpha() or tokens[i - 2][0] == "_"

    return [i for i, it in enumerate(tokens) if is_number(it) and not is_index(i) and (i == 0 or tokens[i - 1] != ".")]


def looser_if_larger(tokens, at):
    """Returns whether the assertion holds more often if what stands at `at` grows: True, False, or None if
    that is unknown."""
    sign = True
    before = tokens[at - 1] if at else ""
    after = tokens[at + 1] if at + 1 < len(tokens) else ""
    if after in ("..", "..="):
        return False
    if before in ("..", "..="):
        return True
    ends = {",", ";", "&&", "||", "{", "}", "=>", "=", "|"}
    while True:
        if at and tokens[at - 1] in ("-", "/"):
            sign = not sign
        for step, relations in ((-1, {"<": True, "<=": True, ">": False, ">=": False}), (1, {"<": False, "<=": False, ">": True, ">=": True})):
            i, depth = at + step, 0
            while 0 <= i < len(tokens):
                it = tokens[i]
                inward = it in (OPEN if step > 0 else CLOSE)
                outward = it in (CLOSE if step > 0 else OPEN)
                if outward and not depth:
                    break
                depth += inward - outward
                if not depth and it in ends:
                    break
                if not depth and it in relations:
                    return None if unsure(tokens, at) else relations[it] == sign
                i += step
        # Not in these brackets: how does the expression around them stand?
        depth, i = 0, at - 1
        while i >= 0 and not (tokens[i] in OPEN and not depth):
            depth += (tokens[i] in CLOSE) - (tokens[i] in OPEN)
            i -= 1
        if i < 0:
            return None
        at = i
        # A function that is called is part of the expression.
        while at and (tokens[at - 1] in (".", "::") or re.match(r"\w", tokens[at - 1])):
            at -= 1


def unsure(tokens, at):
    """Returns whether no direction can be trusted here: a negation, a distance, or a closure that is not of `all`."""
    depth = 0
    if any(it in ("abs", "abs_diff") for it in tokens[at:]) and not (at and tokens[at - 1] in RELATIONS):
        return True
    for i in range(at - 1, -1, -1):
        if tokens[i] in CLOSE:
            depth += 1
        elif tokens[i] in OPEN:
            if depth:
                depth -= 1
            else:
                name = tokens[i - 1] if i else ""
                if name == "!" or "|" in tokens[i + 1 : i + 2] and name != "all" or name.startswith(("filter", "any", "position")):
                    return True
        elif tokens[i] == "!" and not depth and i + 1 < len(tokens) and tokens[i + 1] == "(":
            return True
    return False


def direction(old, new, old_places, new_places):
    """Returns "loosened", "changed" or "" (tightened or the same) of numbers that stand at the same places."""
    verdicts = set()
    for i, j in zip(old_places, new_places):
        was, now = value(old[i]), value(new[j])
        if was != now:
            larger = looser_if_larger(old, i)
            verdicts.add("changed" if larger is None else "loosened" if larger == (now > was) else "")
    return "loosened" if "loosened" in verdicts else "changed" if "changed" in verdicts else ""


def change(old, new):
    """Returns what became of an assertion: "loosened", "changed", or "" if it holds no more often than before."""
    if new.kind.startswith(KNOWN) and not old.kind.startswith(KNOWN):
        return "a known failure now"
    if old.kind == "#[test]" == new.kind:
        return ""
    places, new_places = number_places(old.tokens), number_places(new.tokens)
    relations, new_relations = ([it for it in side.tokens if it in RELATIONS] for side in (old, new))
    equal = old.kind.endswith(("assert_eq", "assert_ne")) or "==" in old.tokens
    new_equal = new.kind.endswith(("assert_eq", "assert_ne")) or "==" in new.tokens
    if equal and not new_equal and new_relations:
        return "loosened"
    if new.tokens.count("||") > old.tokens.count("||") or new.tokens.count("|") > old.tokens.count("|") and "matches" in old.tokens:
        return "loosened"
    if len(places) == len(new_places) and len(relations) == len(new_relations):
        if relations != new_relations:
            strict = [it.replace("=", "") for it in relations] == [it.replace("=", "") for it in new_relations]
            looser = strict and any(it + "=" == now for it, now in zip(relations, new_relations))
            if not strict or looser:
                return "loosened" if looser else "changed"
        return direction(old.tokens, new.tokens, places, new_places)
    if new_equal and not equal:
        # An exact value instead of a bound.
        return ""
    if relations == new_relations and places:
        # A helper with one argument more: all numbers of before are there, in their order.
        rest = iter([new.tokens[j] for j in new_places])
        if all(old.tokens[i] in rest for i in places):
            return ""
    return "changed"


@functools.lru_cache(maxsize=20_000)
def constants(path, text):
    """Returns constants and simple variables of tests, by function ("" for constants) and name: the tokens
    of their values."""
    found, function = {}, ""
    tokens = test_parts(path, text)
    for i, token in enumerate(tokens):
        if token.text == "fn" and i + 1 < len(tokens) and tokens[i + 1].text != "(":
            function = tokens[i + 1].text
        if token.text not in ("const", "let") or token.kind != "name":
            continue
        at = i + 1 + (tokens[i + 1].text == "mut")
        # A table of bounds is long; what else is long is no bound.
        most = 4000 if BOUND_NAME.search(tokens[at].text) else 40
        part = split(tokens[at : at + most], ";")[:1]
        sides = split(part[0], "=") if part else []
        if len(sides) == 2 and sides[0][0].kind == "name" and len(sides[1]) <= max(24, most - 40) and any(it.kind == "number" for it in sides[1]):
            found["" if token.text == "const" else function, sides[0][0].text] = (texts(sides[1]), token.line)
    return found


def bounds(path, old_text, new_text):
    """Returns the constants that assertions compare with and that are looser now, a line each."""
    if path.endswith(".py"):
        return []
    old, new = constants(path, old_text), constants(path, new_text)
    assertions, lines = of_file(path, new_text), []
    for (function, name), (was, line) in old.items():
        now = new.get((function, name), (was, 0))[0]
        if was == now:
            continue
        directions = {
            looser_if_larger(it.tokens, i)
            for it in assertions
            for i, token in enumerate(it.tokens)
            if token == name and function in ("", it.function)
        }
        places, new_places = number_places(was), number_places(now)
        verdict = ""
        if len(places) == len(new_places) and len(directions - {None}) == 1:
            larger = (directions - {None}).pop()
            grew = {value(now[j]) > value(was[i]) for i, j in zip(places, new_places) if value(now[j]) != value(was[i])}
            verdict = "loosened" if larger in grew else ""
        elif directions - {None} or BOUND_NAME.search(name):
            verdict = "changed"
        if verdict:
            lines.append(f"{path}:{line} in {function or 'all tests'}: {verdict}: `{name} = {pretty(was)}` is `{pretty(now)}` now")
    return lines
