#!/usr/bin/env python3
"""Makes gpurota's parser, help, completions and man page from src/cli/commands.toml.

    tools/command_line.py OUT_DIR COMMANDS.toml MAN_TEMPLATE

OUT_DIR/raw.h            a field for each option, with what the user typed
OUT_DIR/command_table.cpp  the rows of src/cli/args/command_table.h, with the text of each help
OUT_DIR/gpurota.bash, _gpurota, gpurota.fish  completions
OUT_DIR/gpurota.1        the template with @SYNOPSIS@ and @OPTIONS@ filled in
"""

import os
import re
import sys
import textwrap
import tomllib

WIDTH = 79
COLUMN = 24  # where the text of an option begins
MARK = "Made by tools/command_line.py from src/cli/commands.toml: edit that."
# `complete`, and each of `arguments`, is a list of words, or a name in NAMES or OTHERS. Each shell
# completes each name in its own way. For a name in NAMES, `gpurota __complete` prints what can be
# completed.
NAMES = ("leases", "requests", "jobs", "fillers", "gpus", "models", "classes")
OTHERS = ("files", "directories", "variables", "users", "hosts", "command", "commands")
OPTION_KEYS = {"called", "letter", "value", "many", "complete", "only", "short", "help", "man"}
COMMAND_KEYS = {"title", "short", "usage", "options", "arguments", "most", "text", "examples",
                "exit", "exit_text", "says",
                "actions", "shows", "elsewhere"}


class Mistake(Exception):
    pass


class Option:
    def __init__(self, name, table):
        unknown = set(table) - OPTION_KEYS
        if unknown:
            raise Mistake("options.%s: there is no key %s" % (name, ", ".join(sorted(unknown))))
        for key in ("short", "help"):
            if not table.get(key):
                raise Mistake("options.%s: needs %s" % (name, key))
        self.key, self.name = name, table.get("called", name)
        self.letter = table.get("letter", "")
        self.value = table.get("value", "")
        self.many = table.get("many", False)
        self.complete = table.get("complete")
        self.only = self.complete if table.get("only") else []
        self.short, self.help, self.man = table["short"], table["help"], table.get("man")
        check_complete("options." + name, self.complete)
        if (self.many or self.complete) and not self.value:
            raise Mistake("options.%s: takes no value, so it has no many or complete" % name)
        if not isinstance(self.only, list):
            raise Mistake("options.%s: only is for a list of words" % name)
        if len(self.letter) > 1:
            raise Mistake("options.%s: letter is one letter" % name)

    def field(self):
        word = self.key.replace("-", "_")
        return (word + "_" if word in ("for", "as", "short", "continue", "default", "switch")
                else word)

    def kind(self):
        return "values" if self.many else "value" if self.value else "flag"

    def spelled(self):
        """"-m, --memory SIZE"."""
        letter = "-%s, " % self.letter if self.letter else "    "
        return "%s--%s%s" % (letter, self.name, " " + self.value if self.value else "")


def check_complete(where, complete):
    if complete is None or isinstance(complete, list) or complete in NAMES or complete in OTHERS:
        return
    raise Mistake("%s: nothing completes '%s'" % (where, complete))


class Command:
    """A command or action that has options of its own: "run", "job add"."""

    def __init__(self, name, table, line):
        self.name, self.table = name, table
        self.usage = table.get("usage", [])
        if isinstance(self.usage, str):
            self.usage = [self.usage]
        self.options = [line.option(name, each) for each in line.expand(table.get("options", []))]
        self.arguments = table.get("arguments", [])
        if isinstance(self.arguments, str):
            self.arguments = [self.arguments]
        for each in self.arguments:
            check_complete("commands." + name, each)
        self.most = table.get("most", 1 if " " in name and self.arguments else 0)
        letters = [option.letter for option in self.options + line.every if option.letter]
        twice = {letter for letter in letters if letters.count(letter) > 1}
        if twice:
            raise Mistake("commands.%s: -%s is two options" % (name, "".join(sorted(twice))))

    def takes_command(self):
        return "command" in self.arguments


class CommandLine:
    def __init__(self, table):
        self.table = table
        self.options = {name: Option(name, each) for name, each in table["options"].items()}
        self.lists = table.get("lists", {})
        self.every = [self.option("every", name) for name in table["every"]]
        self.alone = [self.option("alone", name) for name in table["alone"]]
        self.commands = table["commands"]
        self.parsed = []  # with options of their own
        for name, each in self.commands.items():
            unknown = set(each) - COMMAND_KEYS
            if unknown:
                raise Mistake("commands.%s: there is no key %s"
                              % (name, ", ".join(sorted(unknown))))
            if "actions" in each:
                self.parsed += [Command("%s %s" % (name, action), one, self)
                                for action, one in each["actions"].items()]
            else:
                self.parsed.append(Command(name, each, self))
        self.check()

    def check(self):
        grouped = [name for names in self.table["groups"].values() for name in names]
        for name in self.commands:
            if name != "help" and grouped.count(name) != 1:
                raise Mistake("groups: %s must be there once" % name)
        used = {option.key for option in self.every + self.alone}
        used |= {option.key for command in self.parsed for option in command.options}
        meanings = {}
        for option in self.options.values():
            meanings.setdefault(option.letter, []).append(option.name)
        for letter, names in meanings.items():
            if (letter and len(names) > 1
                and sorted(names) != sorted(self.table.get("letters", {}).get(letter, []))):
                raise Mistake("options.%s: -%s is --%s elsewhere: a letter means the same in every "
                              "command" % (names[1], letter, names[0]))
        idle = set(self.options) - used
        if idle:
            raise Mistake("options.%s: no command takes it" % sorted(idle)[0])

    def expand(self, names):
        for name in names:
            yield from self.lists[name[1:]] if name.startswith("@") else [name]

    def option(self, where, name):
        if name not in self.options:
            raise Mistake("%s: there is no option '%s'" % (where, name))
        return self.options[name]

    def actions(self, name):
        return [each for each in self.parsed if each.name.startswith(name + " ")]

    def find(self, name):
        return next(each for each in self.parsed if each.name == name)

    def takers(self, option):
        """The commands that take the option, by the first word of their names."""
        return list(dict.fromkeys(each.name.split(" ")[0] for each in self.parsed
                                  if option in each.options))


# Help.

def wrap(text, indent="", first=None):
    return textwrap.wrap(text, WIDTH, initial_indent=indent if first is None else first,
                         subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def aligned(left, text, column, indent="  "):
    """`left`, and then `text` from `column` on; a `left` that is too long gets a line of its
    own."""
    head = indent + left
    if len(head) + 2 > column:
        return [head] + wrap(text, " " * column) if text else [head]
    return wrap(text, " " * column, head.ljust(column)) if text else [head]


def usage_lines(name, usages):
    lines = []
    for at, usage in enumerate(usages):
        lead = ("usage: gpurota " if at == 0 else "       gpurota ") + name + " "
        # Text in brackets stays together.
        words = re.sub(r"\[[^][]*(?:\[[^][]*\][^][]*)*\]", lambda m: m.group().replace(" ", "\0"),
                       usage)
        lines += ([line.replace("\0", " ").rstrip() for line in wrap(words, " " * len(lead), lead)]
                  or [lead.rstrip()])
    return lines


def paragraphs(texts):
    for text in texts:
        yield ""
        yield from wrap(text)


def option_lines(options, says):
    for option in options:
        yield from aligned(option.spelled(), says.get(option.key, option.help), COLUMN)


def example_lines(examples):
    column = max((len(line) for line, what in examples if what and len(line) <= 44), default=0) + 5
    for line, what in examples:
        if not what:
            yield "  " + line
        elif len(line) + 2 < column and column + len(what) <= WIDTH:
            yield ("  " + line).ljust(column) + what
        else:
            yield from ["  " + line, " " * 6 + what]


def exit_lines(table):
    if "exit_text" not in table:
        return
    yield ""
    yield from wrap("exit status: " + table["exit_text"])
    for code, what in table.get("exit", []):
        yield from aligned("%3d" % code, what, 8)


def help_of(line, name):
    table = line.commands[name]
    lines = ["gpurota %s: %s" % (name, table["title"]), ""]
    if "actions" in table:
        shown = [line.option(name, each) for each in table["shows"]]
        missing = {o.name for each in line.actions(name)
                   for o in each.options} - {o.name for o in shown} - set(line.lists["lease"])
        if missing:
            raise Mistake("commands.%s: shows has no %s" % (name, ", ".join(sorted(missing))))
        for at, each in enumerate(line.actions(name)):
            rows = usage_lines(each.name, each.usage)
            lines += [rows[0] if at == 0 else rows[0].replace("usage:", "      ", 1)] + rows[1:]
    else:
        shown = line.find(name).options
        lines += usage_lines(name, table["usage"])
    if shown:
        lines += [""] + list(option_lines(shown, table.get("says", {})))
    lines += list(paragraphs(table.get("text", []))) + list(exit_lines(table))
    if table.get("examples"):
        lines += [""] + list(example_lines(table["examples"]))
    return "\n".join(lines) + "\n"


def general_help(line):
    lines = ["gpurota: " + line.table["title"], "", "usage: gpurota COMMAND [OPTION…]"]
    for title, names in line.table["groups"].items():
        lines += ["", title + ":"]
        for name in names:
            lines += aligned(name, line.commands[name]["short"], 12)
    lines += ["", "options of every command:"] + list(option_lines(line.every + line.alone, {}))
    lines += list(exit_lines(line.table))
    lines += ["", "'gpurota COMMAND --help' explains a command; 'man gpurota' has the details.", ""]
    return "\n".join(lines + list(example_lines(line.table["examples"]))) + "\n"


# C++.

def raw_h(line):
    kinds = {"flag": [], "value": [], "values": []}
    for option in line.options.values():
        kinds[option.kind()].append(option.field())
    return "\n".join([
        "// What the options write into, as it was typed. " + MARK, "#pragma once", "",
        "#include <optional>", "#include <string>",
        "#include <vector>", "", "namespace gpurota::cli {", "", "struct Raw {",
        "  bool " + ", ".join("%s = false" % each for each in kinds["flag"]) + ";",
        "  std::optional<std::string> " + ", ".join(kinds["value"]) + ";",
        "  std::vector<std::string> " + ", ".join(kinds["values"]) + ";",
        "  std::vector<std::string> positional;  // words that are no options", "};", "",
        "}  // namespace gpurota::cli", ""])


def rows_of(options):
    for option in options:
        letter = "'%s'" % option.letter if option.letter else "'\\0'"
        members = {"flag": "nullptr", "value": "nullptr", "values": "nullptr"}
        members[option.kind()] = "&Raw::" + option.field()
        yield '    {%s, "--%s", %s, %s, %s, "%s"},' % (letter, option.name, members["flag"],
                                                       members["value"], members["values"],
                                                   " ".join(option.only))


def identifier(name):
    return "k" + "".join(word.capitalize() for word in re.split("[ -]", name))


def array_of(name, options):
    if not options:
        return ["constexpr std::span<const OptionRow> %sOptions;" % name]
    return ["constexpr OptionRow %sOptions[] = {" % name] + list(rows_of(options)) + ["};"]


def literal(text):
    return 'R"help(%s)help"' % text


def command_table_cpp(line):
    out = ["// What command_table.h declares. " + MARK, '#include "cli/args/command_table.h"', "",
           "namespace gpurota::cli {", "namespace {", ""]
    out += array_of("kEvery", line.every) + array_of("kAlone", line.alone)
    for each in line.parsed:
        if not line.commands[each.name.split(" ")[0]].get("elsewhere"):
            out += array_of(identifier(each.name), each.options)
    out += ["", "constexpr CommandRow kCommands[] = {"]
    for name, table in line.commands.items():
        if "actions" in table:
            out.append('    {"%s", 0, {}, %s},' % (name, literal(help_of(line, name))))
            out += ['    {"%s", %d, %sOptions, {}},' % (each.name, each.most, identifier(each.name))
                    for each in line.actions(name)]
        else:
            elsewhere = table.get("elsewhere")
            out.append('    {"%s", %d, %s, %s},' % (name, line.find(name).most, "{}" if elsewhere
                                                    else identifier(name) + "Options",
                                                    "{}" if elsewhere else literal(
                                                        help_of(line, name))))
    out += ["};", "", "}  // namespace", "",
            "std::span<const OptionRow> options_of_every_command() { return kEveryOptions; }",
            "std::span<const OptionRow> options_without_command() { return kAloneOptions; }",
            "std::span<const CommandRow> all_commands() { return kCommands; }",
            "std::string_view general_help() {", "  return %s;" % literal(general_help(line)), "}",
            "",
            "}  // namespace gpurota::cli", ""]
    return "\n".join(out)


# Completions.

def words_of(line, command):
    return " ".join("--" + option.name
                    for option in command.options + ([] if " " in command.name else line.every))


def fill(template, **values):
    for name, text in values.items():
        template = template.replace("@%s@" % name, text)
    return template


def bash_value(complete):
    if isinstance(complete, list):
        return "_gpurota_words '%s' \"$current\"" % " ".join(complete)
    if complete == "gpus":
        return '_gpurota_gpu_ids "$current"'
    if complete in NAMES:
        return '_gpurota_words "$(_gpurota_names %s)" "$current"' % complete
    flag = {"files": "-f", "directories": "-d", "variables": "-e", "users": "-u",
            "hosts": "-A hostname"}.get(complete)
    return 'mapfile -t COMPREPLY < <(compgen %s -- "$current")' % flag if flag else ":"


def bash_values(line):
    """The case for the word after an option that takes a value."""
    lines = []
    for option in line.options.values():
        if not option.value:
            continue
        is_shared = [each.name for each in line.options.values()].count(option.name) > 1
        places = ["%s:--%s" % (name, option.name)
                  for name in (line.takers(option) if is_shared else ["*"])]
        if option.letter:
            places += ["%s:-%s" % (name, option.letter) for name in line.takers(option)]
        lines.append("    %s) %s; return ;;" % (" | ".join(places), bash_value(option.complete)))
    return "\n".join(lines)


def bash_arguments(line, command):
    """The case of one command: its options, and the names that it takes as arguments."""
    options = words_of(line, command) + (" --" if command.takes_command() else "")
    if command.arguments == ["gpus"]:
        return ('if [ "${current#-}" = "$current" ]; then _gpurota_gpu_ids "$current"; else '
                '_gpurota_words "%s" "$current"; fi' % options)
    if command.arguments == ["files"]:
        return 'mapfile -t COMPREPLY < <(compgen -f -- "$current")'
    names = ["$(_gpurota_names %s)" % each for each in command.arguments if each in NAMES]
    if "commands" in command.arguments:
        names.append(" ".join(name for name in line.commands if name != "help"))
    return '_gpurota_words "%s" "$current"' % " ".join(names + [options])


def bash_cases(line):
    lines = []
    for name, table in line.commands.items():
        if "actions" not in table:
            lines.append("    %s) %s ;;" % (name, bash_arguments(line, line.find(name))))
            continue
        lines.append('    %s)\n      case $action in\n        \'\') _gpurota_words "%s --help" '
                     '"$current" ;;' % (
            name, " ".join(table["actions"])))
        for each in line.actions(name):
            lines.append("        %s) %s ;;" % (each.name.split(" ")[1],
                                                bash_arguments(line, each)))
        lines.append("      esac\n      ;;")
    return "\n".join(lines)


def bash(line, template):
    every = " ".join("--" + option.name for option in line.every + line.alone)
    return fill(template, MARK=MARK, COMMANDS=" ".join(line.commands), EVERY=every,
                VALUES=bash_values(line), CASES=bash_cases(line),
                WITH_ACTIONS=" | ".join(name for name, table in line.commands.items()
                                        if "actions" in table),
                WITH_COMMAND=" | ".join(dict.fromkeys(each.name.split(" ")[0]
                                                      for each in line.parsed
                                                      if each.takes_command())))


def zsh_text(text):
    return text.replace("'", "'\"'\"'").replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh_action(complete):
    if isinstance(complete, list):
        return "(%s)" % " ".join(complete)
    if complete in NAMES:
        return "_gpurota_" + ("gpu_ids" if complete == "gpus" else complete)
    return {"files": "_files", "directories": "_files -/", "variables": "_parameters",
            "users": "_users", "hosts": "_hosts",
            "commands": "_gpurota_commands"}.get(complete, "")


def zsh_option(option):
    text = "[%s]" % zsh_text(option.short)
    if option.value:
        text += ":%s:%s" % (zsh_text(option.value.lower().replace(",…", "")),
                            zsh_action(option.complete))
    star = "*" if option.many else ""
    if not option.letter:
        return "'%s--%s%s'" % (star, option.name, text)
    excludes = "" if option.many else "(-%s --%s)" % (option.letter, option.name)
    return "'%s%s'{-%s,--%s}'%s'" % (excludes, star, option.letter, option.name, text)


def zsh_arguments(command):
    actions = [zsh_action(each) for each in command.arguments if each != "command"]
    if not actions:
        return []
    count = "1" if command.most == 1 else "*"
    what = actions[0] if len(actions) == 1 else "{%s}" % "; ".join(actions)
    return ["'%s:%s:%s'" % (count, "name", what)]


def zsh_case(line, command, indent):
    specs = [zsh_option(option) for option in command.options] + zsh_arguments(command)
    call = indent + " \\\n".join(["_arguments $every"] + [indent + "  " + spec for spec in specs])
    return call + "\n" + indent + "compadd -- --" if command.takes_command() else call


def zsh_cases(line):
    out = []
    for name, table in line.commands.items():
        out.append("    %s)" % name)
        if "actions" in table:
            out += ["      _gpurota_action %s || return" % " ".join(table["actions"]),
                    "      case $words[1] in"]
            for each in line.actions(name):
                out += ["        %s)" % each.name.split(" ")[1], zsh_case(line, each, "          "),
                        "          ;;"]
            out.append("      esac")
        else:
            out.append(zsh_case(line, line.find(name), "      "))
        out.append("      ;;")
    return "\n".join(out)


def zsh(line, template):
    commands = "\n".join("    '%s:%s'" % (name, zsh_text(table["short"]))
                         for name, table in line.commands.items())
    return fill(template, MARK=MARK, COMMANDS=commands, CASES=zsh_cases(line),
                EVERY="\n".join("    " + zsh_option(option) for option in line.every),
                VERSION=zsh_option(line.alone[0]))


def fish_text(text):
    return "'%s'" % text.replace("\\", "\\\\").replace("'", "\\'")


def fish_value(complete):
    if isinstance(complete, list):
        return " -x -a '%s'" % " ".join(complete)
    if complete == "gpus":
        return " -x -a '(__gpurota_gpu_ids)'"
    if complete in NAMES:
        return " -x -a '(__gpurota_names %s)'" % complete
    return {"files": " -r", "directories": " -x -a '(__fish_complete_directories)'",
            "users": " -x -a '(__fish_complete_users)'",
            "variables": " -x -a '(set -nx)'",
            "hosts": " -x -a '(__fish_print_hostnames)'"}.get(complete, " -x")


def fish_option(condition, option):
    letter = " -s " + option.letter if option.letter else ""
    value = fish_value(option.complete) if option.value else ""
    return "complete -c gpurota -n '%s'%s -l %s%s -d %s" % (condition, letter, option.name, value,
                                                            fish_text(option.short))


def fish_lines(line):
    for name, table in line.commands.items():
        yield "complete -c gpurota -n __gpurota_at -a %s -d %s" % (name, fish_text(table["short"]))
    for option in line.alone:
        yield fish_option("__gpurota_at", option)
    for option in line.every:
        yield fish_option("not __gpurota_behind_dashes", option)
    for option in line.options.values():
        if line.takers(option):
            yield fish_option("__gpurota_at " + " ".join(line.takers(option)), option)
    for name, table in line.commands.items():
        if "actions" in table:
            yield "complete -c gpurota -n '__gpurota_at %s' -a '%s'" % (name,
                                                                        " ".join(table["actions"]))
    for command in line.parsed:
        name, *action = command.name.split(" ")
        condition = "__gpurota_at " + name + "".join("; and __fish_seen_subcommand_from " + each
                                                     for each in action)
        for each in command.arguments:
            if each in NAMES:
                source = "(__gpurota_gpu_ids)" if each == "gpus" else "(__gpurota_names %s)" % each
                yield "complete -c gpurota -n '%s' -a '%s'" % (condition, source)
            elif each == "commands":
                yield "complete -c gpurota -n '%s' -a '%s'" % (condition, " ".join(line.commands))
            elif each == "files":
                yield "complete -c gpurota -n '%s' -F" % condition


def fish(line, template):
    return fill(template, MARK=MARK, LINES="\n".join(fish_lines(line)))


# The man page.

def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")


def marked(text):
    """Turns *bold* and _italic_ into fonts; options become bold without a mark."""
    pieces = re.split(
        r"(\*[^*]+\*|(?<!\w)_(?=\S)(?:[^_]|_(?=\w))+?_(?!\w)|(?<![\w-])--[a-z][a-z-]*)", text)
    out = ""
    for piece in pieces:
        if piece.startswith("--"):
            out += "\\fB%s\\fR" % roff(piece)
        elif len(piece) > 2 and piece[0] == piece[-1] and piece[0] in "*_":
            out += "\\f%s%s\\fR" % ("B" if piece[0] == "*" else "I", roff(piece[1:-1]))
        else:
            out += roff(piece)
    return out


def synopsis_of(usage):
    return re.sub(r"(?<![\w\\])(--?[a-z][a-z-]*)|\b([A-Z][A-Z]+|[A-Z]+(?=\.toml))\b",
                  lambda m: "\\fB%s\\fR" % roff(m.group(1)) if m.group(1)
                  else "\\fI%s\\fR" % m.group(2), usage).replace("…", "...").replace(
                      " -- ", " \\fB\\-\\-\\fR ")


def synopsis(line):
    rows = []
    for command in line.parsed:
        if command.name != "help":
            rows += [".B gpurota %s\n%s" % (command.name, synopsis_of(usage))
                     for usage in command.usage]
    return "\n.br\n".join(row.rstrip() for row in rows)


def listed(words):
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def man_options(line):
    out = []
    for option in line.options.values():
        letter = "\\fB\\-%s\\fR, " % option.letter if option.letter else ""
        value = " \\fI%s\\fR" % roff(option.value) if option.value else ""
        out += [".TP", "%s\\fB%s\\fR%s" % (letter, roff("--" + option.name), value)]
        text = option.man or option.help[0].upper() + option.help[1:] + "."
        takers = line.takers(option)
        if takers:
            text = "(%s) " % listed(["*%s*" % name for name in takers]) + text
        says = ["With *%s*: %s." % (name, table["says"][option.key])
                for name, table in line.commands.items()
                if option.key in table.get("says", {})]
        out += textwrap.wrap(marked(" ".join([text] + says)), 110, break_long_words=False,
                             break_on_hyphens=False)
    return "\n".join("\\&" + each if each.startswith(("'",)) else each for each in out)


def man(line, template):
    return fill(template, SYNOPSIS=synopsis(line), OPTIONS=man_options(line))


def main(arguments):
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    out, source, man_template = arguments[1:]
    templates = os.path.join(os.path.dirname(source), "completions")
    try:
        with open(source, "rb") as file:
            line = CommandLine(tomllib.load(file))
        made = {"raw.h": raw_h(line), "command_table.cpp": command_table_cpp(line)}
        for name, make, template in (("gpurota.bash", bash,
                                      os.path.join(templates, "gpurota.bash.in")),
                                     ("_gpurota", zsh, os.path.join(templates, "_gpurota.in")),
                                     ("gpurota.fish", fish,
                                      os.path.join(templates, "gpurota.fish.in")),
                                     ("gpurota.1", man, man_template)):
            with open(template, encoding="utf-8") as file:
                made[name] = make(line, file.read())
    except (Mistake, tomllib.TOMLDecodeError, KeyError) as error:
        print("%s: %s" % (source, error), file=sys.stderr)
        return 1
    os.makedirs(out, exist_ok=True)
    for name, text in made.items():
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
