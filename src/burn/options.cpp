#include "burn/options.h"

#include "base/options.h"
#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace gpurota::burn {
namespace {

constexpr Program kProgram{
    "gpurota burn", "",
    R"(gpurota burn: keep GPUs busy and check their results, or only hold their memory

usage: gpurota burn [--gpu-ids ID,…] [--memory SIZE | --of-free PERCENT] [--for TIME])"
    R"( [--hold] [--json]
       gpurota burn --self-test

  gpurota burn --for 10m              all GPUs, 88 % of their memory, ten minutes
  gpurota burn --gpu-ids 0 --hold     hold memory of GPU 0, compute nothing
  gpurota run -- gpurota burn         in a lease: its GPUs, within its limit

)",
    R"(
Memory is filled with a pattern and checked repeatedly; results of the arithmetic units are compared
with the correct ones, bit for bit. When the GPU runs short of memory, some is freed.

exit status: 0 no errors   1 it could not run, or the GPU failed   3 errors were found
             2 the command line is wrong
             128 + the signal, if one ended it before --for was over
)"};

Result<void> add_ids(const std::string& text, std::vector<std::string>& ids) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end == at) {
      return fail(Code::kInvalid, "--gpu-ids: write ids between commas: --gpu-ids 0,1");
    }
    ids.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return {};
}

Result<void> take_share(const std::string& value, std::optional<int>& of_free) {
  const auto share = parse_size_spec(value);
  if (!share || share->percent == 0) {
    return fail(Code::kInvalid, "--of-free: write a share from 1% to 100%");
  }
  of_free = share->percent;
  return {};
}

Result<void> take_memory(const std::string& value, SizeSpec& memory) {
  auto size = parse_size_spec(value);
  if (!size) return fail(Code::kInvalid, "--memory: " + size.error().message);
  memory = *size;
  return {};
}

std::vector<Option> rows(Options& options) {
  return {
      {'i', "--gpu-ids", [&](const std::string& value) { return add_ids(value, options.gpu_ids); },
       "ID,…", "which GPUs: index (PCI order, of those visible) or UUID\n(default: all)"},
      {'m', "--memory",
       [&](const std::string& value) { return take_memory(value, options.memory); }, "SIZE",
       "of each GPU: 8G, 512M, 88% (default: 88%)"},
      {'\0', "--of-free",
       [&](const std::string& value) { return take_share(value, options.of_free); }, "PERCENT",
       "instead: this share of the memory that is free when it starts: 80%"},
      {'d', "--for",
       [&](const std::string& value) -> Result<void> {
         GPUROTA_ASSIGN_OR_RETURN(options.duration, parse_duration(value));
         return {};
       },
       "TIME", "90s, 10m, 1h (default: until interrupted)"},
      {'\0', "--hold", &options.hold, "", "hold the memory, compute nothing"},
      {'\0', "--self-test", &options.self_test, "",
       "make one bit and one result wrong, and check that both are found"},
      {'j', "--json", &options.json, "",
       "one line of JSON at the end; the rest goes to standard error"}};
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};
  const auto digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string number(text.substr(0, digits));
  char* end = nullptr;
  const double amount = std::strtod(number.c_str(), &end);
  double unit = 0;
  for (const auto& [name, milliseconds] : kUnits) {
    if (text.substr(digits) == name) unit = milliseconds;
  }
  const double result = amount * unit;
  if (number.empty() || *end != '\0' || !(result >= 1) || result > 10'000 * 86400e3) {
    return fail(Code::kInvalid,
                fmt::format("'{}' is not a time: write 90s, 10m or 1.5h", display_text(text, 40)));
  }
  return std::chrono::milliseconds(std::llround(result));
}

Result<Options> parse_options(const std::vector<std::string>& words) {
  Options options;
  GPUROTA_ASSIGN_OR_RETURN(options.print, read_program_options(kProgram, rows(options), words));
  if (options.hold && options.self_test) {
    return fail(Code::kInvalid,
                "--hold computes nothing, so --self-test cannot test it: leave one out");
  }
  return options;
}

}  // namespace gpurota::burn
