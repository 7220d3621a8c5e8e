#include "cli/args/host_args.h"

#include "base/byte_order_mark.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace gpurota::cli {
namespace {

constexpr std::size_t kLongestHost = 255;
constexpr std::string_view kWithLetters = "0123456789._@:%[]-";
// Options that gpurota handles here. All others are passed on to gpurota on the other machine.
constexpr std::string_view kOfThisSide[] = {"--host",  "--hosts-file", "--json",
                                            "--csv",   "--help",       "--summary",
                                            "--color", "--format",     "--no-titles"};

bool may_be_in_host(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kWithLetters.find(c) != std::string_view::npos;
}

// The typed words, in a form that neither a shell nor a parser can misread.
Words passed_on(const std::string& name, Raw& raw) {
  const bool runs_there = name == "run" || name == "top";
  Words words;
  for (const Option& option : options_of(name, raw)) {
    const bool here = std::find(std::begin(kOfThisSide), std::end(kOfThisSide), option.name) !=
                      std::end(kOfThisSide);
    const bool of_output = option.name == "--verbose" || option.name == "--quiet";
    if ((here && !(runs_there && option.name == "--color")) || (of_output && !runs_there)) continue;
    const std::string given(option.name);
    if (const bool* const flag = option.flag(); flag && *flag) words.push_back(given);
    if (const auto* const text = option.text(); text && *text)
      words.push_back(given + "=" + **text);
    const Words* const texts = option.texts();
    for (const std::string& value : texts ? *texts : Words()) {
      words.push_back(given + "=" + value);
    }
  }
  return words;
}

// Refuses options that name a lease or a GPU of a single machine if there are several hosts.
Result<void> check_any(const HostsOptions& options) {
  if (!options.run || (options.hosts.size() < 2 && !options.file)) return {};
  if (!options.run->lease && !options.run->near && options.run->gpu_ids.empty()) return {};
  return fail(Code::kInvalid,
              "--lease, --near and --gpu-ids name something of one machine: give one --host");
}

Result<void> check_output(const HostsOptions& options, const Command& here) {
  if (const auto* status = std::get_if<StatusOptions>(&here); status && status->watch) {
    return fail(Code::kInvalid,
                "--watch shows one machine: leave it out, or run it there: ssh -t HOST gpurota "
                "status --watch");
  }
  if (options.command == "top" && (options.hosts.size() != 1 || options.file)) {
    return fail(Code::kInvalid,
                "top shows one machine: give one --host, or use 'gpurota status --host …' for "
                "several");
  }
  return check_any(options);
}

}  // namespace

Result<Command> on_hosts(const std::string& name, Raw& raw, Command here) {
  if (raw.host.empty() && !raw.hosts_file) return here;
  HostsOptions options;
  options.command = name;
  options.hosts = split_commas(raw.host);
  for (const std::string& host : options.hosts) GPUROTA_TRY(check_host(host));
  GPUROTA_ASSIGN_OR_RETURN(options.hosts, distinct_hosts(options.hosts));
  options.file = raw.hosts_file;
  if (auto* run = std::get_if<RunOptions>(&here)) options.run = std::move(*run);
  GPUROTA_TRY(check_output(options, here));
  options.options = passed_on(name, raw);
  options.json = raw.json;
  options.csv = raw.csv;
  if (const auto* status = std::get_if<StatusOptions>(&here)) options.form = status->form;
  return options;
}

Result<void> check_host(const std::string& name) {
  const auto wrong = [&name](const char* why) {
    return fail(Code::kInvalid, fmt::format("'{}' is not a host: {}", display_text(name, 60), why));
  };
  if (name.empty()) return wrong("write a name, as gpu1, or user@gpu1");
  if (name.size() > kLongestHost) return wrong("it is longer than 255 characters");
  if (!std::all_of(name.begin(), name.end(), may_be_in_host)) {
    return wrong("write a name, as gpu1 or user@gpu1, of letters, digits and ._@:%[]-");
  }
  // No part between '@' may begin with '-' (user@realm@gpu1), because ssh passes each part to other
  // programs.
  if (name.front() == '-' || name.find("@-") != std::string::npos) {
    return wrong("it begins with '-', which ssh would take for an option");
  }
  if (name.front() == '@' || name.back() == '@') return wrong("write it as user@gpu1");
  return {};
}

Result<std::vector<std::string>> parse_hosts(std::string_view text, const std::string& path) {
  text = without_mark(text);
  std::vector<std::string> hosts;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, std::min(end, text.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    constexpr std::string_view kBlank = " \t\r";
    const std::size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
    const std::string host(line);
    if (const auto known = check_host(host); !known) {
      return fail(Code::kInvalid,
                  fmt::format("{}:{}: {}", display_text(path), number, known.error().message));
    }
    hosts.push_back(host);
  }
  return hosts;
}

Result<std::vector<std::string>> distinct_hosts(const std::vector<std::string>& hosts) {
  std::vector<std::string> out;
  for (const std::string& host : hosts) {
    if (std::find(out.begin(), out.end(), host) == out.end()) out.push_back(host);
  }
  if (out.size() <= kMostHosts) return out;
  return fail(Code::kInvalid,
              fmt::format("{} hosts are too many: name at most {}", out.size(), kMostHosts));
}

}  // namespace gpurota::cli
