#!/usr/bin/env python3
"""Makes the C++ of the control protocol from its Varlink files, which alone define the protocol.

    tools/control_protocol.py FOLDER FILE.varlink…     writes the files named in OUTPUTS into FOLDER

A comment that begins with [...] says about the field before it what Varlink's types cannot express:

    [time]                        text that is a time; likewise uuid, lease_id, request_id
    [amount]                      bytes of memory; likewise count (never negative) and duration
                                  (64 bits)
    [State: free, in_use]         one of these words; makes the enum State. Later uses: [State]
    [note]                        a limit of this name, see below
    [not empty]  [default 1]

Several annotations are separated by commas. The name of a field may imply its type: see BY_NAME. A
comment on its own line before the interface sets a limit: [limit note: 1024 bytes], [limit command:
256 items, 8192 bytes]. A comment before a method says what applies to the method: [read-only],
[tells secrets], [web], [administrators may drain GPUs], [named ServiceInfo] (the struct's name).
"""

import os
import pathlib
import re
import sys

OUTPUTS = ["types.h", "methods.h", "words.h", "fields.h", "error_names.h", "protocol.cpp"]

SCALARS = {"bool": ("bool", "false"), "int": ("int", "0"), "string": ("std::string", ""),
           "time": ("WallTime", ""), "uuid": ("GpuUuid", ""), "lease_id": ("LeaseId", ""),
           "request_id": ("RequestId", ""),
           "amount": ("Bytes", ""), "count": ("std::uint64_t", "0"),
           "duration": ("std::int64_t", "0"),
           "uid": ("uid_t", "0"), "pid": ("pid_t", "0"), "Size": ("SizeSpec", "")}
OF_STRING = ("time", "uuid", "lease_id", "request_id")
OF_INT = ("amount", "count", "duration", "uid", "pid")
# The name of a field may imply its type. For each of two Varlink types: patterns of a field's name,
# and the type (a key of SCALARS) that the name implies. The first pattern that matches counts.
BY_NAME = {"int": [(r".*_bytes", "amount"), (r"(.*_)?seconds|.*_ms|.*_us|microseconds", "duration"),
                   (r"uid", "uid"), (r"pids?", "pid")],
           "string": [(r"lease_ids?", "lease_id"), (r"request_id", "request_id"),
                      (r"(.*_)?uuid", "uuid")]}
# Types written by hand, in base/bytes.h.
BUILT_IN = {"Size"}

TOKEN = re.compile(r"(?P<space>[ "
                   r"\t]+)|(?P<line>\n)|(?P<comment>#[^\n]*)|(?P<arrow>->)|"
                   r"(?P<word>[A-Za-z_][\w.-]*)|(?P<sign>[():,?]|\[\])")


class Mistake(Exception):
    pass


class Field:
    def __init__(self, name, text, line):
        self.name, self.line = name, line
        self.cpp = name + "_" if name == "namespace" else name  # a C++ keyword
        self.optional = text.startswith("?")
        self.list = "[]" in text
        self.varlink = text.lstrip("?").replace("[]", "")
        self.comment = []
        self.kind, self.limit, self.not_empty, self.default = None, None, False, None


class Struct:
    def __init__(self, name, fields, doc):
        self.name, self.fields, self.doc = name, fields, doc


class Method:
    def __init__(self, interface, name, doc, params, reply):
        self.interface, self.name, self.params, self.reply = interface, name, params, reply
        self.cpp, self.read_only, self.secret, self.web, self.administrators = (
            name, False, False, False, None)
        self.doc = []
        for line in doc:
            said = re.fullmatch(r"\[(.*)\]", line)
            if said:
                self.say(said.group(1))
            else:
                self.doc.append(line)

    def say(self, text):
        for each in text.split(", "):
            if each == "read-only":
                self.read_only = True
            elif each == "tells secrets":
                self.secret = True
            elif each == "web":
                self.web = True
            elif each.startswith("administrators may "):
                self.administrators = each[len("administrators may "):]
            elif each.startswith("named "):
                self.cpp = each[len("named "):]
            else:
                raise Mistake("method %s: [%s] says nothing known" % (self.name, each))


class Protocol:
    """All interfaces together, because their C++ names are in one namespace."""

    def __init__(self):
        self.texts, self.types, self.methods, self.errors = {}, {}, [], []
        self.enums, self.limits = {}, {}


class Parser:
    def __init__(self, path, protocol):
        self.path, self.protocol = path, protocol
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.tokens, self.at = self.tokens_of(), 0
        self.last = None  # the field that a comment after it describes

    def tokens_of(self):
        tokens, at, line, fresh = [], 0, 1, True
        while at < len(self.text):
            match = TOKEN.match(self.text, at)
            if match is None:
                raise Mistake("%s:%d: '%s' is not Varlink"
                              % (self.path, line, self.text[at:at + 10]))
            kind, text, at = match.lastgroup, match.group(), match.end()
            if kind == "comment":
                tokens.append(("own" if fresh else "behind", text[1:].strip(), line))
            elif kind not in ("space", "line"):
                tokens.append((kind, text, line))
            fresh = kind == "line" or (fresh and kind == "space")
            line += kind == "line"
        return tokens

    def take(self, wanted=None):
        """The next token that is not a comment; None at the end. Collects the comments before the
        token."""
        while self.at < len(self.tokens) and self.tokens[self.at][0] in ("own", "behind"):
            self.comment(*self.tokens[self.at])
            self.at += 1
        if self.at == len(self.tokens):
            return None
        _, text, line = self.tokens[self.at]
        if wanted is not None and text != wanted:
            raise Mistake("%s:%d: '%s' where '%s' belongs" % (self.path, line, text, wanted))
        self.at += 1
        return text

    def word(self):
        text = self.take()
        if text is None:
            raise Mistake("%s ends in the middle" % self.path)
        return text

    def comment(self, kind, text, _):
        # A comment that continues on the following lines still describes the field, until the next
        # field or the end of the list of fields.
        if self.last is not None and (kind == "behind" or self.last.comment):
            self.last.comment.append(text)
        else:
            self.doc.append(text)

    def read(self):
        self.doc = []
        self.take("interface")
        self.set_limits(self.doc)
        interface = self.take()
        self.protocol.texts[interface] = self.text
        while True:
            self.doc, self.last = [], None
            keyword = self.take()
            if keyword is None:
                return
            doc, name = self.doc_of_member(), self.take()
            fields = self.fields()
            if keyword == "type":
                self.protocol.types[name] = Struct(name, fields, doc)
            elif keyword == "error":
                self.protocol.errors.append((interface, name))
            elif keyword == "method":
                self.take("->")
                self.protocol.methods.append(Method(interface, name, doc, fields, self.fields()))
            else:
                raise Mistake("%s: '%s' is no member of an interface" % (self.path, keyword))

    def doc_of_member(self):
        doc, self.doc = self.doc, []
        return doc

    def fields(self):
        fields = []
        self.take("(")
        self.last = None
        while (name := self.word()) != ")":
            line = self.tokens[self.at - 1][2]
            self.take(":")
            text = self.word()
            while text[-1] in "?]":
                text += self.word()
            fields.append(Field(name, text, line))
            self.last = fields[-1]
            if self.tokens[self.at:] and self.tokens[self.at][1] == ",":
                self.at += 1
        self.last = None
        for field in fields:
            self.judge(field)
        return fields

    def set_limits(self, doc):
        for line in doc:
            for name, text in re.findall(r"\[limit (\w+): ([^\]]*)\]", line):
                found = {unit: int(number)
                         for number, unit in re.findall(r"(\d+) (bytes|items)", text)}
                if not found:
                    raise Mistake("%s: limit %s says no number of bytes or items"
                                  % (self.path, name))
                self.protocol.limits[name] = found

    def judge(self, field):
        """Decides the C++ type of a field, by its annotation or by its name."""
        text = " ".join(field.comment)
        said = re.match(r"\[([^\]]*)\]", text)
        parts = []
        if said:
            parts = [said.group(1)] if ":" in said.group(1) else said.group(1).split(", ")
        for part in parts:
            self.say(field, part)
        if field.kind is None:
            for pattern, kind in BY_NAME.get(field.varlink, []):
                if re.fullmatch(pattern, field.name):
                    field.kind = kind
                    break
        field.kind = field.kind or field.varlink

    def say(self, field, part):
        protocol = self.protocol
        name, _, words = part.partition(":")
        if words:
            if name in protocol.enums:
                raise Mistake("%s:%d: the words of %s are listed twice"
                              % (self.path, field.line, name))
            protocol.enums[name] = [word.strip() for word in words.split(",")]
            field.kind = name
        elif part in protocol.enums:
            field.kind = part
        elif part in (OF_STRING if field.varlink == "string" else OF_INT if field.varlink == "int"
                      else ()):
            field.kind = part
        elif part in protocol.limits:
            field.limit = part
        elif part == "not empty":
            field.not_empty = True
        elif part.startswith("default "):
            field.default = part[len("default "):]
        else:
            raise Mistake("%s:%d: %s: [%s] says nothing known of %s"
                          % (self.path, field.line, field.name, part, field.varlink))


def camel(words):
    return "".join(word.capitalize() for word in re.split("[_-]", words))


def type_of(field):
    name = SCALARS[field.kind][0] if field.kind in SCALARS else field.kind
    name = "std::vector<%s>" % name if field.list else name
    return "std::optional<%s>" % name if field.optional else name


def value_of(protocol, field):
    if field.optional:
        return "{}"
    if field.list:
        return ""
    if field.default is not None:
        return " = " + field.default
    if field.kind in protocol.enums:
        return " = %s::kUnknown" % field.kind
    value = SCALARS[field.kind][1] if field.kind in SCALARS else ""
    return " = " + value if value else ""


def comments(lines, indent=""):
    return ["%s// %s" % (indent, line) if line else indent + "//" for line in lines]


def members_of(protocol, fields, indent):
    lines = []
    for field in fields:
        lines += comments(field.comment, indent)
        lines.append("%s%s %s%s;" % (indent, type_of(field), field.cpp, value_of(protocol, field)))
    return lines


def struct_of(protocol, struct):
    return (comments(struct.doc) + ["struct %s {" % struct.name]
            + members_of(protocol, struct.fields, "  ") +
            ["  bool operator==(const %s&) const = default;" % struct.name, "};", ""])


def in_order(types):
    """The structs in an order in which each comes after the types of its fields."""
    done, out = set(BUILT_IN), []

    def add(struct, above):
        if struct.name in done:
            return
        if struct.name in above:
            raise Mistake("type %s has itself in it" % struct.name)
        for field in struct.fields:
            if field.kind in types:
                add(types[field.kind], above | {struct.name})
        done.add(struct.name)
        out.append(struct)

    for struct in types.values():
        add(struct, set())
    return out


def header(sources, what, includes):
    return (["// " + what, "// Made by tools/control_protocol.py from %s: edit that." % sources,
             "#pragma once", ""] +
            ["#include " + each if each else "" for each in includes]
            + ["", "namespace gpurota::proto {", ""])


END = ["}  // namespace gpurota::proto"]


def types_h(protocol, sources):
    out = header(sources, "The types of the control protocol as plain data. Any thread.",
                 ['"base/bytes.h"', '"base/ids.h"', '"core/time.h"', "", "<cstdint>", "<optional>",
                  "<string>", "<vector>", "", "<sys/types.h>"])
    out.append("// `kUnknown` is what a word from a newer peer becomes. to_string gives the word "
               "of the interface, or \"unknown\".")
    for name, words in protocol.enums.items():
        out += ["enum class %s { kUnknown, %s };"
                % (name, ", ".join("k" + camel(word) for word in words)),
                "const char* to_string(%s word);" % name]
    out.append("")
    for struct in in_order(protocol.types):
        out += struct_of(protocol, struct)
    return out + END


def method_of(protocol, method):
    yes = {True: "true", False: "false"}
    said = ('std::string_view kAdministratorsMay = "%s"' % method.administrators
            if method.administrators else "std::string_view kAdministratorsMay{}")
    return (comments(method.doc) + ["struct %s {" % method.cpp,
            '  static constexpr std::string_view kMethod = "%s.%s";'
                                    % (method.interface, method.name),
            "  static constexpr bool kReadOnly = %s, kTellsSecrets = %s, kWeb = %s;" %
            (yes[method.read_only], yes[method.secret], yes[method.web]),
            "  static constexpr %s;" % said,
            "  struct Reply {"] + members_of(protocol, method.reply, "    ") +
            ["    bool operator==(const Reply&) const = default;", "  };"]
            + members_of(protocol, method.params, "  ") +
            ["  bool operator==(const %s&) const = default;" % method.cpp, "};", ""])


METHODS_DOC = """\
// Each struct is a method's parameters, its `Reply` the answer. A client fills the struct and \
sends call_json(); the daemon gets
// it from parse_call() as one alternative of `Params`, and answers with reply_json<Method>().
//
// kReadOnly: after such a call every view is as before, nothing waits for the disk, and the audit \
log has no line of it, unless
// kTellsSecrets. kWeb: a session of the web page may call it. kAdministratorsMay: what only they \
may do by it; empty: anybody may call it."""


def methods_h(protocol, sources):
    out = header(sources, "The methods of the control protocol as plain data. Any thread.",
                 ['"proto/types.h"', "", "<cstddef>", "<string_view>", "<variant>"])
    out += METHODS_DOC.split("\n") + [""]
    for name, interface in zip(("kInterface", "kServiceInterface"), protocol.texts):
        out.append('inline constexpr std::string_view %s = "%s";' % (name, interface))
    out += ["", "// What a call may hold at most."]
    for name, limit in protocol.limits.items():
        for unit, number in limit.items():
            out.append("inline constexpr std::size_t kMax%s%s = %d;"
                       % (camel(name), camel(unit), number))
    out.append("")
    for method in protocol.methods:
        out += method_of(protocol, method)
    names = [method.cpp for method in protocol.methods]
    out += ["using Params = std::variant<%s>;" % ", ".join(names), "",
            "// Of a method by its whole name; false for one that there is not.",
            "bool is_read_only(std::string_view method);",
            "bool tells_secrets(std::string_view method);", ""]
    out += END + ["", "// For explicit instantiation: X(Method) for each.",
                  "#define GPUROTA_FOR_EACH_METHOD(X) "
                  + " ".join("X(%s)" % name for name in names)]
    return out


def visit_of(name, fields):
    if not fields:
        return ["template <class V, Like<%s> X>" % name, "void visit(V&&, X&) {}", ""]
    return (["template <class V, Like<%s> X>" % name, "void visit(V&& v, X& x) {"] +
            ['  v("%s", x.%s);' % (field.name, field.cpp) for field in fields] + ["}", ""])


def words_h(protocol, sources):
    out = header(sources, "The words of the enums.", ['"proto/reflection.h"', '"proto/types.h"'])
    for name, words in protocol.enums.items():
        out += ["template <>", "struct Words<%s> {" % name,
                "  static constexpr std::array<const char*, %d> kAll = {%s};"
                % (len(words) + 1, ", ".join('"%s"' % word for word in ["unknown"] + words)),
                "};"]
    return out + [""] + END


def fields_h(protocol, sources):
    out = header(sources, "The names of the fields, for whoever walks them.",
                 ['"proto/methods.h"', '"proto/reflection.h"'])
    out += ["// visit(v, x) calls v(\"name\", field) for each field of x, in the order of the "
            "interface.", ""]
    for struct in in_order(protocol.types):
        out += visit_of(struct.name, struct.fields)
    for method in protocol.methods:
        out += visit_of(method.cpp, method.params) + visit_of(method.cpp + "::Reply", method.reply)
    out += ["", "// The first field that is more than the interface allows of it; empty: none is."]
    for method in protocol.methods:
        out += breaks_limit_of(protocol, method)
    return out + [""] + END


def error_names_h(protocol, sources):
    out = header(sources, "The names of the errors.", ["<string_view>"])
    out += ['inline constexpr std::string_view k%s = "%s.%s";' % (name, interface, name)
            for interface, name in protocol.errors]
    return out + [""] + END


def limited_fields(protocol, fields, above=""):
    """(path, field) of all fields that have a limit, including those of structs that are fields."""
    found = []
    for field in fields:
        if field.limit or field.not_empty:
            found.append((above + field.name, field))
        elif field.kind in protocol.types and not field.optional and not field.list:
            found += limited_fields(protocol, protocol.types[field.kind].fields,
                                    above + field.name + ".")
    return found


def breaks_limit_of(protocol, method):
    limited = limited_fields(protocol, method.params)
    if not limited:
        return ["inline std::string_view breaks_limit(const %s&) { return {}; }" % method.cpp]
    lines = ["inline std::string_view breaks_limit(const %s& call) {" % method.cpp]
    for path, field in limited:
        limit = dict(protocol.limits.get(field.limit, {}))
        if field.not_empty:
            limit["least"] = 1
        values = ", ".join(".%s = %d" % (name, limit[name]) for name in ("least", "items", "bytes")
                           if name in limit)
        lines.append('  if (!is_within(call.%s, {%s})) return "%s";' % (path, values, path))
    return lines + ["  return {};", "}"]


def protocol_cpp(protocol, sources):
    out = ["// What types.h, methods.h and service.h declare. Made by tools/control_protocol.py "
           "from %s: edit that." % sources,
           '#include "proto/methods.h"', '#include "proto/service.h"', '#include "proto/words.h"',
           "", "namespace gpurota::proto {", ""]
    out += ["const char* to_string(%s word) { return word_of(word); }" % name
            for name in protocol.enums]
    for function, holds in (("is_read_only", lambda method: method.read_only),
                            ("tells_secrets", lambda method: method.secret)):
        out += ["", "bool %s(std::string_view method) {" % function,
                "  return %s;" % " ||\n         ".join(
            "method == %s::kMethod" % method.cpp for method in protocol.methods if holds(method)),
                "}"]
    out += ["", "std::string_view interface_text(std::string_view interface) {"]
    for interface, text in protocol.texts.items():
        out.append('  if (interface == "%s") return R"VARLINK(%s)VARLINK";' % (interface, text))
    return out + ["  return {};", "}", ""] + END


def read(paths):
    protocol = Protocol()
    for path in paths:
        Parser(path, protocol).read()
    known = set(SCALARS) | set(protocol.enums) | set(protocol.types)
    for struct in list(protocol.types.values()) + [Struct(m.name, m.params + m.reply, [])
                                                   for m in protocol.methods]:
        for field in struct.fields:
            if field.kind not in known:
                raise Mistake("%s.%s: there is no type %s" % (struct.name, field.name, field.kind))
    in_order(protocol.types)
    return protocol


def write(path, text):
    """Writes the file only if its text changes, so that nothing is compiled again without need."""
    file = pathlib.Path(path)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, paths = arguments[0], arguments[1:]
    try:
        protocol = read(paths)
    except (Mistake, OSError) as mistake:
        print("control_protocol: %s" % mistake, file=sys.stderr)
        return 1
    sources = " and ".join(os.path.basename(path) for path in paths)
    makers = [types_h, methods_h, words_h, fields_h, error_names_h, protocol_cpp]
    for name, make in zip(OUTPUTS, makers):
        write(os.path.join(folder, name), "\n".join(make(protocol, sources)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
