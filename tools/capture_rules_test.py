"""The table of captures and what the build makes of it: python3 capture_rules_test.py"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import capture_rules
import driver_functions

TOOLS = pathlib.Path(__file__).resolve().parent
TABLE = TOOLS.parent / "src/abi/captures.tsv"
FUNCTIONS = TOOLS.parent / "src/abi/driver_functions.tsv"

ANY = ("any", 900, 901, "invalidates")
RELAXED = ("relaxed", 900, 901, "invalidates")
STRICT = ("global", 900, 901, "invalidates")
FINE = ("any", 0, 0, "allowed")
REFUSED = ("any", 1, 0, "refused")
IMPLICIT = ("any", 906, 901, "invalidates")


def line(aim, answer, function="cuInit"):
    thread_mode, result, end, outcome = answer
    return f"{function}\t{aim}\tany\tany\t{thread_mode}\tany\t{result}\t{end}\t{outcome}"


def rule(*lines):
    return capture_rules.rule_of([capture_rules.parse_cell(line(*each)) for each in lines])


class CaptureRules(unittest.TestCase):
    def test_the_first_rule_that_fits_is_that_of_the_function(self):
        self.assertEqual(rule(("-", FINE), ("memory of the capture", REFUSED)), "kAnytime")
        self.assertEqual(rule(("-", STRICT)), "kRelaxed")
        self.assertEqual(rule(("unrelated stream", STRICT), ("joined stream", ANY)), "kOutside")
        self.assertEqual(rule(("unrelated stream", FINE), ("event of the capture", ANY)),
                         "kOutsideAnytime")
        self.assertEqual(rule(("-", ANY)), "kNever")
        self.assertEqual(rule(("event from before", ANY), ("event of the capture", ANY)), "kNever")

    def test_the_legacy_stream_counts_as_of_the_capture_also_where_it_is_not_named(self):
        self.assertEqual(rule(("-", FINE), ("page-locked", IMPLICIT)), "kOutsideAnytime")
        self.assertEqual(rule(("unrelated stream", STRICT), ("legacy stream", IMPLICIT)),
                         "kOutside")

    def test_what_fits_no_rule_stops_the_build(self):
        for lines in [[("one", RELAXED), ("another", FINE)],
                      [("capturing stream", ANY)],
                      [("-", ANY), ("capturing stream", FINE)]]:
            with self.subTest(lines), self.assertRaises(ValueError):
                rule(*lines)

    def test_a_line_that_says_nothing_about_captures_stops_the_build(self):
        for wrong in [line("-", ("any", 0, 0, "hangs")), line("-", ("any", 0, 0, "unmeasured")),
                      "cuInit\t-"]:
            with self.subTest(wrong), self.assertRaises(ValueError):
                capture_rules.parse_cell(wrong)

    def test_a_per_thread_variant_is_also_what_its_legacy_variant_is(self):
        cells = capture_rules.read_cells(TABLE)
        text = capture_rules.interposer_rules(cells, driver_functions.read_rows(FUNCTIONS))
        self.assertIn("(cuStreamQuery_ptsz, kOutside)", text)  # measured on its own stream only
        self.assertIn("(cuMemcpyDtoH_v2_ptds, kOutsideAnytime)", text)  # not measured at all

    def test_the_simulator_is_told_what_a_call_is_to_captures(self):
        def kind(*lines):
            return capture_rules.simulator_kind([capture_rules.parse_cell(line(*each))
                                                 for each in lines])

        legacy = ("legacy stream", IMPLICIT)
        self.assertEqual(kind(("-", STRICT)), (True, False, True))
        self.assertEqual(kind(("unrelated stream", FINE), legacy), (False, False, True))
        self.assertEqual(kind(("unrelated stream", STRICT), ("capturing stream", ANY), legacy),
                         (True, True, True))
        self.assertEqual(kind(("legacy stream", ("any", 906, 0, "refused"))), (False, False, False))
        self.assertEqual(kind(("page-locked", IMPLICIT), ("page-locked", FINE)),
                         (False, False, True))

    def test_the_simulators_table_has_other_versions_of_what_was_measured_and_is_sorted(self):
        text = capture_rules.simulator_kinds(capture_rules.read_cells(TABLE),
                                             driver_functions.read_rows(FUNCTIONS))
        names = re.findall(r'{"(\w+)", {', text)
        self.assertEqual(names, sorted(names))
        self.assertIn('{"cuMemHostRegister", {true, false, true}}', text)  # its _v2 was measured
        self.assertIn('{"cuStreamGetCaptureInfo_v3", {false, false, false}}', text)
        self.assertNotIn("_ptsz", text)

    def test_every_line_of_the_header_is_a_rule_of_the_measured_table(self):
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder) / "new/capture_rules.h"
            subprocess.run([sys.executable, "-B", TOOLS / "capture_rules.py", "interposer", TABLE,
                            FUNCTIONS,
                            header], check=True)
            lines = [each for each in header.read_text().splitlines() if not each.startswith("//")]
        form = r"GPUROTA_CAPTURE_RULE\(cu\w+, k(Anytime|Relaxed|Outside|OutsideAnytime|Never)\)"
        self.assertEqual([each for each in lines if not re.fullmatch(form, each)], [])
        self.assertGreater(len(lines), 100)
        for known in ["cuCtxSynchronize, kNever", "cuMemPoolGetAttribute, kRelaxed",
                      "cuMemGetInfo_v2, kAnytime",
                      "cuStreamSynchronize, kOutside", "cuEventRecord, kOutsideAnytime"]:
            self.assertIn(f"GPUROTA_CAPTURE_RULE({known})", lines)


if __name__ == "__main__":
    unittest.main()
