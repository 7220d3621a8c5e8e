"""Tests of the code made of the protocol's Varlink files: python3 control_protocol_test.py"""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import control_protocol  # noqa: E402

HEAD = "# [limit note: 10 bytes]\n# [limit list: 3 items, 20 bytes]\ninterface dev.example\n\n"


class ControlProtocol(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, text):
        """The generated files by name; or, if the text has a mistake, the error message."""
        source = self.folder / "dev.example.varlink"
        source.write_text(HEAD + text)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            failed = control_protocol.main([str(self.folder), str(source)])
        if failed:
            return said.getvalue()
        return {name: (self.folder / name).read_text() for name in control_protocol.OUTPUTS}

    def members(self, text):
        made = self.make("type A (\n%s\n)\n" % text)
        self.assertIsInstance(made, dict, made)
        struct = made["types.h"].split("struct A {")[1].split("bool operator")[0]
        return [line.strip() for line in struct.split("\n") if line.strip()
                and not line.strip().startswith("//")]

    def test_a_field_is_what_varlink_says(self):
        self.assertEqual(self.members("a: int,\nb: ?bool,\nc: []string,\nd: ?[]int"),
                         ["int a = 0;", "std::optional<bool> b{};", "std::vector<std::string> c;",
                          "std::optional<std::vector<int>> d{};"])

    def test_its_name_says_what_varlink_cannot(self):
        self.assertEqual(self.members("used_bytes: int,\nlease_id: ?string,\npids: []int,\nbytes: "
                                      "int"),
                         ["Bytes used_bytes;", "std::optional<LeaseId> lease_id{};",
                          "std::vector<pid_t> pids;", "int bytes = 0;"])

    def test_a_word_in_brackets_says_it_before_the_name(self):
        self.assertEqual(self.members("since: string, # [time] of the first\nn: int # [count, "
                                      "default 1]"),
                         ["WallTime since;", "std::uint64_t n = 1;"])

    def test_words_become_an_enum_over_several_lines_and_are_used_again(self):
        made = self.make("type A (\n  state: string,  # [State: in_use,\n                  # free] "
                         "free: nobody\n  other: ?string  # [State]\n)\n")
        self.assertIn("enum class State { kUnknown, kInUse, kFree };", made["types.h"])
        self.assertIn("State state = State::kUnknown;", made["types.h"])
        self.assertIn("std::optional<State> other{};", made["types.h"])
        self.assertIn('{"unknown", "in_use", "free"}', made["words.h"])

    def test_a_type_stands_behind_those_it_is_made_of(self):
        made = self.make("type A (b: []B)\ntype B (n: int)\n")
        self.assertLess(made["types.h"].index("struct B"), made["types.h"].index("struct A"))

    def test_what_holds_of_a_method(self):
        made = self.make("# Looks.\n# [read-only, tells secrets]\nmethod Look() -> ()\n\n# "
                         "[administrators may do it]\nmethod Do() -> ()\n")
        reading, do = made["methods.h"].split("struct Look {")[1].split("struct Do {")
        self.assertIn("kReadOnly = true, kTellsSecrets = true", reading)
        self.assertIn("kReadOnly = false, kTellsSecrets = false", do)
        self.assertIn('kAdministratorsMay = "do it"', do)
        self.assertIn("// Looks.", made["methods.h"])
        self.assertIn("using Params = std::variant<Look, Do>;", made["methods.h"])

    def test_limits(self):
        made = self.make("method Say(\n  a: ?string, # [note, not empty]\n  b: []string, # "
                         "[list]\n  c: string\n) -> ()\n")
        self.assertIn("kMaxNoteBytes = 10;", made["methods.h"])
        self.assertIn("kMaxListItems = 3;", made["methods.h"])
        self.assertIn('if (!is_within(call.a, {.least = 1, .bytes = 10})) return "a";',
                      made["fields.h"])
        self.assertIn('if (!is_within(call.b, {.items = 3, .bytes = 20})) return "b";',
                      made["fields.h"])
        self.assertNotIn("call.c", made["fields.h"])

    def test_a_limit_inside_of_a_struct_is_named_by_its_path(self):
        made = self.make("type A (note: string # [note]\n)\nmethod Say(a: A) -> ()\n")
        self.assertIn('if (!is_within(call.a.note, {.bytes = 10})) return "a.note";',
                      made["fields.h"])

    def test_the_names_of_errors(self):
        self.assertIn('kGone = "dev.example.Gone"',
                      self.make("error Gone (message: string)\n")["error_names.h"])

    def test_mistakes_are_told_with_their_place(self):
        for text, told in (("type A (n: int # [tme]\n)\n", "n: [tme] says nothing known of int"),
                           ("type A (n: int # [time]\n)\n", "[time] says nothing known of int"),
                           ("type A (b: B)\n", "A.b: there is no type B"),
                           ("type A (a: A)\n", "type A has itself in it"),
                           ("type A (a: string, # [S: x]\nb: string # [S: y]\n)\n",
                            "the words of S are listed twice"),
                           ("# [read-onyl]\nmethod M() -> ()\n",
                            "method M: [read-onyl] says nothing known"),
                           ("method M() => ()\n", "is not Varlink"),
                           ("method M(a int) -> ()\n",
                            "dev.example.varlink:5: 'int' where ':' belongs"),
                           ("type A (a: int\n", "ends in the middle")):
            with self.subTest(text):
                self.assertIn(told, self.make(text))


if __name__ == "__main__":
    unittest.main()
