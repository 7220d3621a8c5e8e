"""Tests of what is made of the table of the command line: python3 command_line_test.py"""

import pathlib
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
import command_line  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = """
title = "t"
every = ["help"]
alone = ["version"]
examples = []
[groups]
"all" = ["run", "job"]
[lists]
lease = ["memory"]
[options]
help = { letter = "h", short = "explain", help = "this help" }
version = { short = "the version", help = "the version" }
memory = { letter = "m", value = "SIZE", short = "how much", help = "how much it may have" }
ids = { value = "ID,…", many = true, complete = "gpus", short = "which", help = "which GPUs" }
when = { value = "WHEN", complete = ["no", "always"], only = true, short = "it's [odd]: so", \
help = "when" }
[commands.run]
title = "run it"
short = "run it"
usage = ["[OPTION…] -- COMMAND"]
options = ["@lease", "ids"]
arguments = "command"
[commands.run.says]
memory = "of the slice"
[commands.job]
title = "keep it"
short = "keep it"
shows = ["when"]
actions = { add = { usage = "NAME", options = ["when", "@lease"], arguments = "command" }, \
list = { usage = "", options = [] } }
"""


def line(change=lambda text: text):
    return command_line.CommandLine(tomllib.loads(change(TABLE)))


class CommandLine(unittest.TestCase):
    def refuses(self, old, new, what):
        self.assertIn(old, TABLE)
        with self.assertRaisesRegex(command_line.Mistake, what):
            made = line(lambda text: text.replace(old, new))
            command_line.command_table_cpp(made)

    def test_what_is_typed_has_a_field_of_its_kind(self):
        made = command_line.raw_h(line())
        self.assertIn("bool help = false, version = false;", made)
        self.assertIn("std::optional<std::string> memory, when;", made)
        self.assertIn("std::vector<std::string> ids;", made)

    def test_rows_are_those_of_the_command_alone(self):
        made = command_line.command_table_cpp(line())
        self.assertIn("{'m', \"--memory\", nullptr, &Raw::memory, nullptr, \"\"},", made)
        self.assertIn('nullptr, &Raw::when, nullptr, "no always"},', made)
        self.assertIn('{"job add", 1, kJobAddOptions, {}},', made)
        self.assertIn("constexpr std::span<const OptionRow> kJobListOptions;", made)

    def test_help_says_what_the_command_says(self):
        self.assertIn("of the slice", command_line.help_of(line(), "run"))
        self.assertIn("usage: gpurota job add NAME\n       gpurota job list\n",
                      command_line.help_of(line(), "job"))

    def test_help_of_the_real_table_fits_a_terminal(self):
        with open(ROOT / "src/cli/commands.toml", "rb") as file:
            real = command_line.CommandLine(tomllib.load(file))
        for name in real.commands:
            text = "" if real.commands[name].get("elsewhere") else command_line.help_of(real, name)
            for row in text.split("\n"):
                self.assertLessEqual(len(row), 79, row)

    def test_shells_get_text_that_cannot_break_them(self):
        made = command_line.zsh_option(line().options["when"])
        self.assertEqual(made, "'--when[it'\"'\"'s (odd)\\: so]:when:(no always)'")
        self.assertIn("-d 'it\\'s [odd]: so'",
                      command_line.fish_option("x", line().options["when"]))

    def test_man_marks(self):
        self.assertEqual(command_line.marked("*run* with --no-more and _host_budget_, a-b"),
                         "\\fBrun\\fR with \\fB\\-\\-no\\-more\\fR and \\fIhost_budget\\fR, a\\-b")

    def test_mistakes_are_told(self):
        self.refuses('options = ["@lease", "ids"]', 'options = ["@lease", "idz"]',
                     "no option 'idz'")
        self.refuses('complete = "gpus"', 'complete = "gpu"', "nothing completes 'gpu'")
        self.refuses('title = "run it"', 'titel = "run it"', "no key titel")
        self.refuses('"all" = ["run", "job"]', '"all" = ["run"]', "job must be there once")
        self.refuses('version = { short', 'version = { letter = "mm", short', "one letter")
        self.refuses('ids = { value', 'ids = { letter = "m", value', "-m is two options")
        # No command takes both.
        self.refuses('version = { short', 'version = { letter = "m", short',
                     "means the same in every command")
        self.refuses('complete = "gpus"', 'complete = "gpus", only = true',
                     "only is for a list of words")
        self.refuses('shows = ["when"]', "shows = []", "shows has no when")
        self.refuses('options = ["when", "@lease"]', 'options = ["@lease"]', "no command takes it")

    def test_words_that_are_marked_may_have_spaces_and_underscores(self):
        for text, made in (('_"Fri 18:00"_, _+2h_ or _host_budget_',
                            '\\fI"Fri 18:00"\\fR, \\fI+2h\\fR or \\fIhost_budget\\fR'),
                           ("of *run* and snake_case", "of \\fBrun\\fR and snake_case")):
            self.assertEqual(command_line.marked(text), made)

    def test_the_manual_has_no_mark_left(self):
        with open(ROOT / "src/cli/commands.toml", "rb") as file:
            made = command_line.CommandLine(tomllib.load(file))
        page = command_line.man(made, (ROOT / "man/gpurota.1.in").read_text(encoding="utf-8"))
        self.assertNotRegex(page, r"(?<!\w)_\S|\S_(?!\w)")


if __name__ == "__main__":
    unittest.main()
