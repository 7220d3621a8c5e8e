#!/usr/bin/env python3
"""Tests of the checks themselves: each check must find its kind of mistake, and nothing else."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_docs  # noqa: E402
import check_fields  # noqa: E402
import check_layers  # noqa: E402
import check_names  # noqa: E402
import check_packages  # noqa: E402
import check_reasons  # noqa: E402
import check_sizes  # noqa: E402
import check_skips  # noqa: E402
import check_threads  # noqa: E402
import check_walks  # noqa: E402
import check_words  # noqa: E402
import list_skips  # noqa: E402
import version  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def includes(self, path, *names):
        self.write(path, "".join("#include %s\n" % name for name in names))


class Layers(Tree):
    def setUp(self):
        super().setUp()
        for header in ("base/a.h", "base/log.h", "core/b.h", "abi/c.h", "cli/d.h", "sys/e.h",
                       "ports/f.h"):
            self.write("src/" + header, "#pragma once\n")
        self.write("sim/gpu/own.h", "#pragma once\n")

    def problems(self):
        return check_layers.check_tree(self.root)

    def assert_refused(self, text):
        problems = self.problems()
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_allows_what_the_table_allows(self):
        self.includes("src/core/x.cpp", '"core/b.h"', '"base/a.h"', "<vector>", "<fmt/core.h>")
        self.includes("src/daemon/x.cpp", '"core/b.h"', '"sys/e.h"', '"base/log.h"', "<thread>")
        self.includes("src/interposer/x.cpp", '"abi/c.h"', "<dlfcn.h>", "<atomic>")
        self.includes("src/store/x.cpp", '"ports/f.h"', "<sqlite3.h>")
        self.includes("sim/gpu/x.cpp", '"sim/gpu/own.h"', '"own.h"', '"abi/c.h"', '"base/a.h"')
        self.includes("tests/integration/x_test.cpp", '"cli/d.h"', '"sys/e.h"', "<gtest/gtest.h>")
        self.assertEqual(self.problems(), [])

    def test_refuses_an_include_of_a_higher_layer(self):
        self.includes("src/base/x.cpp", '"core/b.h"')
        self.assert_refused("base may not include core")

    def test_refuses_what_the_daemon_may_not_see(self):
        self.includes("src/daemon/x.cpp", '"cli/d.h"')
        self.assert_refused("src/daemon/x.cpp:1: daemon may not include cli")

    def test_refuses_adapters_that_know_each_other(self):
        self.includes("src/store/x.cpp", '"sys/e.h"')
        self.assert_refused("store may not include sys")

    def test_refuses_anything_of_ours_but_abi_in_the_interposer(self):
        self.includes("src/interposer/x.cpp", '"base/a.h"')
        self.assert_refused("interposer may not include base")

    def test_refuses_the_standard_library_in_the_interposer(self):
        self.includes("src/interposer/x.cpp", "<string>")
        self.assert_refused("nothing but libc")

    def test_refuses_cxx_in_abi(self):
        self.includes("src/abi/x.h", "<cstdint>")
        self.assert_refused("C-compatible")

    def test_refuses_heavy_headers_in_headers(self):
        self.includes("src/proto/x.h", "<nlohmann/json.hpp>")
        self.assert_refused(".cpp files only")

    def test_lets_an_internal_header_have_them_which_its_own_folder_includes(self):
        self.includes("src/proto/x_internal.h", "<nlohmann/json.hpp>")
        self.includes("src/proto/x.cpp", '"proto/x_internal.h"')
        self.assertEqual(self.problems(), [])
        self.includes("src/daemon/y.cpp", '"proto/x_internal.h"')
        self.assert_refused("its own folder")

    def test_lets_rooms_that_may_include_its_room_have_an_internal_header(self):
        self.includes("src/kube/api/x_internal.h", "<nlohmann/json.hpp>")
        self.includes("src/kube/dra/x.cpp", '"kube/api/x_internal.h"')
        self.assertEqual(self.problems(), [])
        self.includes("src/kube/dra/y.h", '"kube/api/x_internal.h"')
        self.assert_refused("its own folder")

    def test_refuses_heavy_headers_of_others(self):
        self.includes("src/daemon/x.cpp", "<sqlite3.h>")
        self.assert_refused("belongs to store")

    def test_refuses_io_and_logging_where_only_decisions_are_made(self):
        self.includes("src/sched/x.cpp", "<sys/socket.h>")
        self.assert_refused("only decides")
        self.includes("src/sched/x.cpp", '"base/log.h"')
        self.assert_refused("never logs")

    def test_refuses_regex_everywhere(self):
        self.includes("src/daemon/x.cpp", "<regex>")
        self.assert_refused("parse by hand")

    def test_refuses_a_folder_that_is_not_in_the_table(self):
        self.includes("src/misc/x.cpp", "<vector>")
        self.assert_refused("not in the layer table")

    def test_refuses_names_that_are_no_file(self):
        self.includes("src/core/x.cpp", '"lost.h"')
        self.assert_refused("no file of the project")

    def test_an_empty_tree_is_a_failure(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(check_layers.main([empty]), 1)


ROOMS = {"daemon": {"low": [], "aside": [], "high": ["low"],
                    check_layers.ROOT: ["low", "aside", "high"]}}


@unittest.mock.patch.object(check_layers, "ROOMS", ROOMS)
class Rooms(Tree):
    def setUp(self):
        super().setUp()
        for header in ("daemon/low/a.h", "daemon/aside/b.h", "daemon/high/c.h", "daemon/d.h",
                       "base/e.h"):
            self.write("src/" + header, "#pragma once\n")

    def problems(self):
        return check_layers.check_tree(self.root)

    def assert_refused(self, text):
        problems = self.problems()
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_allows_downwards(self):
        self.includes("src/daemon/low/x.cpp", '"daemon/low/a.h"', '"a.h"', '"base/e.h"',
                      '"daemon/generated.h"')
        self.includes("src/daemon/high/x.cpp", '"daemon/low/a.h"', '"../low/a.h"')
        self.includes("src/daemon/x.cpp", '"daemon/d.h"', '"daemon/high/c.h"')
        self.includes("src/daemon/low/x_test.cpp", '"daemon/high/c.h"', '"daemon/d.h"')
        self.assertEqual(self.problems(), [])

    def test_refuses_upwards(self):
        self.includes("src/daemon/low/x.cpp", '"daemon/high/c.h"')
        self.assert_refused("src/daemon/low/x.cpp:1: daemon/low may not include daemon/high (only "
                            "itself)")

    def test_refuses_upwards_also_from_the_own_folder(self):
        self.includes("src/daemon/low/x.h", '"../high/c.h"')
        self.assert_refused("daemon/low may not include daemon/high")

    def test_refuses_aside(self):
        self.includes("src/daemon/high/x.cpp", '"daemon/aside/b.h"')
        self.assert_refused("daemon/high may not include daemon/aside (only low)")

    def test_refuses_the_root_which_composes_the_rooms(self):
        self.includes("src/daemon/high/x.cpp", '"daemon/d.h"')
        self.assert_refused("daemon/high may not include its root")

    def test_refuses_a_room_that_is_not_in_the_table(self):
        self.includes("src/daemon/attic/x.cpp", "<vector>")
        self.assert_refused("room 'daemon/attic' is not in the table")

    def test_allows_a_folder_that_is_beside_the_rooms(self):
        self.includes("src/daemon/attic/x.cpp", '"daemon/d.h"')
        with unittest.mock.patch.object(check_layers, "WITH_ROOT", {("daemon", "attic")}):
            self.assertEqual(self.problems(), [])

    def test_refuses_a_table_that_leads_back(self):
        with unittest.mock.patch.object(check_layers, "ROOMS",
                                        {"daemon": dict(ROOMS["daemon"], low=["high"])}):
            self.assert_refused("room 'daemon/low' may include 'high', which is not before it")

    def documented(self, *rows):
        table = "| Room | Is | May include |\n|---|---|---|\n"
        self.write("ARCHITECTURE.md", "# A\n\n" + table
                   + "".join("| `src/%s` | what | %s |\n" % row for row in rows) + "\n")
        return list(check_docs.check_rooms(self.root))

    def test_holds_the_document_to_the_table(self):
        rows = [("daemon/low", "–"), ("daemon/aside", "–"), ("daemon/high", "low"),
                ("daemon", "low high aside")]
        self.assertEqual(self.documented(*rows), [])
        self.assertIn("no row for the room src/daemon/low", self.documented(*rows[1:])[0])
        self.assertIn("src/daemon/high may include low",
                      self.documented(*rows[:2], ("daemon/high", "–"), rows[3])[0])
        self.assertIn("not in tools/check_layers.py",
                      self.documented(*rows, ("daemon/attic", "–"))[0])
        self.assertIn("twice", self.documented(*rows, rows[3])[0])


class LayerTable(Tree):
    def problems(self, change=lambda rows: None):
        rows = {folder: " ".join(allowed) or "–"
                for folder, allowed in check_layers.ALLOWED.items()
                if folder not in check_layers.GUESTS}
        rows.update((folder, "all") for folder in check_layers.FREE)
        for folder in rows:
            path = folder if folder in ("sim",) + check_layers.FREE else "src/" + folder
            os.makedirs(os.path.join(self.root, path), exist_ok=True)
        change(rows)
        self.write("ARCHITECTURE.md", "# A\n\n| Folder | Is | May include |\n|---|---|---|\n"
                   + "".join(
            "| `src/%s` | what | %s |\n" % row for row in rows.items())
                   + "\n## Words\n| `no` | row |\n")
        return list(check_docs.check_table(self.root))

    def test_takes_a_table_that_says_what_is_checked(self):
        self.assertEqual(self.problems(), [])

    def test_refuses_every_row_that_does_not(self):
        for folder, said in (("daemon", "all above"), ("cli", "base"), ("demo", "–"),
                             ("tests", "base core")):
            problems = self.problems(lambda rows: rows.update({folder: said}))
            self.assertEqual(len(problems), 1, problems)
            self.assertIn("%s may include" % folder, problems[0])

    def test_refuses_a_folder_without_a_row_and_a_row_without_a_folder(self):
        self.assertIn("no row for cli", self.problems(lambda rows: rows.pop("cli"))[0])
        self.assertIn("not in tools/check_layers.py",
                      self.problems(lambda rows: rows.update(misc="base"))[0])

    def test_refuses_a_row_that_cannot_be_read(self):
        self.assertIn("cannot read", self.problems(lambda rows: rows.update({"a b": "base"}))[0])


class Guests(Tree):
    def test_include_beyond_the_client_only_what_is_listed(self):
        for header in ("sys/worker.h", "sys/clock.h", "client/a.h"):
            self.write("src/" + header, "#pragma once\n")
        with unittest.mock.patch.object(check_layers, "GUESTS", {"kube": ["sys/worker.h"]}):
            self.includes("src/kube/a.cpp", '"client/a.h"', '"sys/worker.h"')
            self.assertEqual(check_layers.check_tree(self.root), [])
            self.includes("src/kube/b.cpp", '"sys/clock.h"')
            self.assertIn("kube may not include sys", check_layers.check_tree(self.root)[0])
            self.includes("src/kube/b.cpp")
            self.includes("src/kube/a.cpp", '"client/a.h"')
            unused, = check_layers.check_guest_headers(self.root)
            self.assertIn("needs no 'sys/worker.h'", unused)

    def test_are_included_by_nobody_and_stay_with_the_client(self):
        for row, problem in (({"cli": ["web"]}, "may not include guest 'web'"),
                             ({"web": ["daemon"]}, "guest 'web' may not include 'daemon'")):
            with unittest.mock.patch.dict(check_layers.ALLOWED, row):
                self.assertIn(problem, list(check_layers.check_guest_table())[0])

    def documented(self, *rows):
        table = "| Guest | Is | May include | And |\n|---|---|---|---|\n"
        self.write("ARCHITECTURE.md", "# A\n\n" + table + "".join(
            "| `src/%s` | what | %s | %s |\n" % row for row in rows) + "\n")
        return list(check_docs.check_guests(self.root))

    def test_have_their_rows(self):
        rows = [(guest, " ".join(check_layers.ALLOWED[guest]), " ".join(headers) or "–")
                for guest, headers in check_layers.GUESTS.items()]
        self.assertEqual(self.documented(*rows), [])
        self.assertIn("guest burn", self.documented(*rows[:-1])[0])
        self.assertIn("guest kube", self.documented(("kube", "base", "–"), *rows[1:])[0])
        self.assertIn("cannot read", self.documented(*rows, ("a b", "base", "–"))[0])


class Walks(Tree):
    STEPS = ("| 1 | – | `src/a.cpp` | `begin` | – | starts |",
             "| 2 | 1 | `src/b.cpp` | `B::go_on` | `go_on` | goes on |",
             "| 3 | 1 | `src/c.cpp` | `take` | `kMessage` | hears |")

    def problems(self, *steps, most=3):
        self.write("src/a.cpp",
                   "int begin(int a,\n          int b) {\n  b_.go_on();\n  send(kMessage);\n}\n")
        self.write("src/b.cpp", "void B::go_on() const {\n}\n// void spoken() {\n")
        self.write("src/c.cpp", "int take();\nint take() {\n  if (kMessage) other();\n}\n")
        self.write("ARCHITECTURE.md", "# A\n\n### W\n\n| Step |\n|---|\n%s\n\n## B\n"
                   % "\n".join(steps or self.STEPS))
        with unittest.mock.patch.object(check_walks, "WALKS", {"W": most}):
            return check_walks.check_tree(self.root)

    def assert_refused(self, text, *steps, **most):
        problems = self.problems(*steps, **most)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_takes_a_walk_that_is_true(self):
        self.assertEqual(self.problems(), [])

    def test_refuses_functions_and_files_that_are_not_there(self):
        first, second, third = self.STEPS
        self.assert_refused("src/b.cpp does not define B::go_off", first,
                            second.replace("`B::go_on`", "`B::go_off`"), third)
        self.assert_refused("src/b.cpp does not define spoken", first,
                            second.replace("`B::go_on`", "`spoken`"), third)
        self.assert_refused("src/c.cpp does not define other", first, second,
                            third.replace("`take`", "`other`"))
        self.assert_refused("src/d.cpp is not there", first, second,
                            third.replace("c.cpp", "d.cpp"))

    def test_refuses_steps_that_have_nothing_to_do_with_each_other(self):
        first, second, third = self.STEPS
        self.assert_refused("step 2 has no kMessage", first, second,
                            third.replace("| 3 | 1 |", "| 3 | 2 |"))
        self.assert_refused("src/c.cpp has no go_on", first, second,
                            third.replace("`kMessage`", "`go_on`"))
        self.assert_refused("not both", first, second, third.replace("`kMessage`", "–"))

    def test_refuses_a_way_back(self):
        first, second, third = self.STEPS
        self.assert_refused("not before it", first, second.replace("| 2 | 1 |", "| 2 | 3 |"), third)
        self.assert_refused("there twice", first, second,
                            "| 3 | 1 | `src/b.cpp` | `B::go_on` | `go_on` | again |")

    def test_refuses_a_walk_that_is_too_long_or_cannot_be_read(self):
        self.assert_refused("has 3 steps, not 2 to 2", most=2)
        self.assert_refused("cannot be read", *self.STEPS[:2], "| 3 | `src/c.cpp` |")


class Merges(Tree):
    def test_marks_of_a_merge_are_found_in_any_file(self):
        self.write("README.md", "a\n")
        self.write("python/x.py", "a = 1\n%s HEAD\n" % ("<" * 7))
        self.write("tools/y.sh", "%s 45ca62d7 (y)\n" % (">" * 7))
        found = sorted(check_docs.check_merges(self.root))
        places = [line.split(": ")[0] for line in found]
        self.assertEqual(places, ["python/x.py:2", "tools/y.sh:1"])


class Words(Tree):
    TABLE = """# Words
| Verb | Not | Means |
|---|---|---|
| `parse_` | `read_` | another table |

| Use | Not | Because |
|---|---|---|
| leaves | `makes way`, gives in | a reason with `code` |
| after '--' | `two dashes` | another |
"""

    def problems(self):
        self.write("docs/dev/words.md", self.TABLE)
        return list(check_docs.check_words(self.root))

    def assert_refused(self, path, line):
        problems = self.problems()
        self.assertEqual(len(problems), 1, problems)
        self.assertTrue(problems[0].startswith("%s:%d: " % (path, line)), problems)

    def test_takes_the_column_not_of_its_table_alone(self):
        self.problems()
        self.assertEqual(check_docs.refused_phrases(self.root), ["makes way", "two dashes"])

    def test_refuses_in_documents_for_users_also_over_a_line_break(self):
        self.write("README.md", "First.\nA filler Makes\nway here.\n")
        self.assert_refused("README.md", 2)

    def test_refuses_in_man_pages_through_fonts(self):
        self.write("man/x.1", ".SH NAME\nx\n.B behind\ntwo \\fBdashes\\fR\n")
        self.assert_refused("man/x.1", 4)

    def test_refuses_in_literals_that_the_compiler_joins(self):
        self.write("src/cli/x.cpp", 'int y;\nauto x = "behind two "\n         "dashes";\n')
        self.assert_refused("src/cli/x.cpp", 2)

    def test_refuses_in_raw_literals(self):
        self.write("src/cli/x.cpp", 'auto x = R"help(usage: x "y"\n  it makes way\n)help";\n')
        self.assert_refused("src/cli/x.cpp", 2)

    def test_leaves_alone_what_users_do_not_read(self):
        self.write("docs/design/x.md", "It makes way.\n")
        self.write("docs/dev/x.md", "Not: makes way.\n")
        self.write("src/cli/x.cpp",
                   '// It makes way.\nbool makes_way(); call("makes", "way"); call("two"\n, '
                   '"dashes");\n')
        self.write("src/cli/x_test.cpp", 'say("makes way");\n')
        self.write("README.md", "It remakes way; two dashesx.\n")
        self.assertEqual(self.problems(), [])

    def test_a_table_without_phrases_is_a_failure(self):
        self.write("docs/dev/words.md", "# Words\n")
        self.assertIn("no refused phrases", next(check_docs.check_words(self.root)))


class Absent(Tree):
    """Features that gpurota lacks according to the documents."""

    def problems(self, readme, *rows):
        self.write("docs/absent.tsv", "# why\nfile\tsentence\tprobe\n"
                   + "".join("\t".join(row) + "\n" for row in rows))
        self.write("README.md", readme)
        return list(check_docs.check_absent(self.root))

    SLURM = "There is no Slurm integration."

    def test_is_listed_and_is_not_there(self):
        self.assertEqual(self.problems("Well. There is no\nSlurm integration.\n",
                                       ("README.md", self.SLURM, "path:src/slurm")), [])

    def test_must_be_listed(self):
        problem, = self.problems(self.SLURM + " It runs; gpurota has no web page.",
                                 ("README.md", self.SLURM, "path:src/slurm"))
        self.assertIn("README.md: 'gpurota has no web page", problem)

    def test_must_not_have_been_built_meanwhile(self):
        self.write("src/slurm/x.cpp", "")
        problem, = self.problems(self.SLURM, ("README.md", self.SLURM, "path:src/slurm"))
        self.assertIn("path:src/slurm finds it", problem)
        self.write("CHANGELOG.md", "## [0.9.0]\n")
        problem, = self.problems("There is no release yet.",
                                 ("README.md", "There is no release yet.",
                                  "text:CHANGELOG.md:^## \\[[0-9]"))
        self.assertIn("finds it", problem)

    def test_must_stand_in_its_file(self):
        problem, = self.problems("Nothing.", ("README.md", self.SLURM, "path:src/slurm"))
        self.assertIn("does not stand in README.md", problem)

    def test_a_row_that_cannot_be_read_is_a_failure(self):
        for row in (("README.md", self.SLURM), ("README.md", self.SLURM, "file:x"),
                    ("README.md", self.SLURM, "text:nowhere:x")):
            self.assertIn("cannot read", self.problems(self.SLURM, row)[0])


class Skips(Tree):
    def test_what_is_skipped_by_user_is_expected(self):
        self.write("tests/expected_skips.txt",
                   "Known.*  # needs root\na.bats.known*  # needs root\n")
        self.write("src/a_test.cpp", """
TEST(Known, One) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
}
TEST_F(Other, Two) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
}
TEST(Other, Three) {
  if (!have_pool()) GTEST_SKIP() << "no pools here";
}
""")
        self.write("tests/a.bats", """
needs_root() { if [ "$(id -u)" != 0 ]; then skip "needs root"; fi; }
@test "known one" {
  needs_root
}
@test "called" {
  needs_root
}
@test "own" {
  [ "$(id -u)" = 0 ] || skip "needs root"
}
@test "by a program" {
  command -v fish || skip "fish is not installed"
}
""")
        found = [problem.split(" is skipped")[0] for problem in check_skips.check_tree(self.root)]
        self.assertEqual(found, ["src/a_test.cpp: Other.Two", "tests/a.bats: a.bats.called",
                                 "tests/a.bats: a.bats.own"])

    def test_a_setup_that_skips_skips_all(self):
        self.write("tests/expected_skips.txt", "")
        self.write("tests/a.bats",
                   'setup() {\n  [ "$(id -u)" = 0 ] || skip "needs root"\n}\n@test "one" {\n  '
                   'true\n}\n')
        self.assertEqual(len(check_skips.check_tree(self.root)), 1)


class Metrics(Tree):
    CODE = 'text.one("gpurota_up", "gauge", help);\nname = "gpurota_wait_seconds";\n'
    ROWS = "| `gpurota_up` | gauge |\n| `gpurota_wait_seconds` | histogram |\n"

    def problems(self, code=CODE, text=ROWS):
        self.write("src/web/metrics.cpp", code)
        self.write("src/web/metrics_test.cpp", 'find("gpurota_other");\n')
        self.write("docs/operate/metrics.md", "# Metrics of gpurota_\n\n" + text)
        return list(check_docs.check_metrics(self.root))

    def test_takes_a_document_with_every_metric(self):
        self.assertEqual(self.problems(text=self.ROWS
                                       + "Alert: `gpurota_wait_seconds_sum / gpurota_up`\n"), [])

    def test_refuses_a_metric_without_a_row_or_with_two(self):
        self.assertEqual(self.problems(text=self.ROWS.replace("| `gpurota_up` |", "`gpurota_up`")),
                         ["docs/operate/metrics.md: 0 rows for gpurota_up of src/web, not 1"])
        self.assertIn("2 rows for gpurota_up",
                      self.problems(text=self.ROWS + self.ROWS.splitlines()[0])[0])

    def test_refuses_a_name_that_is_no_metric_in_a_row_and_elsewhere(self):
        for text in ("| `gpurota_gone` | gauge |\n", "`gpurota_gone > 0`\n", "gpurota_gone_total"):
            problems = self.problems(text=self.ROWS + text)
            self.assertEqual(len(problems), 1, problems)
            self.assertIn("is not in src/web", problems[0])

    def test_finding_no_metrics_is_a_problem(self):
        self.assertIn("no metrics found", self.problems(code="", text="")[0])


class Options(Tree):
    def problems(self, rows, synopsis, options):
        code = "".join("{'\\0', \"--%s\", &it},\n" % row for row in rows)
        self.write("src/web/options.cpp", code)
        page = "\n.SH SYNOPSIS\n" + "".join("--%s\n" % word for word in synopsis)
        page += ".SH OPTIONS\n" + "".join(".TP\n--%s\nNot --other.\n" % word for word in options)
        self.write("man/gpurota-web.8", page.replace("-", "\\-") + ".SH SEE ALSO\n")
        pages = {"man/gpurota-web.8": ["src/web/options.cpp"]}
        with unittest.mock.patch.object(check_docs, "PROGRAMS", pages):
            return list(check_docs.check_options(self.root))

    def test_takes_a_page_with_every_option(self):
        self.assertEqual(self.problems(["a-b", "c"], ["a-b", "c"], ["c", "a-b", "help"]), [])

    def test_refuses_an_option_that_only_one_of_them_has(self):
        self.assertEqual(self.problems(["a", "c"], ["a"], ["a", "c", "d"]),
                         ["man/gpurota-web.8: --c is not in its SYNOPSIS",
                          "man/gpurota-web.8: --d in its OPTIONS is no option of the program"])

    def test_finding_no_options_is_a_problem(self):
        self.assertIn("no options found", self.problems([], [], [])[0])


class Sizes(Tree):
    def said_of(self, path):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(check_sizes.check_file(self.root, path), [])
        return said.getvalue()

    def test_names_long_files_which_are_no_failure(self):
        self.write("src/core/x.h", "int x;\n" * 251)
        self.write("src/core/x.cpp", "int x;\n" * 500)
        self.write("src/web/page/x.tsx", "let x;\n" * 301)
        self.assertIn("251 lines", self.said_of("src/core/x.h"))
        self.assertEqual(self.said_of("src/core/x.cpp"), "")
        self.assertIn("301 lines", self.said_of("src/web/page/x.tsx"))

    def test_counts_lines_of_functions_of_the_page(self):
        self.write("src/web/page/y.tsx", "export function View() {\n%s}\n" % ("  x();\n" * 60))
        self.assertIn("a function of 62 lines",
                      check_sizes.check_file(self.root, "src/web/page/y.tsx")[0])

    def test_counts_lines_of_functions(self):
        body = "  x();\n" * 58
        self.write("src/core/x.cpp",
                   "void f(int a,\n       int b) {\n%s}\n\nint g() {\n  y();\n%s}\n" % (body, body))
        problems = check_sizes.check_file(self.root, "src/core/x.cpp")
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("src/core/x.cpp:63: a function of 61 lines", problems[0])

    def test_does_not_take_blocks_for_functions(self):
        body = "  x();\n" * 70
        self.write("src/core/x.cpp", "namespace {\n%s}\nstruct S {\n%s};\n" % (body, body))
        self.assertEqual(check_sizes.check_file(self.root, "src/core/x.cpp"), [])


class Fields(Tree):
    def lists(self, text):
        return check_fields.check_text(text)

    def test_finds_a_long_list_without_names(self):
        values = ", ".join("call.value%d" % i for i in range(12))
        self.assertEqual(self.lists("int x;\nauto p = Parts{%s};\n" % values), [(2, 12)])
        self.assertEqual(self.lists("S() : parts_({%s, [this](int a, int b) { return f(a, b); }}) "
                                    "{}\n" % values), [(1, 13)])
        self.assertEqual(self.lists("auto p = Parts{%s};\n" % values[values.index(",") + 2:]), [],
                         "short enough")

    def test_takes_names_and_tables(self):
        named = ", ".join(".value%d = a.b%d" % (i, i) for i in range(20))
        for text in ("Parts{%s}" % named, "const char* const kAll[] = {%s}"
                     % ", ".join(['"a,b"'] * 20),
                     "enum E { %s }" % ", ".join("x%d" % i for i in range(20)),
                     "int kAll[] = {%s}" % ", ".join("Code::kIo" for _ in range(20)),
                     "void f() { %s; }" % ", ".join("g%d()" % i for i in range(20))):
            self.assertEqual(self.lists(text + ";\n"), [], text)

    def test_leaves_tests_alone(self):
        self.write("src/core/x_test.cpp", "auto p = Parts{%s};\n"
                   % ", ".join("a.b%d" % i for i in range(20)))
        self.assertEqual(check_fields.check_file(self.root, "src/core/x_test.cpp"), [])


class Names(Tree):
    def test_finds_what_two_files_of_a_module_have_for_themselves(self):
        own = ("namespace {\n\nconstexpr int kMost = 1;\nstruct Place {\n};\ntemplate <class "
               "T>\nconcept Large = sizeof(T) > 8;\nint part(int whole) {\n}\nResult<int> half(int "
               "whole) {\n}\n\n}  // namespace\n")
        self.write("src/cli/a.cpp", own)
        self.write("src/cli/run/b.cpp", own)
        self.assertEqual(len(check_names.check_tree(self.root)), 5)

    def test_takes_what_others_may_have_too(self):
        own = ("namespace {\n\nconstexpr int kMost = 1;\nint part(int whole) {\n}\n\n}  // "
               "namespace\n")
        self.write("src/cli/a.cpp", own)
        self.write("src/web/b.cpp", own)
        self.write("src/cli/a_test.cpp", own)
        self.write("src/cli/c.cpp",
                   "int f() {\n  constexpr int kMost = 1;\n}\nnamespace {\n\nint part(long whole) "
                   "{\n}\n\n}  // namespace\n")
        self.assertEqual(check_names.check_tree(self.root), [])

    @staticmethod
    def own(*lines):
        return "\n".join(("namespace gpurota::cli {", "namespace {", "", *lines, "",
                          "}  // namespace", "}  // namespace gpurota::cli", ""))

    def test_finds_what_hides_a_name_of_a_lower_module(self):
        self.write("src/base/read.h", "namespace gpurota {\nstd::string read_all(int fd,\n"
                   "    int limit);\nstruct Place {\n};\n}  // namespace gpurota\n")
        self.write("src/core/a.h", '#include "base/read.h"\n')
        self.write("src/cli/a.cpp", self.own("std::string read_all(int fd) {", "}",
                                             "struct Place {", "};"))
        self.assertEqual(check_names.check_tree(self.root), [], "no file of the module includes it")
        self.write("src/cli/b.cpp", '#include "core/a.h"\n')
        problems = check_names.check_tree(self.root)
        self.assertEqual(len(problems), 2, problems)
        self.assertIn("src/cli/a.cpp: read_all hides that of src/base/read.h", "\n".join(problems))

    def test_takes_names_that_headers_have_elsewhere(self):
        self.write("src/base/read.h", "namespace gpurota::log {\nvoid write(int level);\n"
                   "}  // namespace gpurota::log\nnamespace gpurota {\nclass File {\n"
                   "  void close(int fd);\n};\n}  // namespace gpurota\n")
        self.write("src/cli/a.cpp", '#include "base/read.h"\n' + self.own(
            "void write(int level) {", "}", "void close(int fd) {", "}"))
        self.assertEqual(check_names.check_tree(self.root), [])


class Threads(Tree):
    def test_finds_each_way_to_begin_one(self):
        for text in ("std::thread thread([] { f(); });", "t_ = std::thread(f);",
                     "std::thread([] {}).detach();", "std::jthread t(f);",
                     "auto x = std::async(f);", "pthread_create(&t, nullptr, f, nullptr);",
                     "A() : t_([this] { f(); }) {}\nstd::thread t_;",
                     "std::vector<std::thread> all;\nall.emplace_back(f);",
                     "auto t = std::make_unique<std::thread>(f);"):
            self.assertNotEqual(check_threads.check_text(text), [], text)

    def test_takes_threads_that_others_began(self):
        for text in ("std::thread t_;\nt_.join();", "Result<std::thread> start();",
                     "t_ = std::move(*thread);", "// std::thread(f)",
                     "std::vector<std::thread> all;\nall.push_back(std::move(*thread));",
                     "std::thread::id id;"):
            self.assertEqual(check_threads.check_text(text), [], text)

    def test_leaves_the_wrapper_and_tests_alone(self):
        for path in ("src/base/threads.cpp", "src/sys/x_test.cpp", "sim/cuda/x.cpp"):
            self.write(path, "std::thread t(f);\n")
            self.assertEqual(check_threads.check_file(self.root, path), [])
        self.write("src/sys/x.cpp", "int x;\nstd::thread t(f);\n")
        self.assertEqual(len(check_threads.check_file(self.root, "src/sys/x.cpp")), 1)


class Reasons(Tree):
    def test_finds_each_place_that_makes_or_joins_one(self):
        for path, text in (("src/daemon/x.cpp", "Reason{ReasonCode::kKept, text}"),
                           ("src/cli/x.cpp", 'text.find("{time}")'),
                           ("src/lease/queue_text.cpp", 'why = " has no time limit";'),
                           ("src/cli/x.cpp", 'f("{} of {} GPUs free", a, b);'),
                           ("src/cli/x.cpp", "text += request.reason;"),
                           ("src/cli/top/x.cpp", "line(request->next_at);"),
                           ("src/web/page/x.tsx", "<p>{request.reason}</p>"),
                           ("src/web/page/x.tsx", "job.wait_reason?.text"),
                           ("python/gpurota/x.py", 'text += "; " + request.next'),
                           ("src/cli/x.cpp", "show(booking.trouble);"),
                           ("src/kube/x.cpp", "pod.message = place.why;")):
            self.assertEqual(len(check_reasons.check_text(path, text)), 1, text)

    def test_takes_what_shows_a_whole_one(self):
        for path, text in (("src/cli/x.cpp", "text += client::reason_text(request, now);"),
                           ("src/lease/reason.cpp", '"has no time limit"'),
                           ("src/cli/x.cpp", "// {time} has no time limit\nif (reply.reason) "
                                             "show(*reply.reason);"),
                           ("src/web/page/reasons.ts", 'reason.text.replace("{time}", clock)'),
                           ("python/gpurota/x.py", '"""GPUs free: {time}"""'),
                           ("src/cli/x.cpp", '"what is idle of it is kept for it"'),
                           ("src/daemon/x.cpp", "entry.reason = reason;")):
            self.assertEqual(check_reasons.check_text(path, text), [], text)

    def test_leaves_tests_alone_and_notices_a_file_that_is_gone(self):
        self.write("src/cli/x_test.cpp", "request.reason")
        self.write("python/gpurota/types.py", "next_at: int")
        self.assertEqual([problem for problem in check_reasons.check_tree(self.root)
                          if "there is no" not in problem], [])
        self.assertIn("tools/check_reasons.py: there is no src/lease/reason.cpp",
                      check_reasons.check_tree(self.root))


class Versions(Tree):
    """A tree in which each file has version 0.2.0."""

    def setUp(self):
        super().setUp()
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\n"
                   "project(gpurota VERSION 0.2.0 LANGUAGES CXX)\n")
        self.write("README.md", "    git clone ADDRESS gpurota # version 0.2.0; newer is more\n")
        self.write("packaging/kubernetes/chart/Chart.yaml",
                   "apiVersion: v2\nversion: 0.2.0\nappVersion: 0.2.0\n")
        self.write("packaging/kubernetes/dra.yaml",
                   "apiVersion: apps/v1\nimage: localhost/gpurota-kubernetes:0.2.0\n")
        self.write("python/gpurota/types.py", 'VERSION = "0.2.0"\n')
        self.write("docs/operate/install.md",
                   "tar -xf gpurota-0.2.0-x86_64.tar.xz; dnf install gpurota-0.2.0-1.x86_64.rpm\n")
        self.write("docs/operate/kubernetes.md", "docker://REGISTRY/gpurota-kubernetes:0.2.0`\n")
        self.changelog("0.2.0")
        self.write("CHANGELOG.md",
                   "## [Unreleased]\n\n## [0.2.0] - 2026-11-27\n\n## [0.1.0] - 2026-01-01\n")
        self.write("SECURITY.md", "| 0.2.x | yes |\n")

    def changelog(self, version, date="Mon, 23 Nov 2026 09:00:00 +0000"):
        self.write("debian/changelog", "gpurota (%s) bookworm; urgency=medium\n\n  * Made.\n\n"
                   " -- A B <a@b.c>  %s\n" % (version, date))

    def assert_refused(self, *texts):
        problems = version.check_tree(self.root)
        self.assertEqual(len(problems), len(texts), problems)
        for problem, text in zip(problems, texts):
            self.assertIn(text, problem)

    def test_takes_one_version_and_what_debian_adds_to_it(self):
        self.assert_refused()
        self.changelog("0.2.0~rc1-1")
        self.assert_refused()

    def test_refuses_another_one_in_any_file(self):
        self.write("packaging/kubernetes/chart/Chart.yaml",
                   "version: 0.2.0\nappVersion: 0.1.0\n")
        self.write("docs/operate/kubernetes.md", "no image\n")
        self.changelog("0.1.0", "yesterday")
        self.write("SECURITY.md", "| 0.1.x | yes |\n")
        self.write("CHANGELOG.md", "## [0.1.0] - 2026-01-01\n")
        self.assert_refused("Chart.yaml: has version 0.1.0", "kubernetes.md: has no version",
                            "debian/changelog: does not begin", "debian/changelog: no date",
                            "the newest release is 0.1.0", "SECURITY.md: no line '| 0.2.x")

    def test_writes_a_new_one_where_nothing_else_says_it(self):
        with contextlib.redirect_stdout(io.StringIO()):
            version.write_version(self.root, "0.3.0")
        self.assertEqual(version.version_of(self.root), "0.3.0")
        self.assert_refused("debian/changelog", "CHANGELOG.md", "SECURITY.md")
        self.assertIn("VERSION 3.25", version.read(self.root, "CMakeLists.txt"))
        self.assertIn("apps/v1", version.read(self.root, "packaging/kubernetes/dra.yaml"))


class Packages(Tree):
    CONTROL = ("Source: gpurota\nBuild-Depends: cmake (>= 3), debhelper-compat (= 13),\n "
               "python3:any\n\nPackage: gpurota\n\nPackage: gpurotad\n")
    SPEC = ("%files\n%config(noreplace) "
            "/etc/gpurota/gpurota.toml\n%{_prefix}/bin/gpurota\n%{_prefix}/share/gpurota\n"
            "%{_prefix}/share/doc\n%files web\n%{unitdir}/gpurota-web.service.d\n"
            "%{_prefix}/lib/gpurota/libgpurota.so\n%post\n%{_prefix}/no/file\n")

    def setUp(self):
        super().setUp()
        self.write("debian/control", self.CONTROL)
        self.write("debian/gpurota.install", "usr/bin/gpurota\nusr/share/gpurota\n")
        self.write("debian/gpurotad.install",
                   "packaging/gpurota.toml etc/gpurota\nusr/lib/*/gpurota/libgpurota.so\n")
        self.write("debian/not-installed", "# why\nusr/share/doc/LICENSE\n")
        self.write("dev", "readonly BUILD_PACKAGES=(g++ cmake\n  python3)\n")
        self.write("packaging/gpurota.toml",
                   "# Who.\n#group = \"x\"\n#[limits.user.alice]\n#gpus = 1 # of them\n")
        self.write("man/gpurota.toml.5", ".BR group\n\\fB[limits.user\\fR gpus\n")
        self.write("packaging/rpm/gpurota.spec", self.SPEC)
        for path in ("bin/gpurota", "share/gpurota/a/b.toml", "lib/gpurota/libgpurota.so",
                     "share/doc/LICENSE"):
            self.write("stage/" + path, "")

    def assert_refused(self, text):
        problems = check_packages.check_tree(self.root)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def stage_problems(self):
        return list(check_packages.check_stage(self.root, os.path.join(self.root, "stage")))

    def test_takes_what_agrees(self):
        self.assertEqual(check_packages.check_tree(self.root), [])
        self.assertEqual(self.stage_problems(), [])

    def test_refuses_a_package_without_files_and_a_file_in_two(self):
        self.write("debian/control", self.CONTROL + "\nPackage: gpurota-web\n")
        self.assert_refused("gpurota-web is in one of them only")
        self.write("debian/gpurota-web.install", "usr/bin/gpurota\n")
        self.assert_refused("usr/bin/gpurota is in gpurota-web too")

    def test_refuses_packages_to_build_with_that_differ(self):
        self.write("dev", "readonly BUILD_PACKAGES=(g++ cmake python3 libnew-dev)\n")
        self.assert_refused("Build-Depends has no libnew-dev")
        self.write("dev", "readonly BUILD_PACKAGES=(g++ cmake)\n")
        self.assert_refused("BUILD_PACKAGES has no python3")

    def test_refuses_a_configuration_that_sets_something_or_suggests_what_is_not_there(self):
        self.write("packaging/gpurota.toml", 'group = "x"\n')
        self.assert_refused("sets something")
        self.write("packaging/gpurota.toml", '#privcy = "x"\n')
        self.assert_refused("does not describe privcy")
        self.write("packaging/gpurota.toml", "#group = x\n")
        self.assert_refused("cannot be read")

    def test_refuses_an_installed_file_in_no_package_or_in_two_and_a_line_for_nothing(self):
        self.write("stage/bin/new", "")
        self.assertIn("usr/bin/new: is in no package", self.stage_problems()[0])
        self.write("debian/gpurota.install",
                   "usr/bin/gpurota\nusr/bin/new\nusr/bin/ne*\nusr/share/gpurota\nusr/bin/gone\n")
        problems = self.stage_problems()
        self.assertIn("usr/bin/new: is in gpurota and gpurota", problems[0])
        self.assertEqual(problems[1],
                         "debian/*.install of gpurota: usr/bin/gone is not installed by CMake")
        self.assertIn("usr/bin/new: is in no package: add it to %files", problems[2])
        self.assertEqual(len(problems), 3)

    def test_refuses_a_file_in_two_rpms_and_a_line_for_nothing(self):
        self.write("packaging/rpm/gpurota.spec",
                   self.SPEC + "%files sim\n%{_prefix}/bin/gpurota\n%{unitdir}/gone.service\n")
        self.assertEqual(self.stage_problems(), [
            "usr/bin/gpurota: is in gpurota and gpurota-sim",
            "%files in packaging/rpm/gpurota.spec of gpurota-sim: "
            "usr/lib/systemd/system/gone.service is not installed by CMake"])


class SkipsOfARun(Tree):
    GTEST = """<testsuites><testsuite name="S">
      <testcase name="Runs" classname="S"/>
      <testcase name="Needs" classname="S">\
<skipped message="f.cpp:3&#x0A;no cgroup here"/></testcase>
      </testsuite></testsuites>"""
    CTEST = """<testsuite tests="2">
      <testcase name="gpu_test" classname="gpu_test" status="notrun">\
<skipped message="SKIP_RETURN_CODE=77"/>
      <system-out>no GPU in this machine</system-out></testcase>
      <testcase name="ok_test" classname="ok_test" status="run"/></testsuite>"""

    def skips(self):
        return list_skips.read_skips(self.root)

    def test_lists_skips_of_all_formats_with_their_reasons(self):
        self.write("a.xml", self.GTEST)
        self.write("deeper/b.xml", self.CTEST)
        self.assertEqual(self.skips(),
                         [("S.Needs", "no cgroup here"), ("gpu_test", "no GPU in this machine")])

    def test_an_expected_skip_is_one_that_a_line_names(self):
        self.write("a.xml", self.GTEST)
        self.write("expected.txt", "# comment\n\nS.*   # where there is no cgroup\n")
        patterns = list_skips.read_expected(os.path.join(self.root, "expected.txt"))
        self.assertEqual(list_skips.unexpected(self.skips(), patterns), [])
        self.assertEqual(len(list_skips.unexpected([("T.X", "why")], patterns)), 1)

    def test_a_result_that_cannot_be_read_is_a_failure(self):
        self.write("a.xml", "<testsuites>")
        self.assertEqual(list_skips.main([self.root]), 1)


class Wording(Tree):
    def count(self):
        return check_words.count(self.root)[0]

    def test_a_sentence_that_begins_with_a_pronoun_is_counted(self):
        self.write("src/lease/a.h",
                   "// A lease. It ends\n// with its command. Whoever waits is served.\nint it = "
                   "0;\n")
        self.assertEqual(self.count()["src/lease"], [2, 0, 0, 0, 0])
        self.write("src/lease/a.h", "int a = 0;  // This is what it is.\n")
        self.assertEqual(self.count()["src/lease"], [1, 0, 0, 0, 0])

    def test_other_sentences_and_code_are_not(self):
        self.write("src/lease/a.h",
                   "// Ends the lease, and what it holds. Italian is fine.\nconst char* kText = "
                   "\"It is. It was.\";\n")
        self.assertEqual(self.count()["src/lease"], [0, 0, 0, 0, 0])

    def test_documents_are_read_by_paragraph_item_and_cell(self):
        self.write("docs/a.md",
                   "A page\nThis is one line. They are two.\n\n- What it is here\n- What is "
                   "it?\n\n| x | What it is | It is one here |\n\n```\nIt is code.\n```\n")
        self.assertEqual(self.count()["docs"], [3, 0, 0, 0, 0])

    def test_identifiers_are_counted_and_words_that_contain_them_are_not(self):
        self.write("src/sys/a.cpp",
                   "Doorman doorman_; void look_soon(); int desktop; int look_up; bool crowded;\n")
        self.assertEqual(self.count()["src/sys"], [0, 3, 0, 0, 0])

    def test_long_lines_of_code_are_counted_and_those_of_documents_are_not(self):
        self.write("src/sys/a.cpp", "x" * 101 + "\n" + "x" * 100 + "\n")
        self.write("docs/a.md", "x" * 101 + "\n")
        self.assertEqual((self.count()["src/sys"][2], self.count()["docs"][2]), (1, 0))

    def references(self, text, path="docs/design/a.md"):
        return [found.split("[")[1].split("]")[0]
                for _, found in check_words.references_of(path, text)]

    def test_a_sentence_without_the_noun_that_it_refers_to_is_counted(self):
        for text, word in (("The lease ends. If it waits, nothing moves.", "it"),
                           ("The daemon reads them and answers.", "them"),
                           ("In a container, neither leads to the lease.", "neither"),
                           ("Both need the memory of the GPU.", "Both"),
                           ("The first rows have the others.", None),
                           ("Of the others, one gets the limit.", "the others"),
                           ("The user did so or knows the reason.", "did so"),
                           ("A list follows:\n\n- If it waits, the lease ends.", "it")):
            self.assertEqual(self.references(text), [word] if word else [], text)

    def test_a_sentence_with_the_noun_is_not(self):
        for text in ("If the lease waits, it has no memory.", "`nvidia0` opens when it is free.",
                     "Both the daemon and the library count.", "It is known that a lease waits.",
                     "Neither the daemon nor the library waits.", "Programs end if both fail.",
                     "The daemon and the library both count.", "Whether leases wait or not: both."):
            self.assertEqual(self.references(text), [], text)

    def test_items_that_continue_cells_headings_and_other_folders_are_not(self):
        text = "## How it works there\n\n- what it has there\n\n| If it is there, wait |\n"
        self.assertEqual(self.references(text), [])
        self.assertEqual(self.references("So it has to wait.", "docs/dev/a.md"), [])
        self.assertEqual(self.references("So it has to wait.", "docs/operate/a.md"), ["it"])
        self.write("docs/operate/a.md", "So it has to wait.\n")
        self.assertEqual(self.count()["docs/operate"], [0, 0, 0, 1, 0])

    def phrases(self, text, path="docs/a.md"):
        return [found.split("[")[1].split("]")[0]
                for _, found in check_words.phrases_of(path, text)]

    def test_a_phrase_that_is_read_twice_is_counted(self):
        for text, phrase in (("The lease stays, also\nif it waits.", ", also if"),
                             ("Two trainings take turns.", "trainings"),
                             ("Beside a training it waits.", "a training"),
                             ("It is kept. Else it ends.", ". Else"),
                             ("Of several hosts, the first.", "Of several"),
                             ("Draws from `y` on.", "from `y` on"),
                             ("A terminal of less than 38 columns.", "less than 38 columns"),
                             ("Counts one mapping less.", "one mapping less")):
            self.assertEqual(self.phrases(text), [phrase], text)
        self.assertEqual(self.phrases("// Waits, also\n// when nothing moves.", "src/a.h"),
                         [", also when"])
        self.assertEqual(self.phrases("A slice stays, also after a crash.", "man/a.1.in"),
                         [", also after"])
        self.write("docs/a.md", "Two trainings.\n")
        self.assertEqual(self.count()["docs"], [0, 0, 0, 0, 1])

    def test_other_phrases_and_code_are_not(self):
        for text in ("A training job, a training step, a training-like program.",
                     "The lease is also shown if it waits.", "It waits or else ends.",
                     "One of several hosts.", "From now on it waits.", "In less than 38 seconds."):
            self.assertEqual(self.phrases(text), [], text)
        self.assertEqual(self.phrases('call("Two trainings, also if it waits");', "src/a.cpp"), [])

    def test_a_count_may_not_rise_and_a_lower_one_is_to_be_kept(self):
        self.assertEqual(check_words.compare({"src/a": [1, 2, 3, 4, 0]},
                                             {"src/a": [1, 2, 3, 4, 0]}), [])
        self.assertIn("2 sentences, 1 before",
                      check_words.compare({"src/a": [2, 2, 3, 4, 0]},
                                          {"src/a": [1, 2, 3, 4, 0]})[0])
        self.assertIn("--update",
                      check_words.compare({"src/a": [1, 2, 2, 4, 0]},
                                          {"src/a": [1, 2, 3, 4, 0]})[0])
        self.assertIn("1 names, 0 before", check_words.compare({"src/new": [0, 1, 0, 0, 0]}, {})[0])

    def test_a_room_of_the_daemon_has_a_row_of_its_own(self):
        self.assertEqual(check_words.folder_of("src/daemon/leases/queue.cpp"), "src/daemon/leases")
        self.assertEqual(check_words.folder_of("src/cli/top/model.cpp"), "src/cli")


if __name__ == "__main__":
    unittest.main()
