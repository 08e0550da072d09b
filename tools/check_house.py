#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_house.py [--format]: does the tree keep the rules of docs/house.md?

Reads the tables of floors and libraries from that page, so that the picture people look at is the rule itself. Each
check below yields (file, line, sentence); any of them makes the exit status 1. --format lets clang-format rewrite
the sources instead. Standard library only; the compilers are $CC and $CXX, or cc and c++.
"""
import fnmatch
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BELOW_THE_DOOR = ("base", "kernels", "engine", "encodings", "api")
C_LIBRARY = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split())
ALLOCATORS = "malloc calloc realloc aligned_alloc posix_memalign strdup".split()
CLANG_FORMAT = 14
COLUMNS = 110
MOST_FILES = 30
MOST_FUNCTIONS, MOST_ARGUMENTS = 40, 6  # of posenc.h, of a public function


def sources(*folders):
    """Paths relative to the root of all C files below the folders."""
    return sorted(p.relative_to(ROOT).as_posix() for folder in folders for p in (ROOT / folder).rglob("*")
                  if p.suffix in (".c", ".cpp", ".h", ".inc", ".def"))


def lines(path):
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def table(kind):
    """The rows of the fenced block ```kind of docs/house.md: first word -> the other words."""
    block = re.search(rf"^```{kind}\n(.*?)^```", (ROOT / "docs/house.md").read_text(), re.M | re.S)
    if not block:
        sys.exit(f"check_house: docs/house.md has no block ```{kind}")
    return {words[0]: words[1:] for words in map(str.split, block[1].splitlines()) if words}


def short(path):
    """src/base/half.h -> base/half.h: the name by which it is included; cli and examples keep theirs."""
    return re.sub(r"^(src|include)/", "", path)


def floor_of(name, floors):
    """The floor in whose folder a file lies; the innermost where floors lie in each other."""
    return max((f for f in floors if name == f or name.startswith(f + "/")), key=len, default=None)


def parts_of(floor, floors):
    return [f for f in floors if f.startswith(floor + "/")]


def matches(name, items):
    """Is a header one of the items: a folder, a file, a pattern; !item takes back."""
    hit = lambda item: name == item or name.startswith(item + "/") or fnmatch.fnmatch(name, item)
    return any(hit(i) for i in items if i[0] != "!") and not any(hit(i[1:]) for i in items if i[0] == "!")


def includes(path):
    """(line, name, is_ours) of every #include; a name of the same folder gets its folder in front."""
    for number, line in enumerate(lines(path), 1):
        found = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if found:
            beside = (Path(path).parent / found[1]).as_posix()
            name = short(beside) if "/" not in found[1] and (ROOT / beside).exists() else found[1]
            yield number, name, any((ROOT / folder / name).exists() for folder in ("src", "include", "."))


def check_table():
    floors, known = table("floors"), {"posenc"}
    for floor, items in floors.items():
        for item in (i.lstrip("!") for i in items):
            if (floor_of(item, floors) or item.split("/")[0]) not in known:
                yield "docs/house.md", 1, f"floor {floor} names {item}, which no row above it describes"
        known.add(floor)


@functools.lru_cache
def rooms():
    rows = (ROOT / "src/encodings/encodings.def").read_text(encoding="utf-8")
    return {f"encodings/{place}/{room}"
            for place, room in re.findall(r"^\s*ENCODING\(\s*(\w+)\s*,\s*(\w+)", rows, re.M)}


def room_of(path):
    """encodings/score/swin_maps.c -> encodings/score/swin: parts of a room begin with the name of its row."""
    stem = re.sub(r"\.\w+$", "", short(path))
    while stem not in rooms() and "_" in stem:
        stem = stem.rpartition("_")[0]
    return stem if stem in rooms() else None


def is_own(name, floor, floors):
    """Is a header of the floor itself? A floor that is divided sees of its parts only what its row names."""
    return name.rpartition("/")[0] == floor if parts_of(floor, floors) else name.startswith(floor + "/")


def check_includes():
    floors, libraries = table("floors"), table("libraries")
    for path in sources("src", "cli", "examples", "python"):
        folder = short(path).rpartition("/")[0]
        floor = floor_of(folder, floors)
        if floor is None or (floor != folder and parts_of(floor, floors)):
            yield path, 1, f"its folder {folder} is no floor of docs/house.md"
            continue
        for number, name, is_ours in includes(path):
            if re.match(r"encodings/\w+/", name) and (not name.endswith(".h") or room_of(name) is None
                                                       or room_of(name) != room_of(path)):
                yield path, number, f"includes the room {name}; what rooms share belongs to a floor below"
            elif is_ours and not is_own(name, floor, floors) and not matches(name, floors[floor]):
                yield path, number, f"includes {name}, which the floor {floor} may not see (docs/house.md)"
            elif not is_ours and name in libraries and not matches(short(path), libraries[name]):
                yield path, number, f"includes {name}, which belongs to {' '.join(libraries[name])} only"
            elif not is_ours and floor.split("/")[0] in BELOW_THE_DOOR and name not in libraries \
                    and name[:-2] not in C_LIBRARY:
                yield path, number, f"includes {name}, which is not the C library's; the core needs nothing else"


def circle_in(graph):
    """A list of names, each of which leads to the next and the last is the first; None where there is none."""
    done, trail = set(), []

    def visit(name):
        if name in trail:
            return trail[trail.index(name):] + [name]
        if name in done:
            return None
        trail.append(name)
        circle = next(filter(None, map(visit, sorted(graph.get(name, ())))), None)
        trail.pop()
        done.add(name)
        return circle
    return next(filter(None, map(visit, graph)), None)


def check_circles():
    circle = circle_in({short(p): [n for _, n, ours in includes(p) if ours] for p in sources("src", "include", "cli")})
    if circle:
        yield circle[0], 1, "a circle of includes: " + " -> ".join(circle)


def code(path):
    """A source without comments, strings and preprocessor lines."""
    text = (ROOT / path).read_text(encoding="utf-8")
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def check_calls():
    """No circle of calls between files. Functions of one name in several files, one for each instruction set, lead
    nowhere; neither does a name that is static in a header, nor an allocator, which is the C library's whoever stands
    before it."""
    text = {p: code(p) for p in sources("src", "cli") if p[-4:] != ".def"}
    head = r"^(static )?[A-Za-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\s*\{"
    found = [(m[2], p, bool(m[1])) for p in text for m in re.finditer(head, text[p], re.M)]
    static = {name for name, path, is_static in found if is_static and path.endswith(".h")}
    home = {}
    for name, path, is_static in found:
        if not is_static and name not in static and name not in ALLOCATORS:
            home[name] = None if name in home else path
    graph, why = {}, {}
    for path in text:
        own = {name for name, p, _ in found if p == path}
        for name in set(re.findall(r"(?<![.>\w])(\w+)\s*\(", text[path])) - own if not path.endswith(".h") else ():
            if home.get(name) and home[name] != path:
                graph.setdefault(path, set()).add(home[name])
                why[path, home[name]] = name
    circle = circle_in(graph)
    if circle:
        steps = (f"{a} calls {why[a, b]}" for a, b in zip(circle, circle[1:]))
        yield circle[0], 1, "a circle of calls: " + ", ".join(steps)


def check_structs():
    """No two structs of one name: a reader who looks for one must find it."""
    homes = {}
    for path in sources("src", "cli"):
        for number, line in enumerate(lines(path), 1):
            match = re.match(r"(?:typedef )?struct (\w+) {", line)
            if match and homes.setdefault(match[1], path) != path:
                yield path, number, f"struct {match[1]} is also in {homes[match[1]]}"


def check_extensions():
    """C17 and no more, but for base and kernels; of the public headers, what marks a symbol as public."""
    word = re.compile(r"\b(__attribute__|__builtin_\w+|__asm__|asm|__extension__|__typeof__|typeof|__int128|__thread)\b")
    for path in sources("src", "cli", "examples", "include"):
        if floor_of(short(path), ("base", "kernels")):
            continue
        text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: "\n" * m[0].count("\n"), "\n".join(lines(path)),
                      flags=re.S)
        for number, line in enumerate(text.split("\n"), 1):
            match = word.search(line)
            if match and not line.startswith("#define POSENC_API "):
                yield path, number, f"{match[1]} is no C; base/shared/compiler.h has a name for it, or needs one"


def check_folders():
    files = [p for top in ("src", "cli", "include") for p in (ROOT / top).rglob("*") if p.is_file()]
    for folder in sorted({p.parent for p in files}):
        count = sum(p.parent == folder for p in files)
        if count > MOST_FILES:
            name = folder.relative_to(ROOT).as_posix()
            yield name, 1, f"{count} files; a folder has at most {MOST_FILES} of its own, so make floors in it"


def check_memory():
    for path in sources(*(f"src/{floor}" for floor in BELOW_THE_DOOR)):
        candidate = function = ""
        for number, line in enumerate(lines(path), 1):
            head = re.match(r"[A-Za-z_][^;=]*?\b(\w+)\(", line)
            candidate = head[1] if head else candidate
            function = candidate if line == "{" else "" if line.startswith("}") else function
            call = re.search(rf"\b({'|'.join(ALLOCATORS)})\s*\(", line)
            if call and function and not function.endswith("_create"):
                yield path, number, f"{call[1]} in {function}(); only functions named *_create take memory"


def check_rooms():
    for path in sources("src/encodings"):
        if not re.match(r"src/encodings/\w+/\w+\.c$", path):
            continue
        if room_of(path) not in (None, short(path)[:-2]):
            continue  # a part of a room, whose head comment is that of the room's own file
        head = "\n".join(lines(path)).split("*/")[1:2]
        for word in ("Place", "Formula", "Learns", "Source"):
            if not re.search(rf"^ \* {word}\s+\S", head[0] if head else "", re.M):
                yield path, 1, f"the head comment of this room lacks the line `{word}`"


def check_words():
    for path in sources("include", "src", "cli", "examples", "python", "tests"):
        text = lines(path)
        if not path.endswith(".def") and (not text or text[0] != "/* SPDX-License-Identifier: MIT */"):
            yield path, 1, "the first line is not /* SPDX-License-Identifier: MIT */"
        for number, line in enumerate(text, 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                yield path, number, "work left for later; do it now, or open an issue and name it"
            if len(line) > COLUMNS:
                yield path, number, f"{len(line)} columns; lines end at {COLUMNS}"


C_WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef".split()
CXX_WARNINGS = [*C_WARNINGS, "-Wold-style-cast", "-Wzero-as-null-pointer-constant"]
CLANG_WARNINGS = ["-Weverything", "-Wno-padded", "-Wno-c++98-compat-pedantic"]


def complaint(compiler, standard, warnings, headers):
    """What a compiler says of a file that includes the headers, a warning being an error; "" if nothing."""
    command = [*compiler.split(), "-x", "c++" if "++" in standard else "c", f"-std={standard}", *warnings, "-Werror",
               "-fsyntax-only", "-I", "include", "-"]
    text = "".join(f"#include <{short(header)}>\n" for header in headers)
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=text)
    return result.stderr or "it stops" if result.returncode else ""


def check_headers():
    """Each header alone as the oldest C and C++ that are promised, and all of them as others and by another compiler."""
    cc, cxx = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
    headers = sources("include")
    bad = False
    for header in headers:
        for compiler, standard, warnings in ((cc, "c99", C_WARNINGS), (cxx, "c++11", CXX_WARNINGS)):
            said = "" if bad else complaint(compiler, standard, warnings, [header])
            if said:
                bad = True
                yield header, 1, f"does not compile alone as {standard}:\n{said}"
    runs = [(cc, "c17", C_WARNINGS), (cxx, "c++20", CXX_WARNINGS)]
    if shutil.which("clang"):
        runs += [("clang", standard, CLANG_WARNINGS) for standard in ("c99", "c17", "c++11", "c++20")]
    for compiler, standard, warnings in runs:
        said = "" if bad else complaint(compiler, standard, warnings, headers)
        if said:
            bad = True
            yield "include/posenc", 1, f"the headers do not compile as {standard} ({compiler}):\n{said}"


def check_functions():
    for header in sources("include"):
        text = (ROOT / header).read_text(encoding="utf-8")
        found = list(re.finditer(r"^(?:POSENC_API|static inline)\s[^;{(]*?(posenc_\w+)\(([^)]*)\)", text, re.M))
        for f in found:
            if f[2].count(",") >= MOST_ARGUMENTS:
                number = text[:f.start()].count("\n") + 1
                yield header, number, f"{f[1]} takes {f[2].count(',') + 1} arguments; at most {MOST_ARGUMENTS}"
        if header.endswith("/posenc.h") and len(found) > MOST_FUNCTIONS:
            yield header, 1, f"{len(found)} functions; at most {MOST_FUNCTIONS}, others belong to the headers beside it"


def clang_format(*options):
    """Runs the right version over all sources; None, after saying so, where there is none."""
    for program in (f"clang-format-{CLANG_FORMAT}", "clang-format"):
        try:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        except FileNotFoundError:
            continue
        if re.search(rf"version {CLANG_FORMAT}\.", version):
            files = [p for p in sources("include", "src", "cli", "examples", "python", "tests") if p[-4:] != ".def"]
            return subprocess.run([program, *options, *files], cwd=ROOT, capture_output=True, text=True)
    print(f"check_house: clang-format {CLANG_FORMAT} is not here, so the format is not checked")
    return None


def check_format():
    result = clang_format("--dry-run", "-Werror")
    seen = set()
    for path, number in re.findall(r"^(\S+?):(\d+):\d+: error:", result.stderr if result else "", re.M):
        if path not in seen:
            yield path, number, "clang-format would write this differently; run make format"
        seen.add(path)


CATALOGUE = "src/train/report/zh.po"
LITERAL = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
PLACE = r"%[sdwt]"


def literal(text):
    """What the C literals beside each other say."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')


def catalogue():
    """(line, msgid, msgstr) of every row of the report's translations."""
    path = ROOT / CATALOGUE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for row in re.finditer(rf"^msgid {LITERAL}msgstr {LITERAL}", text, re.M):
        if literal(row[1]):
            yield text[:row.start()].count("\n") + 1, literal(row[1]), literal(row[2])


def check_catalogue():
    seen = set()
    for number, english, said in catalogue():
        places = len(re.findall(PLACE, english))
        if {int(p, 16) for p in re.findall("%([1-9a-f])", said)} != set(range(1, places + 1)):
            yield CATALOGUE, number, f"the places of \"{english}\" and \"{said}\" do not agree"
        if english in seen or re.search(PLACE + PLACE, english):
            yield CATALOGUE, number, f"\"{english}\" has another row, or two places side by side"
        seen.add(english)


def sentences():
    """Texts of the report, \0 where a value stands: of its template, of rooms and tasks, of tables and formats."""
    page = (ROOT / "src/train/report/report.html").read_text(encoding="utf-8")
    page = re.sub(r"<!--.*?-->|<style>.*?</style>|<pre.*?</pre>|<dt translate.*?</dt>", "<>", page, flags=re.S)
    for kept, dropped in ("#^", "^#"):
        variant = re.sub(rf"\{{\{{\{dropped}\w+\}}\}}.*?\{{\{{/\}}\}}", "", page, flags=re.S)
        variant = re.sub(rf"\{{\{{(\{kept}\w+|/)\}}\}}", "", variant)
        yield from (re.sub(r"\{\{\w+\}\}", "\0", " ".join(t.split())) for t in re.findall(r">([^<>]+)<", variant))
    asked = rf"\.(?:title|asks|what)\s*=\s*{LITERAL}|pe_html_element\([^\"]*\"[^\"]*\",\s*{LITERAL}"
    for path in sources("src/encodings", "src/train"):
        text = (ROOT / path).read_text(encoding="utf-8")
        found = [literal(one or other) for one, other in re.findall(asked, text)]
        if path.endswith(".def"):
            found += [t for t in map(literal, re.findall(LITERAL, text)) if t.count(" ") > 2 and "=" not in t]
        yield from (re.sub(r"%[-+.\d]*l*[a-z]", "\0", t).replace("%%", "%") for t in found)


def missing_translations():
    rows = [re.compile(re.sub(PLACE, "(.+)", re.escape(english)), re.S) for _, english, _ in catalogue()]
    asked = (t for t in sentences() if re.search("[a-z]{3}", t) and not re.match(r"\w+ et al\. \d", t))
    return {t for t in asked if rows and not any(r.fullmatch(t) for r in rows)}


def main():
    if sys.argv[1:] == ["--format"]:
        result = clang_format("-i")
        sys.exit(result.returncode if result else 1)
    faults = [fault for check in (check_table, check_includes, check_circles, check_calls, check_structs, check_extensions, check_folders,
                                  check_memory, check_rooms, check_words, check_catalogue, check_headers,
                                  check_functions, check_format)
              for fault in check()]
    for path, number, sentence in faults:
        print(f"{path}:{number}: {sentence}", file=sys.stderr)
    if faults:
        sys.exit(f"check_house: {len(faults)} faults")
    missing = len(missing_translations())
    if missing:
        print(f"check_house: {CATALOGUE} lacks {missing} sentence" + ("s, which stay" if missing > 1 else ", which stays"),
              "in English")
    print(f"check_house: {len(sources('include', 'src', 'cli', 'examples', 'tests', 'bench'))} sources in order")


if __name__ == "__main__":
    main()
