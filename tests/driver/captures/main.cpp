// driver_captures [--only NAME] [--except FILE] [STORED]: measures the effect of each call on a
// capture under way, with the driver that the loader finds. Prints the table (table.h). STORED: a
// table printed earlier; prints each cell that differs from it, instead of the table. NAME: only
// functions whose names begin with it. FILE: functions that may differ, one on each line, followed
// by a tab and the reason; a listed function that does not differ is reported too, and counts as a
// cell that differs. Exit code: 0; 1 a cell differs; 2 the driver is not usable; 3 a cell could not
// be measured.
#include "tests/driver/captures/measure.h"
#include "tests/driver/captures/table.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

using captures::Call;
using captures::Cell;
using captures::kValues;
using captures::Measured;
using captures::Outcome;
using captures::Table;

namespace {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAllowed:
      return "allowed";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kInvalidates:
      return "invalidates";
    case Outcome::kCrashes:
      return "crashes";
    case Outcome::kHangs:
      return "hangs";
    case Outcome::kUnmeasured:
      break;
  }
  return "unmeasured";
}

std::vector<Call> calls_to_measure(const std::string& only) {
  std::vector<Call> calls = captures::all_calls();
  std::erase_if(calls, [&](const Call& call) {
    const std::string name = call.function;
    if (name.rfind(only, 0) != 0) return true;
    if (function<void()>(call.function) != nullptr) return false;
    std::fprintf(stderr, "the driver has no %s\n", call.function);
    return true;
  });
  // cuStreamDestroy_v2 comes last, because it may leave a capture that cannot be ended.
  std::stable_partition(calls.begin(), calls.end(), [](const Call& call) {
    return std::string(call.function) != "cuStreamDestroy_v2";
  });
  return calls;
}

// The cells of a call; a slow call has no cells in which a blocking stream captures.
std::vector<Cell> cells_of(const Call& call) {
  constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                            CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};
  std::vector<Cell> cells;
  for (const unsigned flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT}) {
    if (call.slow && flags == CU_STREAM_DEFAULT) break;
    for (const CUstreamCaptureMode mode : kModes) {
      for (const bool other : {false, true}) {
        for (const CUstreamCaptureMode own : kModes)
          cells.push_back({&call, mode, other, own, flags});
      }
    }
  }
  return cells;
}

captures::Key key_of(const Cell& cell) {
  return {cell.call->function,
          cell.call->aim,
          kValues[0][cell.mode],
          kValues[1][cell.other_thread ? 1 : 0],
          kValues[2][cell.thread_mode],
          kValues[3][cell.stream_flags == CU_STREAM_NON_BLOCKING ? 0 : 1]};
}

std::string answer_of(const Measured& measured) {
  return std::to_string(measured.result) + "\t" + std::to_string(measured.end) + "\t" +
         name_of(measured.outcome);
}

// The whole content of a file; empty for an empty name.
std::optional<std::string> read_file(const std::string& path) {
  if (path.empty()) return "";
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file) return text.str();
  std::fprintf(stderr, "%s cannot be read\n", path.c_str());
  return std::nullopt;
}

struct Options {
  std::string only, except, stored;
};

int report(const Table& table, const Options& options) {
  if (options.stored.empty()) {
    std::printf(
        "# function\taim\tmode\tthread\tthread mode\tcapturing stream\tresult\tend\toutcome\n%s",
        captures::print(table).c_str());
    return 0;
  }
  const auto stored = read_file(options.stored);
  const auto except = read_file(options.except);
  if (!stored || !except) return 2;
  const std::vector<std::string> differences = captures::compare(
      captures::parse(*stored), table, options.only, captures::parse_names(*except));
  for (const std::string& line : differences) std::printf("%s\n", line.c_str());
  std::printf("%zu cells, %zu differ\n", table.size(), differences.size());
  return differences.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (argument == "--except" && i + 1 < argc) {
      options.except = argv[++i];
    } else {
      options.stored = argument;
    }
  }
  const auto begun = std::chrono::steady_clock::now();
  if (!load_driver()) return 2;  // only looks functions up: child processes use the driver
  const std::vector<Call> calls = calls_to_measure(options.only);
  std::vector<Cell> cells;
  for (const Call& call : calls) {
    for (const Cell& cell : cells_of(call)) cells.push_back(cell);
  }
  const std::vector<Measured> measured = captures::measure(cells);
  if (measured.size() != cells.size()) return 2;
  Table table;
  std::size_t unmeasured = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    table[key_of(cells[i])] = answer_of(measured[i]);
    unmeasured += measured[i].outcome == Outcome::kUnmeasured ? 1 : 0;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::fprintf(stderr, "%zu calls, %zu cells, %zu of them not measured, %.1f s\n", calls.size(),
               cells.size(), unmeasured, took.count());
  const int code = report(table, options);
  return code != 0 ? code : unmeasured > 0 ? 3 : 0;
}
