#!/usr/bin/env python3
"""Checks the prose of the project against docs/style.md: comments, texts that people read, documents.

  tools/prose.py                 the whole tree; fails with file, line, what is wrong and what to write instead
  tools/prose.py FILE...         these files (or folders) only
  tools/prose.py --changed BASE  the lines that were added since BASE
  tools/prose.py --count         a number for each rule
  tools/prose.py --self-test     sentences that must be found, and sentences that must not

A line for which a rule is wrong stands in a file of tools/prose-exceptions/: `file: words of the line`.
"""
import ast, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / 'tools/prose-exceptions'
WIDEST = 120  # columns of a line of comment
LONGEST = 40  # words of a sentence in a document

# Name, what is wrong, what to write instead. Case does not matter.
WORDS = [
    ('sound', r'\bsounds?\b(?! (like|of a)\b)', 'audio'),
    ('picture', r'(?<!field )(?<!coded )(?<!group of )(?<!groups of )\bpictures?\b'
                r'(?! (parameter|order|header|type|timing|start|group|coding|structure|element|rate)|_|-)', 'frame, or video'),
    ('way', r'\b(each|both|either|other|far|quick(er|est)?|short(er)?|long(er)?|whole|its|their|delay of the) ways?\b(?! (of|to|that|in which|round)\b)(?!-)'
            r'|\bways? (back|there and back|of \d)|\bon the way\b', 'path, direction, one-way delay, or in flight'),
    ('give up', r'\b(give|gives|giving|gave|given) (it |them |that |this )?up\b', 'discard, abandon; stop trying'),
    ('of use', r'\bof (no|any|some) (more )?use\b|\bno use any more\b', 'discarded, abandoned; useful, useless'),
    ('die', r'\b(die|dies|died|dying)\b', 'ends, fails, is abandoned'),
    ('mend', r'\bmend(s|ed|ing)?\b', 'fix, repair'),
    ('happening', r'\bhappenings?\b(?<!is happening)(?<!are happening)(?<!was happening)', 'event'),
    ('fate', r'\bfates?\b', 'result, outcome of a packet'),
    ('gives', r'^\s*(Gives|Tells)\b|\btells\b(?! apart)', 'returns, reports, says'),
    ('least', r'\bthe (least|most)(?= (that|which|it|they|there|a|an|of|one|what|so|\d)\b|[.,;:)]|$)', 'at least, at most, minimum, maximum'),
    ('such as', r'\bsuch as\b', 'for example, or name them all'),
    ('where', r'(^|[.;] )Where (?![^.?]*\?)[^.]*,', 'if, when'),
    ('should', r'(^|[.;,:] )[Ss]hould (the|a|an|it|one|this|that|there|no|any|its|either|both|all|he|she|they|we|you)\b', 'if'),
    ('leans on', r'\b(lean|leans|leaned|leaning) (up)?on\b', 'needs, references, depends on'),
    ('so many', r'\b(at|in|for|after|with|by|of|within|before|than|to|from|beyond|until|behind|has|have|had|takes?|took|comes?|every) so (many|much|long|large|few|often|far)\b(?! (as|that)\b)'
                r'|\bso (many|much) times\b|(^|[.;:] )So (many|much|long|often|large) (of|times|after|before|bytes|packets|rounds|is|are|may|must|can|at)\b', 'a number, a share, this long; or name the quantity'),
]
# Rules that are for comments only: in a page a flag may well give a result, and a text of one line may ask where.
NOT_IN = {'markdown': ('gives',), 'string': ('where', 'should')}
# Only of doc comments of Rust.
DOCS = [
    ('whether', r'^\s*Whether\b', 'Returns `true` if …; of a field: `true` if …'),
    ('hidden result', r'; (whether|how many|how much|how long)\b', 'begin with what is returned: Returns …'),
]
NAMES = [rule[0] for rule in WORDS + DOCS] + ['wide comment', 'long sentence']
COMPILED = [(name, re.compile(pattern, re.I if name not in ('where', 'should', 'so many', 'gives') else 0), instead) for name, pattern, instead in WORDS]
COMPILED_DOCS = [(name, re.compile(pattern), instead) for name, pattern, instead in DOCS]

# Texts of others, generated pages, and what is data.
SKIPPED = re.compile(r'^(LICENSE|crates/[^/]+/tests/snapshots/|docs/requirements/|docs/(style|reference)\.md|tools/prose|fuzz/seeds|interop/programs/|.*\.lock$|.*\.snap$)')


def without_code(text):
    """The text with code in backticks, placeholders, addresses and link targets replaced by underscores."""
    blank = lambda m: '_' * len(m.group(0))
    return re.sub(r'`[^`]*`|\{\w[^{}]*\}|https?://\S+|\]\([^)]*\)', blank, text)


# Rust's tokens that matter here: comments, strings (raw ones too), characters.
RUST = re.compile(r'''(?P<comment>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<raw>b?r(?P<hash>\#*)".*?"(?P=hash))|(?P<string>b?"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\\n])')''', re.S)


def rust(source):
    """Yields (line, text, kind): kind is 'doc', 'comment' or 'string'."""
    line, last = 1, 0
    for m in RUST.finditer(source):
        line += source.count('\n', last, m.start())
        last = m.start()
        text = m.group(0)
        if m.lastgroup == 'comment' or text.startswith('//'):
            kind = 'doc' if re.match(r'//[/!](?!/)', text) else 'comment'
            yield line, re.sub(r'^//[/!]?', '', text), kind
        elif text.startswith('/*'):
            for n, part in enumerate(text.split('\n')):
                yield line + n, part, 'comment'
        elif m.group('char') is None and text.count(' ') >= 2 and not text.startswith('b'):
            for n, part in enumerate(text.split('\n')):
                yield line + n, part.strip('"'), 'string'


def hashed(source):
    """Comments of shell, Python, TOML and make, and texts of TOML."""
    quoted = None
    for n, text in enumerate(source.split('\n'), 1):
        if text.startswith('#!'):
            continue
        m = re.match(r'^\s*#+ ?(.*)$', text) or re.match(r'^[^"\'`$]*\s# (.*)$', text)
        if m:
            yield n, m.group(1), 'comment'
        elif (m := re.match(r'^\s*(text|title|why|reason|note|choices?|claim)\s*=\s*("+)(.*)$', text)):
            yield n, m.group(3), 'string'
            quoted = m.group(2) if len(m.group(2)) == 3 and not text.rstrip().endswith('"""') else None
        elif quoted:
            yield n, text, 'string'
            quoted = None if '"""' in text else quoted


def python(source):
    """Comments and docstrings of Python."""
    yield from hashed(source)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            for n, text in enumerate(source.split('\n')[first.lineno - 1 : first.end_lineno], first.lineno):
                # Columns and commands are as wide as they are.
                aligned = re.search(r'\S  +\S|^usage:|^\s*\S+\.(py|sh) |^ {4,}(async )?(with|for|def) ', text)
                yield n, text.replace('"""', ''), 'string' if aligned else 'comment'


def markdown(source):
    fence = False
    for n, text in enumerate(source.split('\n'), 1):
        if text.lstrip().startswith('```'):
            fence = not fence
        elif not fence and not text.startswith('<!--'):
            yield n, text, 'markdown'


def sentences(source):
    """Yields (line, sentence) of a page's paragraphs and cells."""
    fence, start, words = False, 0, []

    def cut():
        for sentence in re.split(r'(?<=[.!?:;])["”)]?\s+(?=[A-Z`*(\[“0-9-])', ' '.join(words)):
            yield start, sentence

    for n, text in enumerate(source.split('\n') + [''], 1):
        if text.lstrip().startswith('```'):
            fence = not fence
            text = ''
        if fence:
            continue
        if not text.strip() or re.match(r'^\s*([-*|#>]|\d+\. )', text):
            yield from cut()
            words = []
        if text.lstrip().startswith('|'):
            for cell in text.strip().strip('|').split(' | '):
                for sentence in re.split(r'(?<=[.!?:;])\s+(?=[A-Z`*(\[0-9-])', cell):
                    yield n, sentence
        elif text.strip():
            if not words:
                start = n
            words.append(text.strip())


class Prose:
    def __init__(self):
        self.excepted = {}
        for line in '\n'.join(page.read_text() for page in sorted(EXCEPTIONS.glob('*.txt'))).splitlines():
            if line.strip() and not line.startswith('#'):
                file, _, words = line.partition(': ')
                self.excepted.setdefault(file, []).append(words.strip())
        self.used = set()

    def found(self, file, source):
        """Yields (line, rule, words, instead)."""
        lines = source.split('\n')
        parts = {'.rs': rust, '.c': rust, '.h': rust, '.hpp': rust, '.js': rust, '.md': markdown, '.py': python, '.pyi': python}.get(pathlib.Path(file).suffix, hashed)(source)
        for n, text, kind in parts:
            plain = without_code(text)
            rules = COMPILED + (COMPILED_DOCS if kind == 'doc' else [])
            for name, pattern, instead in rules:
                if name in NOT_IN.get(kind, ()):
                    continue
                if m := pattern.search(plain.strip() if name in ('where', 'should', 'so many') else plain):
                    if not self.is_excepted(file, lines[n - 1]):
                        yield n, name, m.group(0).strip(' .;'), instead
            if kind in ('doc', 'comment') and len(lines[n - 1]) > WIDEST and not re.match(r'^\s*(\||\S*://|[─│])', text) and '──' not in text:
                if not self.is_excepted(file, lines[n - 1]):
                    yield n, 'wide comment', f'{len(lines[n - 1])} columns', f'at most {WIDEST}; wrap at 100'
        if file.endswith('.md') and not re.match(r'CHANGELOG|docs/(reference|decisions/)', file):
            for n, sentence in sentences(source):
                count = len([w for w in without_code(sentence).split() if re.search(r'\w', w)])
                if count > LONGEST and not self.is_excepted(file, sentence):
                    yield n, 'long sentence', f'{count} words: {sentence[:60]}…', f'at most {LONGEST} words: one thought a sentence'

    def is_excepted(self, file, line):
        for words in self.excepted.get(file, ()):
            if words in line:
                self.used.add((file, words))
                return True
        return False

    def unused(self):
        return [(file, words) for file, all_words in self.excepted.items() for words in all_words if (file, words) not in self.used]


def files(names):
    listed = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', *names], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split('\n')
    wanted = re.compile(r'(\.(rs|md|py|pyi|sh|toml|c|h|hpp|js)|Makefile|\.ci/run)$')
    return [f for f in listed if wanted.search(f) and not SKIPPED.match(f) and (ROOT / f).is_file()]


def added(base):
    """The lines that were added since `base`: {file: numbers}."""
    out, file = {}, None
    for line in subprocess.run(['git', 'diff', '-U0', base], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split('\n'):
        if line.startswith('+++ '):
            file = line[6:] if line.startswith('+++ b/') else None
        elif file and (m := re.match(r'^@@ -\S+ \+(\d+)(?:,(\d+))? @@', line)):
            out.setdefault(file, set()).update(range(int(m.group(1)), int(m.group(1)) + int(m.group(2) or 1)))
    return out


FOUND = [
    ('a.rs', '// A picture comes late.\n', 'picture'), ('a.rs', '/// The fate of a packet.\n', 'fate'), ('a.rs', '/// Whether it is.\n', 'whether'),
    ('a.rs', 'let x = "we mend the link";\n', 'mend'), ('a.md', 'Others lean on it.\n', 'leans on'), ('a.rs', '// ' + 'x ' * 70 + '\n', 'wide comment'),
    ('a.md', 'It ' + 'is and ' * 30 + 'so.\n', 'long sentence'), ('a.py', 'x = 1\n# It tells more.\n', 'gives'), ('a.py', 'def f():\n    """The fate of a packet."""\n', 'fate'),
    ('a.py', 'def f():\n    """' + 'x ' * 70 + '"""\n', 'wide comment'), ('a.js', '// A path that died.\n', 'die'), ('a.md', 'Where it fails, try again.\n', 'where'),
    ('a.rs', '/// Takes it; whether there was one.\n', 'hidden result'), ('a.md', 'It leaves after so many rounds.\n', 'so many'), ('a.md', 'It waits on the way back.\n', 'way'),
    ('a.toml', 'text = "sound first"\n', 'sound'), ('a.md', 'Should the path fail, it waits.\n', 'should'),
]
FINE = [
    ('a.rs', 'let fate = picture.sound();\n'), ('a.md', 'Set `--picture` to `sound`.\n'), ('a.rs', '/// Returns `true` if it is.\n'), ('a.md', 'The group of pictures and its field pictures.\n'),
    ('a.md', 'It works in the same way.\n'), ('a.rs', '// ' + 'x ' * 50 + '\n'), ('a.md', '```\nthe fate of a picture\n```\n'), ('a.md', 'The most important one goes first.\n'), ('a.md', 'Where is it?\n'), ('a.rs', '/// Where it runs.\n'), ('a.rs', '// The same seed gives the same bytes.\n'),
]


def self_test():
    prose, failed = Prose(), 0
    for file, text, rule in FOUND:
        rules = [found[1] for found in prose.found(file, text)]
        if rule not in rules:
            print(f'self-test: {rule} not found in {text!r}')
            failed += 1
    for file, text in FINE:
        for found in prose.found(file, text):
            print(f'self-test: {found[1]} found in {text!r}')
            failed += 1
    return failed


def main(arguments):
    if self_test():
        return 1
    if '--self-test' in arguments:
        return 0
    only = None
    if '--changed' in arguments:
        only = added(arguments[arguments.index('--changed') + 1])
        names = list(only)
        if not names:
            return 0
    else:
        names = [a for a in arguments if not a.startswith('--')]
    prose, counts = Prose(), dict.fromkeys(NAMES, 0)
    for file in files(names):
        for n, rule, words, instead in prose.found(file, (ROOT / file).read_text()):
            if only is not None and n not in only.get(file, ()):
                continue
            counts[rule] += 1
            if '--count' not in arguments:
                print(f'{file}:{n}: {rule}: "{words}": write {instead}')
    if '--count' in arguments:
        for rule, count in counts.items():
            print(f'{count:6} {rule}')
    total = sum(counts.values())
    if not names and only is None:
        for file, words in prose.unused():
            print(f'tools/prose-exceptions: no line of {file} needs "{words}": take it out')
            total += 1
    if total and '--count' not in arguments:
        print(f'prose: {total} lines against docs/style.md. Write them as it says; a line for which a rule is wrong goes into tools/prose-exceptions/', file=sys.stderr)
    return 1 if total else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
