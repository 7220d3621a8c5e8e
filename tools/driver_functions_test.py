"""The list of driver functions and the scripts that read it: python3 driver_functions_test.py"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_driver_functions
import driver_functions

HERE = pathlib.Path(__file__).resolve().parent
ROW = "cuMemAlloc\tcuMemAlloc\t2000\tlegacy\tallocates\thook\n"
NEWER = "cuMemAlloc_v2\tcuMemAlloc\t3020\tlegacy\tallocates\thook\n"
OTHER = "cuInit\tcuInit\t2000\tlegacy\tpasses\t-\n"

HEADER = """
/* CUresult CUDAAPI cuOnlyInAComment(void); */
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocAsync __CUDA_API_PTSZ(cuMemAllocAsync)
#define CU_NOT_A_FUNCTION 3
CUresult CUDAAPI cuInit(unsigned int flags);
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI
    cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream stream);
CUresult CUDAAPI cuMemAlloc_v9(CUdeviceptr *dptr);
static inline CUresult cuOfTheHeader_v2(int device) { return cuInit(device); }
#define cuOfTheHeader cuOfTheHeader_v2
"""


class DriverFunctions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def check(self, file, rows=ROW + NEWER + OTHER):
        done = subprocess.run([sys.executable, "-B", HERE / "check_driver_functions.py", file,
                               self.write("list.tsv", rows)], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout.splitlines()

    def test_the_projects_own_list_is_well_formed(self):
        rows = driver_functions.read_rows(check_driver_functions.DEFAULT_LIST)
        self.assertGreater(len(rows), 600)
        self.assertGreater(sum(row.use == "hook" for row in rows), 40)

    def test_the_oldest_driver_that_works_is_the_one_doctor_asks_for(self):
        # Older drivers may lack these functions, and libgpurota works without them. A driver
        # without cuCtxFromGreenCtx has no green contexts, and a driver without
        # cuMemGetDefaultMemPool has no default pool of managed memory. If a driver cannot tell the
        # size of an array, libgpurota computes the most that the array can need. Without
        # cuCtxRecordEvent, the work of a stream that was destroyed in a capture is not seen.
        optional = {"cuCtxFromGreenCtx", "cuCtxRecordEvent", "cuMemGetDefaultMemPool",
                    "cuArrayGetMemoryRequirements",
                    "cuMipmappedArrayGetMemoryRequirements"}
        rows = driver_functions.read_rows(check_driver_functions.DEFAULT_LIST)
        newest = max(row.version for row in rows if row.use == "call"
                     and row.symbol not in optional)
        doctor = (HERE.parent / "src/daemon/doctor.cpp").read_text()
        self.assertIn(f"constexpr int kOldestCuda = {newest};", doctor)

    def test_a_header_shows_the_names_that_the_list_lacks(self):
        code, lines = self.check(self.write("cuda.h", HEADER))
        self.assertEqual(code, 1)
        self.assertEqual(lines, ["new: cuMemAlloc_v9 (another version of a hooked function)",
                                 "new: cuMemAllocAsync", "new: cuMemAllocAsync_ptsz",
                                 "6 functions, 3 new"])

    def test_a_header_with_nothing_new_passes(self):
        code, lines = self.check(self.write("cuda.h", "CUresult CUDAAPI cuInit(unsigned int);"))
        self.assertEqual((code, lines), (0, ["1 functions, 0 new"]))

    def test_a_library_shows_what_is_new_and_what_is_gone(self):
        source = self.write("driver.c",
                            "int cuInit(void) { return 0; }\nint cuNew_v3(void) { return 0; }\n"
                                        "int custom(void) { return 0; }\nstatic int cuHidden(void) "
                                        "{ return 0; }\nint (*use)(void) = cuHidden;\n")
        library = str(self.folder / "libcuda.so.1")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        code, lines = self.check(library)
        self.assertEqual(code, 1)
        self.assertEqual(lines, ["new: cuNew_v3", "gone: cuMemAlloc", "gone: cuMemAlloc_v2",
                                 "2 functions, 1 new, 2 gone"])

    def test_what_is_no_driver_is_refused(self):
        self.assertEqual(self.check(self.write("empty.h", ""))[0], 2)
        self.assertEqual(self.check(str(self.folder / "missing"))[0], 2)

    def test_a_wrong_list_stops_the_build(self):
        wrong = {"two columns": "cuInit\tcuInit\n",
                 "class": OTHER.replace("passes", "wonders"),
                 "not hooked": ROW.replace("hook", "-"),
                 "twice": ROW + ROW,
                 "base": NEWER}
        for name, text in wrong.items():
            with self.subTest(name), self.assertRaises(ValueError):
                driver_functions.read_rows(self.write("wrong.tsv", text))

    def test_the_table_names_each_hook_by_its_number(self):
        table = driver_functions.interposer_table(
            driver_functions.read_rows(self.write("list.tsv", ROW + NEWER + OTHER)))
        self.assertIn('X(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)', table)
        self.assertIn('"cuInit\\0"', table)
        self.assertIn("{0, -1, false},", table)   # cuInit
        self.assertIn("{18, 1, true},", table)    # cuMemAlloc_v2, after cuInit and cuMemAlloc


if __name__ == "__main__":
    unittest.main()
