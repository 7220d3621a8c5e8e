#include "cli/job_args.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::array kActions = {"add",   "list", "show",    "logs",
                                 "start", "stop", "restart", "remove"};

// Takes options that begin with `--` out of words; `take` gets the name and how to get its value.
class Taker {
 public:
  explicit Taker(Words words) : words_(std::move(words)) {}

  // The next word; nothing at the end.
  const std::string* next() { return at_ < words_.size() ? &words_[at_++] : nullptr; }
  // Behind "=" or the next word.
  Result<std::string> value_of(const std::string& word) {
    const auto equals = word.find('=');
    if (equals != std::string::npos) return word.substr(equals + 1);
    if (at_ == words_.size()) {
      return fail(Code::kInvalid, fmt::format("{} needs a value behind it", word));
    }
    return words_[at_++];
  }

 private:
  Words words_;
  std::size_t at_ = 0;
};

std::string name_of(const std::string& word) { return word.substr(0, word.find('=')); }

Result<std::optional<JobOptions>> parse_add(const Words& words) {
  JobOptions job;
  job.action = "add";
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) job.command.assign(dashes + 1, words.end());
  Taker taker(Words(words.begin(), dashes));
  while (const std::string* word = taker.next()) {
    const std::string name = name_of(*word);
    if (name == "--help" || name == "-h") return std::optional<JobOptions>();
    std::optional<std::string>* one = name == "--workdir"   ? &job.workdir
                                      : name == "--restart" ? &job.restart
                                                            : nullptr;
    Words* many = name == "--env"        ? &job.variables
                  : name == "--env-file" ? &job.variable_files
                  : name == "--after"    ? &job.after
                                         : nullptr;
    if (one != nullptr) {
      GPUROTA_ASSIGN_OR_RETURN(*one, taker.value_of(*word));
    } else if (many != nullptr) {
      GPUROTA_ASSIGN_OR_RETURN(many->emplace_back(), taker.value_of(*word));
    } else if (job.name.empty() && !word->starts_with("-")) {
      job.name = *word;
    } else {
      job.run_options.push_back(*word);
    }
  }
  if (job.name.empty() || job.command.empty()) {
    return fail(Code::kInvalid,
                "write the name of the job first and its command last, behind two dashes:\n"
                "  gpurota job add web --memory 8G -- python serve.py");
  }
  for (const std::string& variable : job.variables) {
    if (variable.find('=') == std::string::npos) continue;
    return fail(Code::kInvalid,
                "--env takes the name of a variable, whose value is taken from your environment: "
                "everybody could read it on the command line. Or use --env-file");
  }
  return std::optional(std::move(job));
}

Result<int> parse_lines(const std::string& text) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < 1 || number > 10'000'000) {
    return fail(Code::kInvalid,
                fmt::format("--lines: '{}' is no number of lines", display_text(text, 40)));
  }
  return static_cast<int>(number);
}

Result<void> parse_option(JobOptions& job, Taker& taker, const std::string& word) {
  const std::string name = name_of(word);
  if (name == "--json" && (job.action == "list" || job.action == "show")) {
    job.json = true;
  } else if (name == "--force" && job.action == "remove") {
    job.force = true;
  } else if (name == "--user") {
    GPUROTA_ASSIGN_OR_RETURN(job.user, taker.value_of(word));
  } else if ((name == "--lines" || name == "-n") && job.action == "logs") {
    GPUROTA_ASSIGN_OR_RETURN(const std::string text, taker.value_of(word));
    GPUROTA_ASSIGN_OR_RETURN(job.lines, parse_lines(text));
  } else {
    return fail(Code::kInvalid, fmt::format("there is no option '{}' (see 'gpurota job --help')",
                                            display_text(word, 60)));
  }
  return {};
}

}  // namespace

Result<std::optional<JobOptions>> parse_job(const Words& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return std::optional<JobOptions>();
  JobOptions job;
  job.action = words[0];
  if (std::find(kActions.begin(), kActions.end(), job.action) == kActions.end()) {
    return fail(Code::kInvalid,
                fmt::format("'{}' is nothing to do with a job: add, list, show, logs, start, stop, "
                            "restart, remove",
                            display_text(job.action, 40)));
  }
  const Words rest(words.begin() + 1, words.end());
  if (job.action == "add") return parse_add(rest);
  Taker taker(rest);
  while (const std::string* word = taker.next()) {
    if (*word == "--help" || *word == "-h") return std::optional<JobOptions>();
    if (word->starts_with("-")) {
      GPUROTA_TRY(parse_option(job, taker, *word));
    } else if (job.name.empty()) {
      job.name = *word;
    } else {
      return fail(Code::kInvalid, fmt::format("unexpected '{}'", display_text(*word, 60)));
    }
  }
  if (job.name.empty() && job.action != "list") {
    return fail(Code::kInvalid, "which job? 'gpurota job list' shows them");
  }
  return std::optional(std::move(job));
}

}  // namespace gpurota::cli
