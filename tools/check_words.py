#!/usr/bin/env python3
"""Counts wording that docs/dev/words.md refuses, by folder. A count may only fall. Runs as a test.

    tools/check_words.py [ROOT]            compares the counts with tools/words.tsv; exits 1 if one
                                           is higher
    tools/check_words.py --list FOLDER     prints what is counted in a folder as file:line: text
    tools/check_words.py --update          writes the counts of today

Five kinds are counted:
  sentences  a sentence that begins with a pronoun (It, They, This, That, What, Who, Whoever, Whose)
             and is no question
  names      an identifier with a word that the field has a standard word for
  columns    a line of code or of a comment that is longer than 100 columns
  references in the folders of REFERENCES, a sentence with a word that refers to a noun (it, them,
             both, the others, do so) and no such noun earlier in the same sentence
  phrases    a phrase of PHRASES in a comment or a document
"""

import functools
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
TABLE = "tools/words.tsv"
KINDS = ("sentences", "names", "columns", "references", "phrases")
COLUMNS = 100

CODE = (".cpp", ".h", ".c", ".cu", ".in")
SCRIPTS = (".py", ".sh", ".bash", ".bats")
TEXTS = (".md", ".1", ".5", ".7", ".8")
# The folders whose text is counted. With the number 2, each folder directly below has a row of its
# own, which also counts all files in deeper folders; with 1 there is one row for the whole folder;
# with 3 there is one more level.
ROOTS = {"src": 3, "sim": 2, "tests": 2, "bench": 2, "demo": 1, "python": 1, "tools": 1, "docs": 2,
         "man": 1, "packaging": 1}
PRONOUN = re.compile(r"(?:^|[.!?:] +)((?:It|They|This|That|What|Who|Whoever|Whose)\b[^.!?]*)")
# The folders whose sentences must be understood without their neighbours.
REFERENCES = ("docs/design/", "docs/operate/")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*(\"])")
# Words that refer to one thing. "It is known that …" refers to what follows.
TO_ONE = re.compile(
    r"\b(?:it(?! (?:is|was|would be|will be|can be|takes) \w+ (?:that|to|whether)\b)"
    r"|its|itself|(?:that|such a|this) one)\b", re.IGNORECASE)
# Words that refer to several things. "Both A and B", "neither A nor B" and "those that …" do not.
TO_SEVERAL = re.compile(
    r"\b(?:them|they|their|themselves|both(?! (?:\S+ ){1,5}and\b)|neither(?! (?:\S+ ){1,9}nor\b)"
    r"|the two(?= (?:of|are|have|do|can|may|must)\b|[,.;:)])|the (?:others|latter|former)"
    r"|(?:the|each) other(?=[,.;:)])|of (?:these|those)(?=[,.;:)])|those(?=[,.;:)])"
    r"|these(?= (?:are|were|have|do|can|may|must)\b|[,.;:)]))\b", re.IGNORECASE)
# Words that refer to a statement or to an action.
TO_STATEMENT = re.compile(
    r"\b(?:(?:do|does|did|doing|done) so\b|(?:likewise|the same)(?=[,.;:)]|$))")
# Words that name nothing.
EMPTY = set("""a an the this that these those such same if when while until unless because as so
    then and or but nor for of in on at to from by with without within before after since once where
    whether than thus therefore also even only not no never always otherwise here there now still
    yet too is are was were be been being has have had do does did can could may might must shall
    should will would it its they them their he she his her we us our you your all any each every
    some both either neither one ones other others another more most less least few many much none
    what which who whose whom how why just very quite again already soon later first last next
    instead however though although except about up down out over under between during through
    against like unlike per via besides rather else likewise usually often sometimes""".split())
# Words on -s that are no plural nouns, for the most part verbs.
NO_PLURAL = set("""accepts access adds address affects afterwards answers applies asks basis becomes
    begins belongs bus cancels carries changes checks chooses class closes compares contains
    continues copies counts creates decides depends describes destroys discards drops ends enforces
    evicts exceeds exists exits expects fails falls fills finds fits follows forks frees gets gives
    goes grants happens helps holds ignores includes keeps kills knows leads learns leaves lets
    lists loads looks makes maps marks matches means measures moves needs notices notifies opens
    parses pass passes perhaps prints proceeds protects proves publishes puts queues raises reads
    receives refers refuses rejects releases removes repeats replaces reports requires reserves
    restores resumes retries returns runs saves says sees sends serves sets shows signals sleeps
    starts status stays stops stores succeeds suspends switches takes tells tries updates uses
    waits wakes wants watches works writes""".split())
# Words that stand for several things, or join two.
SEVERAL = set("two three four five six several people children nobody everybody and or".split())
# Phrases that are read twice, with what to write instead. The page about words quotes them.
QUOTES = "docs/dev/words.md"
PHRASES = [re.compile(pattern) for pattern in (
    # "even if"
    r"[,(;] ?also (?:if|when|while|where|after|without|during|over|across|before|until)\b",
    # "a training job", "training jobs"
    r"\b[Aa] training(?! (?:step|job|run|loop))\b(?!-)|\b[Tt]rainings\b",
    # "Otherwise", at the beginning of a sentence
    r"(?:^|[.!?] )Else\b",
    # "If there are several", at the beginning of a sentence
    r"(?:^|[.!?:] )Of several\b",
    # "beginning at `x`"
    r"\bfrom `[^`]+` on\b",
    # "usually not"
    r"\bmostly not\b",
    # "Errors are those of f()"
    r"\b[Ee]rrors as of\b",
    # "somebody else's", "another lease's"
    r"\banother one's\b",
    # "fewer than 3 GPUs", "one lease fewer"
    r"\bless than \d+ (?:columns|GPUs|leases|processes|programs|rows|lines|calls|files)\b",
    r"\b(?:one|two) \w+ less\b")]
# One word of an identifier, or several that follow each other.
NAMES = {"doorman", "look", "looks", "glimpse", "glimpses", "turnstile", "courier", "crowd",
         "repeats", "hearsay", "untold",
         "desk", "way in", "in vain", "house parts"}
MEANT = ("look up",)  # the standard term
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
IDENTIFIER = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b")
# Comments and strings have no identifiers, except a shell's strings: "$name", "$(call)".
CPP_PROSE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
PYTHON_PROSE = re.compile(r'""".*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*',
                          re.DOTALL)
SHELL_PROSE = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)


def comments_of(text, mark):
    """(line, text) of each comment. Consecutive lines are one comment."""
    found = []
    begin, parts = 0, []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith(mark) and not stripped.startswith("#!"):
            if not parts:
                begin = number
            parts.append(stripped[len(mark):].strip())
            continue
        if parts:
            found.append((begin, " ".join(parts)))
            parts = []
        # A comment after code. A mark within a string has no blank before and after it.
        at = line.find(" " + mark + " ")
        if at >= 0:
            found.append((number, line[at + len(mark) + 2:].strip()))
    if parts:
        found.append((begin, " ".join(parts)))
    return found


def paragraphs_of(text):
    """(line, text) of each paragraph, item or cell of a document, without its blocks of code."""
    found = []
    begin, parts, code = 0, [], False

    def end():
        if parts:
            found.append((begin, " ".join(parts)))
            parts.clear()

    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith("```"):
            code = not code
            end()
            continue
        if code or line.startswith("    "):
            continue
        stripped = line.strip()
        if stripped.startswith("|"):
            end()
            found += [(number, cell.strip()) for cell in stripped.strip("|").split("|")]
            continue
        if not stripped or stripped[0] in "#.'" or re.match(r"([-*]|\d+\.) ", stripped):
            end()
            stripped = re.sub(r"^([-*]|\d+\.) |^\..*$", "", stripped)
        if stripped:
            if not parts:
                begin = number
            parts.append(stripped)
    end()
    return found


def pieces_of(name, text):
    """(line, text) of each paragraph of a document, or of each comment of a source."""
    if name.endswith(TEXTS):
        return paragraphs_of(text)
    return comments_of(text, "//" if name.endswith(CODE) else "#")


def sentences_of(name, text):
    """(line, text) of each sentence that begins with a pronoun."""
    found = []
    for line, piece in pieces_of(name, text):
        piece = piece.replace("**", "").replace("\\fB", "").replace("\\fR", "")
        for match in PRONOUN.finditer(piece):
            # the head of a table's column
            title = match.group(0) == piece and len(piece.split()) < 4
            if not title and piece[match.end():match.end() + 1] != "?":
                found.append((line, match.group(1).strip()))
    return found


def is_name(word):
    return word.startswith("`") or word.lower() not in EMPTY


def is_plural(word):
    lower = word.lower()
    return (word.startswith("`") or lower.isdigit() or lower in SEVERAL
            or (lower.endswith("s") and not lower.endswith("ss")
                and lower not in EMPTY | NO_PLURAL))


def open_reference(sentence):
    """The first word that refers to a noun that is not earlier in the sentence, or None. Whether
    an earlier noun is the right one is not known: any noun will do."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("*", "")
    for pattern, is_noun, needed in ((TO_ONE, is_name, 1), (TO_SEVERAL, is_plural, 1),
                                     (TO_STATEMENT, is_name, 2)):
        for match in pattern.finditer(plain):
            before = re.findall(r"`[^`]*`|[\w'-]+", plain[:match.start()])
            if sum(map(is_noun, before)) < needed:
                return match.group(0)
    return None


def references_of(name, text):
    """(line, text) of each sentence of a document that needs its neighbour. Items that continue a
    sentence, cells of tables, headings and titles of three words are not counted."""
    if not name.startswith(REFERENCES) or not name.endswith(TEXTS):
        return []
    found = []
    lines = text.split("\n")
    for line, piece in paragraphs_of(text):
        if lines[line - 1].lstrip()[:1] in ("|", "#"):
            continue
        for sentence in SENTENCE_END.split(piece):
            word = open_reference(sentence)
            if word and len(sentence.split()) > 3 and not sentence[0].islower():
                found.append((line, "[%s] %s" % (word, sentence)))
    return found


def phrases_of(name, text):
    """(line, text) of each phrase of PHRASES. A man page that the build completes (.1.in) is a
    document here."""
    if name == QUOTES:
        return []
    pieces = pieces_of(name[:-len(".in")] if re.search(r"\.\d\.in$", name) else name, text)
    return [(line, "[%s] %s" % (match.group(0).strip(), piece[max(0, match.start() - 20):]))
            for line, piece in pieces for pattern in PHRASES for match in pattern.finditer(piece)]


@functools.lru_cache(maxsize=None)  # a name occurs many times
def is_refused(identifier):
    words = " ".join(WORD.findall(identifier)).lower()
    for term in MEANT:
        words = words.replace(term, "")
    return any(" %s " % name in " %s " % words for name in NAMES)


def names_of(name, text):
    """(line, identifier) of each identifier with a refused word."""
    if not name.endswith(CODE + SCRIPTS):
        return []
    prose = (CPP_PROSE if name.endswith(CODE) else PYTHON_PROSE if name.endswith(".py")
             else SHELL_PROSE)
    code = prose.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    return [(number, word) for number, line in enumerate(code.split("\n"), 1)
            for word in IDENTIFIER.findall(line) if is_refused(word)]


def columns_of(name, text):
    """(line, text) of each line of code that is too long."""
    if not name.endswith(CODE + SCRIPTS):
        return []
    return [(number, line) for number, line in enumerate(text.split("\n"), 1)
            if len(line) > COLUMNS]


FINDERS = {"sentences": sentences_of, "names": names_of, "columns": columns_of,
           "references": references_of, "phrases": phrases_of}


def folder_of(path):
    parts = path.split("/")
    depth = ROOTS[parts[0]]
    # Each room of src/daemon and src/interposer has a row; every other module has one row.
    if parts[:2] != ["src", "daemon"] and parts[:2] != ["src", "interposer"]:
        depth = min(depth, 2)
    return "/".join(parts[:-1][:depth])


def files_of(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard", *ROOTS],
                            check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    names = [name for name in listed.decode().split("\0") if name]
    if not names:  # a copy without git
        names = [os.path.relpath(os.path.join(folder, name), root) for top in ROOTS
                 for folder, _, files in os.walk(os.path.join(root, top)) for name in files]
    return sorted(name for name in set(names)
                  if name.endswith(CODE + SCRIPTS + TEXTS)
                  and os.path.isfile(os.path.join(root, name)))


def count(root):
    """{folder: [count of each kind]}, and {(folder, kind): ["file:line: text"]}."""
    counts, places = {}, {}
    for name in files_of(root):
        with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        folder = folder_of(name)
        for index, kind in enumerate(KINDS):
            found = FINDERS[kind](name, text)
            counts.setdefault(folder, [0] * len(KINDS))[index] += len(found)
            places.setdefault((folder, kind), []).extend("%s:%d: %s"
                                                         % (name, line, what.strip()[:90])
                                                         for line, what in found)
    return counts, places


def read_table(root):
    rows = {}
    with open(os.path.join(root, TABLE), encoding="utf-8") as file:
        for line in file.read().split("\n")[1:]:
            if line:
                folder, *numbers = line.split("\t")
                rows[folder] = [int(number) for number in numbers]
    return rows


def write_table(root, counts):
    with open(os.path.join(root, TABLE), "w", encoding="utf-8") as file:
        file.write("\t".join(("folder",) + KINDS) + "\n")
        for folder, numbers in sorted(counts.items()):
            file.write("\t".join([folder] + [str(number) for number in numbers]) + "\n")


def compare(counts, table):
    """A line for each count that differs from that of the table."""
    problems = []
    for folder in sorted(set(counts) | set(table)):
        now, before = counts.get(folder, [0] * len(KINDS)), table.get(folder, [0] * len(KINDS))
        for index, kind in enumerate(KINDS):
            if now[index] > before[index]:
                problems.append("%s: %d %s, %d before: see tools/check_words.py --list %s and "
                                "docs/dev/words.md"
                                % (folder, now[index], kind, before[index], folder))
            elif now[index] < before[index]:
                problems.append("%s: only %d %s, %d before: keep that by tools/check_words.py "
                                "--update"
                                % (folder, now[index], kind, before[index]))
    return problems


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if arguments[:1] == ["--update"]:
        counts, _ = count(root)
        table = read_table(root) if os.path.exists(os.path.join(root, TABLE)) else counts
        raised = [line for line in compare(counts, table) if "only" not in line]
        if raised:
            print("\n".join(raised))
            return 1
        write_table(root, counts)
        return 0
    if arguments[:1] == ["--list"]:
        _, places = count(root)
        for (folder, kind), lines in sorted(places.items()):
            if folder in arguments[1:]:
                print("\n".join("%s: %s" % (kind, line) for line in lines))
        return 0
    root = arguments[0] if arguments else root
    counts, _ = count(root)
    problems = compare(counts, read_table(root))
    print("\n".join(problems + ["words: %d folders, %s" % (len(counts), ", ".join(
        "%d %s" % (sum(row[index] for row in counts.values()), kind)
        for index, kind in enumerate(KINDS)))]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
