"""Helpers of tests that compare an argument in an assertion, and the numbers that tests give them: a bound that is
loosened there stands in no assertion. One is `fn rises(share: f64, least: f64) { assert!(share > least) }`.

A helper is a function, or a closure with a name, of the same file. Numbers of a call are compared with those of the
call of before if nothing else in it differs.
"""

import collections
import functools

from rust_assertions import CLOSE, OPEN, closing, is_number, looser_if_larger, of_tokens, pretty, split, test_parts, texts, value


def names_of(parameters):
    """Returns the names of parameters; of `self` none, and "" of a pattern."""
    parts = [[it for it in part if it.text not in ("mut", "&")] for part in split(parameters, ",")]
    names = [part[0].text if len(part) < 2 or part[1].text == ":" else "" for part in parts if part]
    return names[1:] if names[:1] == ["self"] else names


def bodies(tokens):
    """Yields functions and closures with a name: that, the names of the parameters, and the body."""
    for i, token in enumerate(tokens):
        if token.kind != "name" or token.text not in ("fn", "let"):
            continue
        if token.text == "fn" and i + 1 < len(tokens) and tokens[i + 1].kind == "name":
            # Not the brackets of `<F: Fn(u32)>`.
            at, angle = i + 2, 0
            while at < len(tokens) and (angle or tokens[at].text != "(") and tokens[at].text not in ("{", ";"):
                angle += (tokens[at].text == "<") - (tokens[at].text == ">")
                at += 1
            if at == len(tokens) or tokens[at].text != "(":
                continue
            end = closing(tokens, at)
            start = next((j for j in range(end, len(tokens)) if tokens[j].text in ("{", ";")), end)
            if tokens[start].text == "{":
                yield tokens[i + 1].text, names_of(tokens[at + 1 : end]), tokens[start : closing(tokens, start) + 1]
        elif [it.text for it in tokens[i + 2 : i + 4]] == ["=", "|"]:
            end = next((j for j in range(i + 4, len(tokens)) if tokens[j].text == "|"), i + 4)
            stop, depth = end + 1, 0
            while stop < len(tokens) and (depth or tokens[stop].text != ";"):
                depth += (tokens[stop].text in OPEN) - (tokens[stop].text in CLOSE)
                stop += 1
            yield tokens[i + 1].text, names_of(tokens[i + 4 : end]), tokens[end + 1 : stop]


def as_value(name, tokens):
    """Returns the places where a name is a value as a whole: nothing of it is called or taken."""
    return [i for i, it in enumerate(tokens) if it == name and tokens[i + 1 : i + 2] not in (("(",), (".",), ("[",))]


@functools.lru_cache(maxsize=20_000)
def helpers(path, text):
    """Returns functions that compare an argument in an assertion: {name: {place of the argument: directions
    in which that is looser}}, as `looser_if_larger` has them."""
    found = {}
    for name, parameters, body in bodies(test_parts(path, text)):
        assertions = of_tokens(path, body)
        places = {}
        for place, parameter in enumerate(parameters):
            directions = {looser_if_larger(it.tokens, i) for it in assertions for i in as_value(parameter, it.tokens)}
            if parameter and directions:
                places[place] = directions
        if places:
            found[name] = places
    return found


@functools.lru_cache(maxsize=20_000)
def calls(path, text):
    """Returns the calls of functions, by the function that they are in and their name: tuples of the texts of each
    argument, and lines."""
    found, function = collections.defaultdict(list), ""
    tokens = test_parts(path, text)
    for i, token in enumerate(tokens[:-1]):
        if token.text == "fn" and tokens[i + 1].kind == "name":
            function = tokens[i + 1].text
        if token.kind == "name" and tokens[i + 1].text == "(" and (not i or tokens[i - 1].text != "fn"):
            arguments = split(tokens[i + 2 : closing(tokens, i + 1)], ",")
            found[function, token.text].append((tuple(texts(it) for it in arguments), token.line))
    return found


def blank(arguments):
    """Returns the arguments of a call without its numbers."""
    return tuple("0" if is_number(it) else it for part in arguments for it in (*part, ","))


def bounds(path, old_text, new_text):
    """Returns the numbers that are given to helpers and are looser now, a line each. Where a helper has no direction
    for one, as of `assert_eq!`, each change is told."""
    if path.endswith(".py"):
        return []
    old_helpers, new_helpers = helpers(path, old_text), helpers(path, new_text)
    old, new, lines = calls(path, old_text), calls(path, new_text), []
    for (function, name), were in old.items():
        places = old_helpers.get(name) if old_helpers.get(name) == new_helpers.get(name) else None
        if not places:
            continue
        are = list(new.get((function, name), []))
        left = []
        # What is the same stands for itself; the rest in order, if it differs in numbers alone.
        for arguments, line in were:
            same = next((it for it in are if it[0] == arguments), None)
            are.remove(same) if same else left.append((arguments, line))
        for arguments, line in left:
            now = next((it for it in are if blank(it[0]) == blank(arguments)), None)
            if not now:
                continue
            are.remove(now)
            for place, directions in places.items():
                if place >= len(arguments) or not (verdict := change(arguments[place], now[0][place], directions - {None})):
                    continue
                lines.append(
                    f"{path}:{line} in {function or 'no function'}: {verdict}: `{pretty(arguments[place])}`, "
                    f"which `{name}` compares in an assertion, is `{pretty(now[0][place])}` now")
    return lines


def change(was, now, directions):
    """Returns "loosened", "changed" or "" of an argument whose numbers differ at most."""
    pairs = [(value(before), value(after)) for before, after in zip(was, now) if is_number(before)]
    grew = {after > before for before, after in pairs if after != before}
    if len(directions) != 1:
        return "changed" if grew else ""
    return "loosened" if directions & grew else ""
