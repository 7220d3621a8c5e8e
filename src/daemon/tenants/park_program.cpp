#include "daemon/tenants/park_program.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace gpurota::daemon {
namespace {

// The driver moves 1.6 GiB/s or more; a step has this much longer.
constexpr std::chrono::seconds kLeastPatience{60};
constexpr Bytes kSlowest = mib(256);  // in a second
// For the start of the program and of the driver, for locks, and for an earlier gpurota-park.
constexpr std::chrono::minutes kBesideSteps{8};
constexpr int kExitNotTried = 2;

}  // namespace

ports::Program park_call(const ParkProgram& program, const std::string& action,
                         const std::vector<ports::ProcessId>& processes, Bytes memory) {
  const auto patience = kLeastPatience + std::chrono::seconds(memory.count() / kSlowest.count());
  ports::Program call;
  call.argv = {program.file, action,       "--lock",
               program.lock, "--patience", std::to_string(patience.count())};
  if (!program.library.empty()) call.argv.insert(call.argv.end(), {"--library", program.library});
  for (const ports::ProcessId& process : processes) {
    call.argv.push_back(fmt::format("{}:{}", process.pid, process.start_ticks));
  }
  call.user = program.user;
  // A failed `park` restores what it has parked.
  call.time_limit = kBesideSteps + 2 * patience * static_cast<int>(processes.size());
  call.purpose = "parks a lease";
  call.keeps_output = true;
  call.own_environment = true;
  call.finishes = true;
  return call;
}

bool ParkReport::all_run() const {
  return std::all_of(state.begin(), state.end(), [](const auto& each) {
    return each.second == "running" || each.second == "gone";
  });
}

// Lines are "PID STEP RESULT SECONDS" and "PID state STATE".
ParkReport read_park_report(const ports::ProgramEnd& end) {
  ParkReport report;
  report.good = end.is_good();
  report.tried = end.started && end.code != kExitNotTried;
  std::istringstream lines(end.output);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    pid_t pid = 0;
    std::string step, result;
    if (!(words >> pid >> step)) continue;
    if (step == "state") {
      words >> report.state[pid];
      continue;
    }
    double seconds = 0;
    std::string word;
    while (words >> word) {
      result += (result.empty() || word.empty() ? "" : " ") + word;
    }
    const auto space = result.rfind(' ');
    if (space == std::string::npos) continue;
    seconds = std::strtod(result.c_str() + space, nullptr);
    result.resize(space);
    report.seconds += seconds;
    if (result != "ok" && report.why.empty()) {
      report.why = fmt::format("process {}: the driver's {} failed: {}", pid, step,
                               display_text(result, 64));
    }
  }
  if (report.good || !report.why.empty()) return report;
  if (!report.tried) {
    report.why = end.complaint.empty() ? "gpurota-park cannot be run"
                                       : "gpurota-park: " + display_text(end.complaint, 200);
  } else if (end.timed_out) {
    report.why = "gpurota-park did not end in time";
  } else if (end.signal != 0) {
    report.why = fmt::format("gpurota-park was ended by signal {}", end.signal);
  } else {
    report.why = "gpurota-park failed";
  }
  return report;
}

}  // namespace gpurota::daemon
