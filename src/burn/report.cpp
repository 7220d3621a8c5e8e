#include "burn/report.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::burn {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

std::string sensors_of(const Stats& stats) {
  std::string text;
  if (stats.temperature_c) text += fmt::format("  {} C", *stats.temperature_c);
  if (stats.power_watts) text += fmt::format("  {:.0f} W", *stats.power_watts);
  return text;
}

std::string rates_of(double bytes, double flops, double seconds) {
  return fmt::format("  {:.1f} GiB/s checked  {:.2f} TFLOP/s",
                     rate(bytes, seconds) / static_cast<double>(kGiB.count()),
                     rate(flops, seconds) / 1e12);
}

std::string wrongs_of(const Stats& stats) {
  if (stats.wrong_words + stats.wrong_results == 0) {
    return stats.checked_bytes == 0 && stats.flops == 0 ? "  nothing checked yet" : "  no errors";
  }
  std::string text;
  if (stats.wrong_words > 0) {
    text += fmt::format("  {} WRONG WORDS (bits {:#018x})", stats.wrong_words, stats.wrong_bits);
  }
  if (stats.wrong_results > 0) text += fmt::format("  {} WRONG RESULTS", stats.wrong_results);
  return text;
}

std::string quoted(const std::string& foreign) {
  std::string text = "\"";
  for (const char c : display_text(foreign, 1000)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

template <class T>
std::string or_null(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "null";
}

const char* word_of(End end) {
  switch (end) {
    case End::kTime:
      return "time";
    case End::kSignal:
      return "signal";
    case End::kTested:
      return "self-test";
    case End::kFailed:
      break;
  }
  return "failed";
}

std::string json_of(const GpuReport& gpu) {
  const Stats& s = gpu.stats;
  return fmt::format(
      R"({{"index":{},"uuid":{},"name":{},"seconds":{:.3f},"target_bytes":{},"held_bytes":{},)"
      R"("chunks_handed_back":{},"checked_bytes":{},"checked_bytes_per_second":{:.0f},)"
      R"("flops":{:.0f},"wrong_words":{},"wrong_bits":"{:#018x}","wrong_results":{},)"
      R"("temperature_c":{},"power_watts":{},"self_test":{},"error":{}}})",
      gpu.index, quoted(gpu.uuid), quoted(gpu.name), s.seconds, s.target.count(),
      s.most_held.count(), s.handed_back, s.checked_bytes,
      rate(static_cast<double>(s.checked_bytes), s.seconds), rate(s.flops, s.seconds),
      s.wrong_words, s.wrong_bits, s.wrong_results, or_null(s.temperature_c),
      or_null(s.power_watts), or_null(s.self_test), s.error ? quoted(*s.error) : "null");
}

}  // namespace

std::string progress_line(const GpuReport& gpu, const Stats& before, bool hold) {
  const Stats& s = gpu.stats;
  std::string line =
      fmt::format("GPU {}  {:.0f} s  {} held", gpu.index, s.seconds, to_string(s.held));
  if (!hold) {
    line += rates_of(static_cast<double>(s.checked_bytes - before.checked_bytes),
                     s.flops - before.flops, s.seconds - before.seconds);
    line += wrongs_of(s);
  }
  return line + sensors_of(s);
}

std::string summary_line(const GpuReport& gpu, bool hold) {
  const Stats& s = gpu.stats;
  std::string line = fmt::format("GPU {} ({}): ", gpu.index, display_text(gpu.name, 80));
  if (s.error) return line + display_text(*s.error, 400);
  if (s.self_test) {
    return line + (*s.self_test ? "a wrong bit in memory and a wrong result were found"
                                : "ERRORS THAT WERE MADE ON PURPOSE WERE NOT FOUND");
  }
  line += fmt::format("{:.0f} s  {} held", s.seconds, to_string(s.most_held));
  if (!hold) {
    line += rates_of(static_cast<double>(s.checked_bytes), s.flops, s.seconds) + wrongs_of(s);
  }
  return line + sensors_of(s);
}

std::string json_line(const std::vector<GpuReport>& gpus, End end) {
  std::string list;
  std::uint64_t wrong = 0;
  for (const GpuReport& gpu : gpus) {
    list += (list.empty() ? "" : ",") + json_of(gpu);
    if (gpu.stats.is_wrong()) wrong += gpu.stats.wrong_words + gpu.stats.wrong_results;
  }
  return fmt::format(R"({{"ended":"{}","errors":{},"gpus":[{}]}})", word_of(end), wrong, list);
}

int exit_code(const std::vector<GpuReport>& gpus, int signal) {
  bool failed = false;
  for (const GpuReport& gpu : gpus) {
    const Stats& stats = gpu.stats;
    if (stats.is_wrong() || stats.is_faulty || stats.self_test == false) return kExitWrong;
    failed = failed || stats.error.has_value();
  }
  if (failed) return kExitFailed;
  return signal == 0 ? kExitFine : 128 + signal;
}

}  // namespace gpurota::burn
