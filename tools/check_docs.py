#!/usr/bin/env python3
"""Keeps the documents true to the tree. Runs as a test.

    tools/check_docs.py [ROOT]

Checks that every path that a document or a comment names exists, and that
- ARCHITECTURE.md has the layers, rooms and guests of check_layers.py in its tables,
- gpurota.toml(5) has every setting,
- the help and gpurota(1) have the exit codes,
- docs/operate/metrics.md has the metrics of gpurota-web,
- text for users has none of the phrases that docs/dev/words.md refuses,
- each feature that gpurota lacks according to a document is in docs/absent.tsv, and really absent.
"""

import glob
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layers  # noqa: E402

LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
PATH = re.compile(
    r"(?<![\w/.~-])((?:src|sim|tests|tools|docs|demo|packaging|cmake|man|bench)/[\w./-]*\w)")
ROW = re.compile(r"^\| `(?:src/)?(\w+)` \|.*\| ([^|]*) \|$")


def documents(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", ".git")]
        for name in names:
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)


def exists(root, path):
    return (os.path.exists(os.path.join(root, path))
            or os.path.exists(os.path.join(root, "src", path)))


def check_links(root, path, text):
    for target in LINK.findall(text):
        if not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
            yield "%s: links to %s, which is not there" % (path, target)


def check_paths(root, path, text):
    for target in PATH.findall(text):
        if not exists(root, target.rstrip(".")):
            yield "%s: names %s, which is not there" % (path, target)


def check_comments(root):
    for path in check_layers.source_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            for target in re.findall(r"(?<![\w/.-])docs/[\w./-]*\w", source.read()):
                if not exists(root, target):
                    yield "%s: names %s, which is not there" % (path, target)


def check_merges(root):
    """No file has the marks that git leaves where two changes could not be merged."""
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each not in ("build", ".git", "node_modules")]
        for path in (os.path.join(folder, name) for name in names):
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                for number, line in enumerate(file, 1):
                    if line.startswith((b"<<<<<<< ", b">>>>>>> ")):
                        where = os.path.relpath(path, root)
                        yield "%s:%d: was not merged to the end" % (where, number)


def check_table(root):
    """The table of folders in ARCHITECTURE.md has a row for each folder of check_layers.py and no
    other, and each row says what the folder may include."""
    table = between(read(root, "ARCHITECTURE.md"), "| Folder |", "\n\n").splitlines()
    rows = {}
    for line in table[2:]:
        match = ROW.match(line)
        if match is None or match.group(1) in rows:
            yield ("ARCHITECTURE.md: cannot read this row of the layer table, or it is there "
                   "twice: %s" % line)
        else:
            rows[match.group(1)] = match.group(2)
    expected = dict(check_layers.ALLOWED, **{folder: ["all"] for folder in check_layers.FREE})
    for guest in check_layers.GUESTS:
        expected.pop(guest)
    for folder, allowed in expected.items():
        if folder not in rows:
            yield "ARCHITECTURE.md: no row for %s" % folder
        elif set(rows[folder].replace("–", "").split()) != set(allowed):
            yield "ARCHITECTURE.md: %s may include %s, not %s" % (
                folder, " ".join(allowed) or "nothing", rows[folder])
    for folder in rows:
        if folder not in expected:
            yield ("ARCHITECTURE.md: %s is in the layer table and not in tools/check_layers.py"
                   % folder)
        elif not (os.path.isdir(os.path.join(root, "src", folder))
                  or os.path.isdir(os.path.join(root, folder))):
            yield "ARCHITECTURE.md: %s is in the layer table, but there is no such folder" % folder


GUEST_ROW = re.compile(r"^\| `src/(\w+)` \|.*\| ([^|]*) \| ([^|]*) \|$")


def check_guests(root):
    """The table of ARCHITECTURE.md that begins with "Guest" has the guests of check_layers.py."""
    rows = {}
    for line in between(read(root, "ARCHITECTURE.md"), "| Guest |", "\n\n").splitlines()[2:]:
        match = GUEST_ROW.match(line)
        if match is None:
            yield "ARCHITECTURE.md: cannot read this row of the table of guests: %s" % line
        else:
            cells = match.groups()[1:]
            rows[match.group(1)] = [set(cell.replace("–", "").split()) for cell in cells]
    expected = {guest: [set(check_layers.ALLOWED[guest]), set(headers)]
                for guest, headers in check_layers.GUESTS.items()}
    for guest in sorted(expected.keys() | rows.keys()):
        if rows.get(guest) != expected.get(guest):
            yield "ARCHITECTURE.md: guest %s is not as in tools/check_layers.py" % guest


ROOM_ROW = re.compile(r"^\| `src/(\w+)(?:/(\w+))?` \|.*\| ([^|]*) \|$")


def check_rooms(root):
    """The rows of all tables of ARCHITECTURE.md that begin with "Room" are the rooms of
    check_layers.py."""
    expected = {(module, room): set(allowed) for module, rooms in check_layers.ROOMS.items()
                for room, allowed in rooms.items()}
    rows = {}
    for table in read(root, "ARCHITECTURE.md").split("\n| Room |")[1:]:
        for line in table.partition("\n\n")[0].splitlines()[2:]:
            match = ROOM_ROW.match(line)
            room = (match.group(1), match.group(2) or check_layers.ROOT) if match else None
            if match is None or room in rows:
                yield ("ARCHITECTURE.md: cannot read this row of a table of rooms, or it is there "
                       "twice: %s" % line)
            else:
                rows[room] = set(match.group(3).replace("–", "").split())
    for room in sorted(expected.keys() | rows.keys()):
        name = "src/%s/%s" % room if room[1] != check_layers.ROOT else "src/%s" % room[0]
        if room not in rows:
            yield "ARCHITECTURE.md: no row for the room %s" % name
        elif room not in expected:
            yield ("ARCHITECTURE.md: %s is in a table of rooms and not in tools/check_layers.py"
                   % name)
        elif rows[room] != expected[room]:
            yield "ARCHITECTURE.md: %s may include %s" % (name, " ".join(sorted(expected[room]))
                                                          or "nothing")
        elif not os.path.isdir(os.path.join(root, name)):
            yield "ARCHITECTURE.md: %s is in a table of rooms, but there is no such folder" % name


def check_settings(root):
    with open(os.path.join(root, "src/config/settings.cpp"), encoding="utf-8") as source:
        settings = set(re.findall(r'^ +\{"([\w.]+)", \w+\(', source.read(), re.MULTILINE))
    fields = os.path.join(root, "src/config/limit_names.h")
    if os.path.exists(fields):
        with open(fields, encoding="utf-8") as source:
            names = re.search(r"kLimitNames = \{(.*?)\}", source.read(), re.DOTALL)
        settings |= {"limits." + name for name in re.findall(r'"(\w+)"', names.group(1))}
    with open(os.path.join(root, "man/gpurota.toml.5"), encoding="utf-8") as page:
        text = page.read()
    if not settings:
        yield "src/config/settings.cpp: no settings found; has their table changed its form?"
    # The page names the settings of a table by their last part, below the table's heading.
    known = {setting.split(".")[-1] for setting in settings}
    for setting in sorted(known):
        if not re.search(r"^\.BR %s \"|\\fB%s\\fR|[.]%s\]\]" % ((setting,) * 3), text,
                         re.MULTILINE):
            yield "man/gpurota.toml.5: %s of src/config/settings.cpp is not described" % setting
    for setting in re.findall(r"^\.BR (\w+) \"", text, re.MULTILINE):
        if setting not in known:
            yield "man/gpurota.toml.5: %s is not in src/config/settings.cpp" % setting


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def between(text, begin, end):
    return text.partition(begin)[2].partition(end)[0]


# By page: the sources with the rows of the program's options. The page of gpurota is not in the
# list, because tools/command_line.py writes its options.
PROGRAMS = {
    "man/gpurotad.8": ["src/daemon/options.cpp", "src/base/log_option.h"],
    "man/gpurota-burn.1": ["src/burn/options.cpp"],
    "man/gpurota-web.8": ["src/web/options.cpp"],
    "man/gpurota-device-plugin.8": [
        "src/kube/options.cpp", "src/kube/plugin_options.cpp", "src/kube/api/access_options.cpp",
        "src/base/log_option.h"],
    "man/gpurota-dra.8": [
        "src/kube/dra/dra_options.cpp", "src/kube/plugin_options.cpp",
        "src/kube/api/access_options.cpp", "src/base/log_option.h"],
}


def options_of(root, page):
    """The options that the program of a man page reads."""
    source = "".join(read(root, path) for path in PROGRAMS[page])
    return set(re.findall(r"\{'(?:\\0|\w)', \"(--[a-z-]+)\"", source))


def check_options(root):
    """SYNOPSIS and OPTIONS of a page have the options that the program reads."""
    for page, sources in PROGRAMS.items():
        rows = options_of(root, page)
        if not rows:
            yield "%s: no options found; have their rows changed their form?" % sources[0]
        text = re.sub(r"\\f[BIRP]", "", read(root, page)).replace("\\-", "-")
        options = between(text, "\n.SH OPTIONS\n", "\n.SH ")
        for section, part in (
                ("SYNOPSIS", between(text, "\n.SH SYNOPSIS\n", "\n.SH ")),
                ("OPTIONS", "".join(re.findall(r"^\.TP\n.*\n", options, re.MULTILINE)))):
            told = set(re.findall(r"--[a-z][a-z-]*", part)) - {"--help", "--version"}
            for option in sorted(rows - told):
                yield "%s: %s is not in its %s" % (page, option, section)
            for option in sorted(told - rows):
                yield "%s: %s in its %s is no option of the program" % (page, option, section)


def check_exit_codes(root):
    """The documents list all exit codes for `run`, and those of `reserve` for `reserve`."""
    codes = dict(re.findall(r"int kExit(\w+) = (\d+);", read(root, "src/cli/exit_codes.h")))
    of_run = {code for name, code in codes.items() if name not in ("Ok", "Failed")}
    of_reserve = {codes.get(name) for name in ("Usage", "NoGpu", "Cancelled")}
    told = [("src/cli/commands.toml", "[commands.run]", "[commands.", r"\[(\d+), ", of_run),
            ("src/cli/commands.toml", "[commands.reserve]", "[commands.", r"\[(\d+), ", of_reserve),
            ("man/gpurota.1.in", ".SH EXIT STATUS", ".SH ", r"^\.B (\d+)$", of_run)]
    for path, begin, end, form, there in told:
        known = set(re.findall(form, between(read(root, path), begin, end), re.MULTILINE))
        for code in sorted(known ^ there, key=str):
            yield "%s: the exit code %s is told or used, not both" % (path, code)


METRICS = "docs/operate/metrics.md"


def check_metrics(root):
    """Each metric of src/web has one row, and each name in the document is a metric or a part of
    one."""
    names, folder = set(), os.path.join(root, "src/web")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".cpp") and not name.endswith("_test.cpp"):
            names |= set(re.findall(r'"(gpurota_\w+)"', read(root, "src/web/" + name)))
    if not names:
        yield "src/web: no metrics found; have they changed their form?"
    text = read(root, METRICS)
    rows = re.findall(r"^\| `(gpurota_\w+)` \|", text, re.MULTILINE)
    for name in sorted(names):
        if rows.count(name) != 1:
            yield "%s: %d rows for %s of src/web, not 1" % (METRICS, rows.count(name), name)
    for name in sorted(set(re.findall(r"\bgpurota_\w+", text))):
        if name not in names and re.sub("_(bucket|sum|count)$", "", name) not in names:
            yield "%s: %s is not in src/web" % (METRICS, name)


WORDS = "docs/dev/words.md"
# Developers' documents may quote a refused phrase, and the design pages are not for users.
NOT_FOR_USERS = ("docs/design/", "docs/dev/")
LITERAL = re.compile(r'R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
JOINT = "\v"  # a line break between two literals that the compiler joins


def refused_phrases(root):
    """The phrases between backticks in the column "Not" of the table "Use | Not | Because"."""
    phrases, inside = [], False
    for line in read(root, WORDS).splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells[:2] == ["Use", "Not"]:
            inside = True
        elif inside and len(cells) > 1:
            phrases += re.findall(r"`([^`]+)`", cells[1])
    return phrases


def plain_of_man(text):
    """The text of a man page without requests, fonts and escapes; line breaks stay."""
    text = re.sub(r"^\.\S* ?", "", text, flags=re.MULTILINE)
    return re.sub(r"\\f[BIRP]|\\(?=[-e&])", "", text)


def plain_of_code(text):
    """The string literals of a source, each on its own line of the source, without the code between
    them."""
    text = re.sub(r"^\s*//.*$|'\\?\"'", "", text, flags=re.MULTILINE)
    text = re.sub(r'"(\s*\n\s*)"', lambda gap: gap.group(1).replace("\n", JOINT), text)
    plain, end = "", 0
    for literal in LITERAL.finditer(text):
        between_them = text[end:literal.start()]
        plain += "\n" * between_them.count("\n") + "\0" + (literal.group(2) or literal.group(3)
                                                           or "").replace("\\n", " ")
        end = literal.end()
    return plain.replace(JOINT, "\n")


def user_texts(root):
    for path in sorted(documents(root)):
        if path == "README.md" or (path.startswith("docs/") and not path.startswith(NOT_FOR_USERS)):
            yield path, read(root, path)
    for folder, plain_of, suffix in (("man", plain_of_man, (".1", ".1.in", ".5", ".8")),
                                     ("src/cli", plain_of_code, (".cpp", ".h", ".toml"))):
        for path, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith(suffix) and not name.endswith("_test.cpp"):
                    full = os.path.relpath(os.path.join(path, name), root)
                    yield full, plain_of(read(root, full))


def check_words(root):
    if not os.path.exists(os.path.join(root, WORDS)):
        return
    phrases = refused_phrases(root)
    if not phrases:
        yield "%s: no refused phrases found; has the table changed its form?" % WORDS
    for path, text in user_texts(root):
        for phrase in phrases:
            pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, phrase.split())) + r"(?!\w)"
            for match in re.finditer(pattern, text, re.IGNORECASE):
                yield "%s:%d: '%s' is refused by %s" % (path, text.count("\n", 0, match.start())
                                                        + 1, phrase, WORDS)


ABSENT = "docs/absent.tsv"
# A sentence about gpurota with one of these phrases must be in docs/absent.tsv.
SAYS_ABSENT = re.compile(r"gpurota (?:has no|does not (?:run|support|work)) |There is no "
                         r"(?:[A-Z]|release)|\bnot available\b")


def finds(root, probe):
    """Whether a probe of docs/absent.tsv finds something; None if the probe itself is not valid."""
    kind, _, what = probe.partition(":")
    if kind == "path":
        return bool(glob.glob(os.path.join(root, what)))
    path, _, pattern = what.partition(":")
    if kind != "text" or not pattern or not os.path.exists(os.path.join(root, path)):
        return None
    return re.search(pattern, read(root, path), re.MULTILINE) is not None


def check_absent(root):
    if not os.path.exists(os.path.join(root, ABSENT)):
        return
    rows = [line.split("\t") for line in read(root, ABSENT).splitlines() if line
            and not line.startswith("#")][1:]
    for row in rows:
        path, sentence, probe = row if len(row) == 3 else ("", "", "")
        found = finds(root, probe)
        if found is None:
            yield "%s: cannot read '%s'" % (ABSENT, "\t".join(row))
        elif found:
            yield "%s: says '%s', but %s finds it" % (path, sentence, probe)
        elif (not os.path.exists(os.path.join(root, path))
              or sentence not in " ".join(read(root, path).split())):
            yield "%s: '%s' does not stand in %s" % (ABSENT, sentence, path)
    for path in sorted(documents(root)):
        if path.startswith(NOT_FOR_USERS) or path == "CHANGELOG.md":
            continue
        text = " ".join(read(root, path).split())
        for row in rows:
            if row[0] == path and len(row) == 3:
                text = text.replace(row[1], "")
        for match in SAYS_ABSENT.finditer(text):
            yield "%s: '%s…' is not in %s" % (path, text[match.start():match.start() + 60], ABSENT)


def check_tree(root):
    problems = []
    for path in sorted(documents(root)):
        with open(os.path.join(root, path), encoding="utf-8") as text:
            content = text.read()
        problems += check_links(root, path, content)
        problems += check_paths(root, path, content)
    problems += check_comments(root)
    problems += check_merges(root)
    problems += check_table(root)
    problems += check_rooms(root)
    problems += check_guests(root)
    problems += check_settings(root)
    problems += check_exit_codes(root)
    problems += check_options(root)
    problems += check_metrics(root)
    problems += check_words(root)
    problems += check_absent(root)
    return problems


def check_installed(root):
    """Checks documents installed without the sources: each link must lead to an installed file."""
    for path in sorted(documents(root)):
        with open(os.path.join(root, path), encoding="utf-8") as text:
            yield from check_links(root, path, text.read())


def main(arguments):
    if arguments[:1] == ["--installed"]:
        return check_layers.check_whole(arguments[1:], lambda root: list(check_installed(root)),
                                        "installed documents: %d problems")
    return check_layers.check_whole(arguments, check_tree, "documents: %d problems")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
