#include "cli/args/job_args.h"

#include "base/text.h"
#include "cli/args/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gpurota::cli {
namespace {

const Vocabulary& job_vocabulary() {
  static const Vocabulary words{"job", "web --memory 8G -- python serve.py"};
  return words;
}

// Takes options that begin with `--` out of words; `take` gets the name and a way to get the value.
class Taker {
 public:
  explicit Taker(Words words) : words_(std::move(words)) {}

  // The next word; nothing at the end.
  const std::string* next() { return at_ < words_.size() ? &words_[at_++] : nullptr; }
  // The value after "=", or the next word.
  Result<std::string> value_of(const std::string& word) {
    const auto equals = word.find('=');
    if (equals != std::string::npos) return word.substr(equals + 1);
    if (at_ == words_.size()) {
      return fail(Code::kInvalid, fmt::format("{} needs a value", word));
    }
    return words_[at_++];
  }

 private:
  Words words_;
  std::size_t at_ = 0;
};

std::string name_of(const std::string& word) { return word.substr(0, word.find('=')); }

// "sweep[7]" is item 7 of sweep.
Result<void> take_item(JobOptions& job) {
  const auto bracket = job.name.find('[');
  if (bracket == std::string::npos || job.action == "apply") return {};
  const std::string number = job.name.substr(bracket + 1);
  int index = 0;
  const char* const end = number.data() + number.size();
  const auto [behind, wrong] = std::from_chars(number.data(), end, index);
  if (wrong != std::errc() || index < 0 || behind + 1 != end || *behind != ']') {
    return fail(Code::kInvalid, fmt::format("'{}' names no item of an array: write NAME[7]",
                                            display_text(job.name, 80)));
  }
  constexpr std::string_view kTakeItems[] = {"logs", "start", "stop", "restart", "cancel"};
  if (std::find(std::begin(kTakeItems), std::end(kTakeItems), job.action) == std::end(kTakeItems)) {
    return fail(Code::kInvalid, fmt::format("'gpurota job {}' is for whole jobs: leave out [{}]",
                                            job.action, index));
  }
  job.item = index;
  job.name.resize(bracket);
  return {};
}

Result<void> check_each(const JobOptions& job, bool dashes) {
  if (dashes) {
    return fail(Code::kInvalid,
                "each line of the file is a command: leave out what is behind '--'");
  }
  if (job.name.empty() || job.file.empty()) {
    return fail(Code::kInvalid,
                "write the name of the job and the file with its commands, one on each line (- is "
                "standard input):\n  gpurota job add-each sweep commands.txt --memory 8G");
  }
  return {};
}

Result<void> check_job(const JobOptions& job, bool dashes) {
  const bool update = job.action == "update";
  const bool each = job.action == "add-each";
  if (each) GPUROTA_TRY(check_each(job, dashes));
  GPUROTA_TRY(check_definition(job_vocabulary(), job, update || each));
  if (dashes && job.command.empty()) {
    return fail(Code::kInvalid, "there is no command after '--'");
  }
  const bool nothing = job.run_options.empty() && job.command.empty() && !job.workdir &&
                       !job.restart && !job.output && job.variables.empty() &&
                       job.variable_files.empty() && job.boot_after.empty() &&
                       job.after_success.empty() && job.after_end.empty() && !job.tty &&
                       !job.at_once;
  if (update && nothing) {
    return fail(Code::kInvalid, "nothing to change: give options, or a command after '--'");
  }
  if (!update) GPUROTA_TRY(parse_run_words(job.run_options));
  return {};
}

// The options of `gpurota run`, and those of the action itself.
std::vector<Option> options_of_definition(const std::string& action, Raw& raw) {
  std::vector<Option> known = options_of("run", raw);
  const std::vector<Option> own = action_options("job " + action, raw);
  known.insert(known.end(), own.begin(), own.end());
  return known;
}

Result<void> check_option(const std::vector<Option>& known, const std::string& word) {
  const std::string name = name_of(word);
  const bool there = std::any_of(known.begin(), known.end(),
                                 [&name](const Option& each) { return each.name == name; });
  if (there || !word.starts_with("--")) return {};
  return no_option(known, word, name, "job");
}

// Whether the word after this option is the option's value, not the name of a job.
bool has_value_behind(const std::vector<Option>& known, const std::string& word) {
  return std::any_of(known.begin(), known.end(), [&word](const Option& option) {
    const bool is_letter = word.size() == 2 && option.letter != '\0' && word[1] == option.letter;
    return option.takes_value() && (option.name == word || is_letter);
  });
}

// For add, add-each and update, which have the same form.
Result<std::optional<JobOptions>> parse_definition(const std::string& action, const Words& words) {
  JobOptions job;
  job.action = action;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) job.command.assign(dashes + 1, words.end());
  Raw raw;
  const std::vector<Option> known = options_of_definition(action, raw);
  Taker taker(Words(words.begin(), dashes));
  std::optional<std::string> at_once;
  while (const std::string* word = taker.next()) {
    const std::string name = name_of(*word);
    if (name == "--help" || name == "-h") return std::optional<JobOptions>();
    std::optional<std::string>* one = name == "--workdir"                            ? &job.workdir
                                      : name == "--restart"                          ? &job.restart
                                      : name == "--output"                           ? &job.output
                                      : name == "--array" && action == "add"         ? &job.array
                                      : name == "--at-once"                          ? &at_once
                                      : name == "--user" && job.action == "update"   ? &job.user
                                      : name == "--reason" && job.action == "update" ? &job.reason
                                                                                     : nullptr;
    Words* many = name == "--env"             ? &job.variables
                  : name == "--env-file"      ? &job.variable_files
                  : name == "--boot-after"    ? &job.boot_after
                  : name == "--after"         ? &job.boot_after
                  : name == "--after-success" ? &job.after_success
                  : name == "--after-end"     ? &job.after_end
                                              : nullptr;
    job.old_after = job.old_after || name == "--after";
    if (name == "--user" && one == nullptr) {
      return fail(Code::kInvalid, "a job belongs to whoever adds it: leave out --user");
    }
    if (name == "--quiet" || name == "-q") {
      job.quiet = true;
    } else if (*word == "--tty" || (*word == "--no-tty" && action == "update")) {
      job.tty = *word == "--tty";
    } else if (one != nullptr) {
      GPUROTA_ASSIGN_OR_RETURN(*one, taker.value_of(*word));
      const auto option = std::find_if(known.begin(), known.end(),
                                       [&name](const Option& each) { return each.name == name; });
      if (option != known.end()) GPUROTA_TRY(option->set(**one));
    } else if (many != nullptr) {
      GPUROTA_ASSIGN_OR_RETURN(many->emplace_back(), taker.value_of(*word));
    } else if (job.name.empty() && !word->starts_with("-")) {
      job.name = *word;
    } else if (action == "add-each" && job.file.empty() &&
               (*word == "-" || !word->starts_with("-"))) {
      job.file = *word;
    } else {
      GPUROTA_TRY(check_option(known, *word));
      job.run_options.push_back(*word);
      if (!has_value_behind(known, *word)) continue;
      if (const std::string* value = taker.next()) job.run_options.push_back(*value);
    }
  }
  GPUROTA_ASSIGN_OR_RETURN(job.at_once, number_of("--at-once", at_once, 256));
  GPUROTA_TRY(take_item(job));
  GPUROTA_TRY(check_job(job, dashes != words.end()));
  return std::optional(std::move(job));
}

}  // namespace

Result<std::optional<JobOptions>> parse_job(const Words& words) {
  GPUROTA_ASSIGN_OR_RETURN(const auto action, parse_action(job_vocabulary(), words));
  if (!action) return std::optional<JobOptions>();
  const Words rest(words.begin() + 1, words.end());
  if (*action == "add" || *action == "add-each" || *action == "update")
    return parse_definition(*action, rest);
  JobOptions job;
  job.action = *action;
  Raw typed;
  GPUROTA_TRY(parse_named(job_vocabulary(), rest, typed, job));
  if (typed.help) return std::optional<JobOptions>();
  job.force = typed.force;
  job.secrets = typed.with_secrets;
  job.follow = typed.follow;
  job.items = typed.items;
  job.failed = typed.failed;
  GPUROTA_ASSIGN_OR_RETURN(job.most_wait, time_of("--timeout", typed.most_wait));
  if (job.name.empty() && job.action == "apply") {
    return fail(Code::kInvalid, "which file? 'gpurota job export' makes one; - is standard input");
  }
  if (job.action != "list" && job.action != "export")
    GPUROTA_TRY(check_name(job_vocabulary(), job));
  GPUROTA_TRY(take_item(job));
  if (job.failed && job.item) {
    return fail(Code::kInvalid,
                "--failed is for all items that did not end well: leave it out, or "
                "the index");
  }
  return std::optional(std::move(job));
}

Result<std::vector<RunWord>> split_run_words(const Words& options) {
  Raw raw;
  const std::vector<Option> known = options_of("run", raw);
  std::vector<RunWord> out;
  for (std::size_t at = 0; at < options.size(); ++at) {
    const std::string& word = options[at];
    const bool is_long = word.starts_with("--");
    const auto equals = is_long ? word.find('=') : std::string::npos;
    const auto option = std::find_if(known.begin(), known.end(), [&](const Option& each) {
      return is_long ? each.name == word.substr(0, equals)
                     : word.size() > 1 && word[0] == '-' && each.letter == word[1];
    });
    if (option == known.end()) {
      return fail(Code::kInvalid,
                  fmt::format("'{}' is not an option of 'gpurota run'", display_text(word, 60)));
    }
    RunWord& one = out.emplace_back(RunWord{std::string(option->name), std::nullopt});
    if (!option->takes_value()) continue;
    if (equals != std::string::npos) {
      one.value = word.substr(equals + 1);
    } else if (!is_long && word.size() > 2) {
      one.value = word.substr(2);
    } else if (at + 1 < options.size()) {
      one.value = options[++at];
    } else {
      return fail(Code::kInvalid, fmt::format("{} needs a value", word));
    }
  }
  return out;
}

Words merge_run_words(const std::vector<RunWord>& before, const std::vector<RunWord>& change) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kEither = {
      {{"--gpus", "--gpu-ids"}, {"--wait", "--nonblock"}}};
  const auto replaced = [&](const RunWord& old) {
    return std::any_of(change.begin(), change.end(), [&](const RunWord& each) {
      const bool excluded = std::any_of(kEither.begin(), kEither.end(), [&](const auto& pair) {
        return (pair.first == old.name && pair.second == each.name) ||
               (pair.second == old.name && pair.first == each.name);
      });
      return excluded || each.name == old.name;
    });
  };
  Words out;
  const auto add = [&out](const RunWord& word) {
    out.push_back(word.name);
    if (word.value) out.push_back(*word.value);
  };
  for (const RunWord& word : before) {
    if (!replaced(word)) add(word);
  }
  for (const RunWord& word : change) add(word);
  return out;
}

}  // namespace gpurota::cli
