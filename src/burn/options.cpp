#include "burn/options.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace gpurota::burn {
namespace {

constexpr std::string_view kHelp =
    R"(gpurota burn: keep GPUs busy and check their results, or only hold their memory

usage: gpurota burn [--gpu-ids ID,…] [--memory SIZE | --of-free PERCENT] [--for TIME] [--hold] [--json]
       gpurota burn --self-test

  gpurota burn --for 10m              all GPUs, 88 % of their memory, ten minutes
  gpurota burn --gpu-ids 0 --hold     hold memory of GPU 0, compute nothing
  gpurota run -- gpurota burn         in a lease: its GPUs, within its limit

  -i, --gpu-ids ID,…   which GPUs: index (PCI order, of those visible) or UUID (default: all)
  -m, --memory SIZE    of each GPU: 8G, 512M, 88% (default: 88%)
      --of-free 80%    instead: this share of the memory that is free when it starts
  -d, --for TIME       90s, 10m, 1h (default: until interrupted)
      --hold           hold the memory, compute nothing
      --self-test      make one bit and one result wrong, and check that both are found
  -j, --json           one line of JSON at the end; the rest goes to standard error

Memory is filled with a pattern and checked repeatedly; results of the arithmetic units are compared
with the correct ones, bit for bit. When the GPU runs short of memory, some is freed.

exit status: 0 no errors   1 it could not run, or the GPU failed   3 errors were found
             2 the command line is wrong
             128 + the signal, if one ended it before --for was over
)";

struct Word {
  std::string_view name;
  std::optional<std::string> value;  // behind "="
};

Word split(std::string_view word) {
  const auto equals = word.find('=');
  if (!word.starts_with("--") || equals == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), std::string(word.substr(equals + 1))};
}

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

bool* flag_of(Options& options, std::string_view name) {
  if (name == "--hold") return &options.hold;
  if (name == "--self-test") return &options.self_test;
  if (name == "--json" || name == "-j") return &options.json;
  if (name == "--help" || name == "-h") return &options.help;
  return nullptr;
}

bool takes_value(std::string_view name) {
  return name == "--gpu-ids" || name == "-i" || name == "--memory" || name == "-m" ||
         name == "--of-free" || name == "--for" || name == "-d";
}

Result<void> set_value(Options& options, std::string_view name, const std::string& value) {
  if (name == "--gpu-ids" || name == "-i") return add_ids(value, options.gpu_ids);
  if (name == "--for" || name == "-d") {
    GPUROTA_ASSIGN_OR_RETURN(options.duration, parse_duration(value));
    return {};
  }
  if (name == "--of-free") {
    const auto share = parse_size_spec(value);
    if (!share || share->percent == 0) {
      return fail(Code::kInvalid, "--of-free: write a share from 1% to 100%");
    }
    options.of_free = share->percent;
    return {};
  }
  auto size = parse_size_spec(value);
  if (!size) return fail(Code::kInvalid, "--memory: " + size.error().message);
  options.memory = *size;
  return {};
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
  for (std::size_t i = 0; i < words.size(); ++i) {
    Word word = split(words[i]);
    if (bool* flag = flag_of(options, word.name); flag != nullptr && !word.value) {
      *flag = true;
      continue;
    }
    if (!takes_value(word.name)) {
      return fail(Code::kInvalid, fmt::format("unexpected '{}' (see 'gpurota burn --help')",
                                              display_text(words[i], 60)));
    }
    if (!word.value && i + 1 == words.size()) {
      return fail(Code::kInvalid, fmt::format("{} needs a value", word.name));
    }
    GPUROTA_TRY(set_value(options, word.name, word.value ? *word.value : words[++i]));
  }
  if (options.hold && options.self_test) {
    return fail(Code::kInvalid,
                "--hold computes nothing, so --self-test cannot test it: leave one out");
  }
  return options;
}

std::string_view help_text() { return kHelp; }

}  // namespace gpurota::burn
