#include "cli/args.h"

#include "base/text.h"
#include "cli/exit_codes.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::array kCommands = {"run",    "status", "ps",     "release", "update", "version",
                                  "doctor", "events", "report", "reload",  "help"};

// What the options write into, as it was typed.
struct Raw {
  std::optional<std::string> runtime_dir, memory, soft_limit, note, gpus;
  std::optional<std::string> since, days, by, lease;
  Words gpu_ids, positional;
  std::optional<std::string> memory_threshold;
  bool summary = false, watch = false;
  bool follow = false, csv = false;
  bool verbose = false, json = false, all = false, help = false, version = false;
};

std::string line_of(const Words& words) { return display_command(words, 1000); }

Result<std::optional<SizeSpec>> size_of(const char* option,
                                        const std::optional<std::string>& text) {
  if (!text) return std::optional<SizeSpec>();
  auto size = parse_size_spec(*text);
  if (!size) return fail(Code::kInvalid, fmt::format("{}: {}", option, size.error().message));
  return std::optional(*size);
}

Result<LeaseId> lease_of(const std::string& text) {
  // "12" and "l12" are plainly meant for L12.
  std::string spelled = text;
  if (!spelled.empty() && spelled.front() == 'l') spelled.front() = 'L';
  if (!spelled.empty() && spelled.front() >= '0' && spelled.front() <= '9') spelled.insert(0, "L");
  const auto id = proto::parse_lease_id(spelled);
  if (!id) {
    return fail(Code::kInvalid,
                fmt::format("'{}' is not a lease: they look like L12 ('gpurota status' lists them)",
                            display_text(text, 40)));
  }
  return *id;
}

// "0,1" and repeated options alike.
Result<Words> split_ids(const Words& given) {
  Words ids;
  for (const std::string& text : given) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      if (end == at)
        return fail(Code::kInvalid, "--gpu-ids: write ids between commas: --gpu-ids 0,1");
      ids.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  return ids;
}

struct Option {
  char letter;  // '\0': none
  std::string_view name;
  bool* flag = nullptr;  // one of the three
  std::optional<std::string>* value = nullptr;
  Words* values = nullptr;

  bool takes_value() const { return flag == nullptr; }
  void set(std::string text) const {
    if (flag != nullptr) *flag = true;
    if (value != nullptr) *value = std::move(text);
    if (values != nullptr) values->push_back(std::move(text));
  }
};

std::vector<Option> common_options(Raw& raw) {
  return {{'h', "--help", &raw.help},
          {'v', "--verbose", &raw.verbose},
          {'\0', "--runtime-dir", nullptr, &raw.runtime_dir}};
}

tl::unexpected<Error> no_such_option(const std::string& word, const std::string& command) {
  return fail(Code::kInvalid,
              fmt::format("there is no option '{}' (see 'gpurota {}--help')",
                          display_text(word, 60), command.empty() ? "" : command + " "));
}

// Goes through words in order; `take` gives the next one, or nothing at the end.
class OptionParser {
 public:
  OptionParser(std::vector<Option> options, std::string command)
      : options_(std::move(options)), command_(std::move(command)) {}

  // Sets the options. What is neither an option nor its value comes back: the first such word and
  // all behind it if `stop_at_word`, else each.
  Result<Words> parse(const Words& words, bool stop_at_word) {
    Words rest;
    for (at_ = 0; at_ < words.size(); ++at_) {
      const std::string& word = words[at_];
      if (word.size() < 2 || word.front() != '-') {
        rest.push_back(word);
        if (!stop_at_word) continue;
        rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words.end());
        break;
      }
      GPUROTA_TRY(word[1] == '-' ? parse_long(words) : parse_letters(words));
    }
    return rest;
  }

 private:
  Result<void> parse_long(const Words& words) {
    const std::string& word = words[at_];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto option = std::find_if(options_.begin(), options_.end(),
                                     [&](const Option& o) { return o.name == name; });
    const bool has_value = equals != std::string::npos;
    if (option == options_.end() || (has_value && !option->takes_value())) {
      return no_such_option(word, command_);
    }
    if (has_value) {
      option->set(word.substr(equals + 1));
      return {};
    }
    return take_value(*option, words);
  }

  // "-v", "-m8G", "-vm 8G".
  Result<void> parse_letters(const Words& words) {
    const std::string word = words[at_];
    for (std::size_t i = 1; i < word.size(); ++i) {
      const auto option = std::find_if(options_.begin(), options_.end(),
                                       [&](const Option& o) { return o.letter == word[i]; });
      if (option == options_.end()) return no_such_option(word, command_);
      if (option->takes_value() && i + 1 < word.size()) {
        option->set(word.substr(i + 1));
        return {};
      }
      GPUROTA_TRY(take_value(*option, words));
    }
    return {};
  }

  Result<void> take_value(const Option& option, const Words& words) {
    if (!option.takes_value()) {
      option.set("");
    } else if (at_ + 1 < words.size()) {
      option.set(words[++at_]);
    } else {
      return fail(Code::kInvalid,
                  fmt::format("{} needs a value behind it (see 'gpurota {} --help')", option.name,
                              command_));
    }
    return {};
  }

  std::vector<Option> options_;
  std::string command_;
  std::size_t at_ = 0;
};

Result<RunOptions> run_options(const Raw& raw, Words command) {
  RunOptions run;
  if (raw.gpus && !raw.gpu_ids.empty()) {
    return fail(Code::kInvalid, "--gpus says how many, --gpu-ids says which: give one of them");
  }
  if (raw.gpus) {
    const std::string& text = *raw.gpus;
    const bool number = !text.empty() && text.size() <= 4 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    if (!number || std::stoi(text) == 0) {
      return fail(Code::kInvalid,
                  fmt::format("--gpus: '{}' is not a number of GPUs: write --gpus 2 (or --gpu-ids "
                              "to name them)",
                              display_text(text, 40)));
    }
    run.gpus = std::stoi(text);
  }
  GPUROTA_ASSIGN_OR_RETURN(run.gpu_ids, split_ids(raw.gpu_ids));
  GPUROTA_ASSIGN_OR_RETURN(run.memory, size_of("--memory", raw.memory));
  GPUROTA_ASSIGN_OR_RETURN(run.soft_limit, size_of("--soft-limit", raw.soft_limit));
  if (run.soft_limit && !run.memory) {
    return fail(Code::kInvalid, "--soft-limit is a warning line below --memory: give --memory too");
  }
  run.note = raw.note;
  run.command = std::move(command);
  return run;
}

// The words before the command have been parsed; `rest` is what did not belong to an option.
Result<void> check_run_words(const Words& before, const Words& rest, bool dashes,
                             const Words& command) {
  if (!rest.empty()) {
    Words line = {"gpurota"};
    line.insert(line.end(), before.begin(),
                before.end() - static_cast<std::ptrdiff_t>(rest.size()));
    line.emplace_back("--");
    line.insert(line.end(), rest.begin(), rest.end());
    if (dashes) line.emplace_back("--");
    line.insert(line.end(), command.begin(), command.end());
    return fail(Code::kInvalid, "the command comes after '--':\n  " + line_of(line));
  }
  if (command.empty()) {
    return fail(Code::kInvalid,
                "no command to run: write it after '--':\n  gpurota run --memory 8G -- python "
                "train.py");
  }
  return {};
}

Arguments finish(const Raw& raw, Command command) {
  return {raw.runtime_dir, raw.verbose, std::move(command)};
}

Result<Arguments> parse_run(Raw& raw, const Words& words, std::size_t run_at) {
  const auto dashes =
      std::find(words.begin() + static_cast<std::ptrdiff_t>(run_at), words.end(), "--");
  const Words before(words.begin(), dashes);
  const Words command(dashes == words.end() ? dashes : dashes + 1, words.end());
  Words options = before;
  options.erase(options.begin() + static_cast<std::ptrdiff_t>(run_at));
  std::vector<Option> known = common_options(raw);
  known.insert(known.end(), {{'g', "--gpus", nullptr, &raw.gpus},
                             {'i', "--gpu-ids", nullptr, nullptr, &raw.gpu_ids},
                             {'m', "--memory", nullptr, &raw.memory},
                             {'\0', "--soft-limit", nullptr, &raw.soft_limit},
                             {'\0', "--note", nullptr, &raw.note}});
  GPUROTA_ASSIGN_OR_RETURN(const Words rest, OptionParser(known, "run").parse(options, true));
  if (raw.help) return finish(raw, HelpOptions{"run"});
  GPUROTA_TRY(check_run_words(before, rest, dashes != words.end(), command));
  GPUROTA_ASSIGN_OR_RETURN(RunOptions run, run_options(raw, command));
  return finish(raw, std::move(run));
}

// Options and positional words of every other command.
Result<void> parse_simple(Raw& raw, const std::string& name, const Words& words, std::size_t most) {
  std::vector<Option> known = common_options(raw);
  if (name == "status" || name == "ps" || name == "doctor" || name == "events" ||
      name == "report") {
    known.push_back({'\0', "--json", &raw.json});
  }
  if (name == "status") {
    known.push_back({'s', "--summary", &raw.summary});
    known.push_back({'w', "--watch", &raw.watch});
    known.push_back({'\0', "--memory-threshold", nullptr, &raw.memory_threshold});
  }
  if (name == "events") {
    known.push_back({'f', "--follow", &raw.follow});
    known.push_back({'\0', "--lease", nullptr, &raw.lease});
  }
  if (name == "report") {
    known.push_back({'d', "--days", nullptr, &raw.days});
    known.push_back({'\0', "--by", nullptr, &raw.by});
    known.push_back({'\0', "--csv", &raw.csv});
  }
  if (name == "events" || name == "report") {
    known.push_back({'\0', "--since", nullptr, &raw.since});
  }
  if (name == "release") {
    known.push_back({'i', "--gpu-ids", nullptr, nullptr, &raw.gpu_ids});
    known.push_back({'a', "--all", &raw.all});
  }
  if (name == "update") {
    known.push_back({'m', "--memory", nullptr, &raw.memory});
    known.push_back({'\0', "--soft-limit", nullptr, &raw.soft_limit});
    known.push_back({'\0', "--note", nullptr, &raw.note});
  }
  GPUROTA_ASSIGN_OR_RETURN(raw.positional, OptionParser(known, name).parse(words, false));
  if (raw.positional.size() > most) {
    return fail(Code::kInvalid, fmt::format("unexpected '{}' (see 'gpurota {} --help')",
                                            display_text(raw.positional[most], 60), name));
  }
  return {};
}

Result<Command> status_command(const Raw& raw) {
  StatusOptions status{raw.json, raw.summary, raw.watch, std::nullopt};
  if (raw.json && (raw.summary || raw.watch)) {
    return fail(Code::kInvalid,
                "--json is for programs, --summary and --watch are for people: "
                "give one of them");
  }
  if (!raw.memory_threshold) return status;
  // Zero is the way to see every process.
  if (*raw.memory_threshold == "0") {
    status.memory_threshold = Bytes();
    return status;
  }
  auto threshold = parse_bytes(*raw.memory_threshold);
  if (!threshold) return fail(Code::kInvalid, "--memory-threshold: " + threshold.error().message);
  status.memory_threshold = *threshold;
  return status;
}

Result<Command> release_command(const Raw& raw) {
  ReleaseOptions release;
  for (const std::string& word : raw.positional) {
    GPUROTA_ASSIGN_OR_RETURN(release.leases.emplace_back(), lease_of(word));
  }
  GPUROTA_ASSIGN_OR_RETURN(release.gpu_ids, split_ids(raw.gpu_ids));
  release.all = raw.all;
  const int ways =
      (release.leases.empty() ? 0 : 1) + (release.gpu_ids.empty() ? 0 : 1) + (release.all ? 1 : 0);
  if (ways > 1)
    return fail(Code::kInvalid, "give leases, or --gpu-ids, or --all: only one of them");
  return release;
}

Result<Command> update_command(const Raw& raw) {
  if (raw.positional.empty()) {
    return fail(Code::kInvalid, "which lease? For instance: gpurota update L12 --memory 12G");
  }
  UpdateOptions update;
  GPUROTA_ASSIGN_OR_RETURN(update.lease, lease_of(raw.positional.front()));
  GPUROTA_ASSIGN_OR_RETURN(update.memory, size_of("--memory", raw.memory));
  GPUROTA_ASSIGN_OR_RETURN(update.soft_limit, size_of("--soft-limit", raw.soft_limit));
  update.note = raw.note;
  if (!update.memory && !update.soft_limit && !update.note) {
    return fail(Code::kInvalid, "nothing to change: give --memory, --soft-limit or --note");
  }
  return update;
}

Result<Command> history_command(const Raw& raw, const std::string& name) {
  if (name == "report") {
    if (raw.json && raw.csv) return fail(Code::kInvalid, "give --json or --csv, not both");
    return ReportOptions{raw.json, raw.csv, raw.days, raw.since, raw.by};
  }
  EventsOptions events{raw.json, raw.follow, raw.since, std::nullopt};
  if (raw.lease) {
    GPUROTA_ASSIGN_OR_RETURN(events.lease, lease_of(*raw.lease));
  }
  return events;
}

Result<Command> simple_command(Raw& raw, const std::string& name, const Words& words) {
  const std::size_t most = name == "release" ? 256 : name == "update" || name == "ps" ? 1 : 0;
  GPUROTA_TRY(parse_simple(raw, name, words, most));
  if (raw.help) return HelpOptions{name};
  if (name == "status") return status_command(raw);
  if (name == "doctor") return DoctorOptions{raw.json};
  if (name == "version") return VersionOptions{};
  if (name == "events" || name == "report") return history_command(raw, name);
  if (name == "reload") return ReloadOptions{};
  if (name == "release") return release_command(raw);
  if (name == "update") return update_command(raw);
  PsOptions ps{raw.json, std::nullopt};
  if (!raw.positional.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(ps.lease, lease_of(raw.positional.front()));
  }
  return ps;
}

// Where the command's name is: the first word that is neither an option nor its value.
std::size_t command_at(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--runtime-dir") {
      ++i;
    } else if (!words[i].starts_with("-") || words[i] == "--") {
      return i;
    }
  }
  return words.size();
}

Result<Arguments> parse_without_command(Raw& raw, const Words& words) {
  std::vector<Option> known = common_options(raw);
  known.push_back({'V', "--version", &raw.version});
  GPUROTA_TRY(OptionParser(known, "").parse(words, false));
  if (raw.version) return finish(raw, VersionOptions{true});
  if (raw.help) return finish(raw, HelpOptions{});
  return fail(Code::kInvalid,
              "which command? One of run, status, ps, release, update, version, doctor, burn, job "
              "('gpurota "
              "--help' explains them)");
}

Result<Arguments> parse_job_command(Raw& raw, const Words& words, std::size_t at) {
  const auto behind = words.begin() + static_cast<std::ptrdiff_t>(at);
  // What stands in front of the command is for all of them.
  GPUROTA_TRY(OptionParser(common_options(raw), "job").parse(Words(words.begin(), behind), false));
  if (raw.help) return finish(raw, HelpOptions{"job"});
  GPUROTA_ASSIGN_OR_RETURN(auto job, parse_job(Words(behind + 1, words.end())));
  if (!job) return finish(raw, HelpOptions{"job"});
  if (job->action == "add") {
    Words run = {"run"};
    run.insert(run.end(), job->run_options.begin(), job->run_options.end());
    run.emplace_back("--");
    run.insert(run.end(), job->command.begin(), job->command.end());
    Raw of_run;
    GPUROTA_TRY(parse_run(of_run, run, 0));
  }
  return finish(raw, std::move(*job));
}

Result<Arguments> parse(const Words& words) {
  Raw raw;
  const std::size_t at = command_at(words);
  if (at == words.size()) return parse_without_command(raw, words);
  const std::string& name = words[at];
  if (name == "run") return parse_run(raw, words, at);
  Words rest = words;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  if (name == "burn")
    return finish(
        raw, BurnOptions{Words(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end())});
  if (name == "job") return parse_job_command(raw, words, at);
  if (name == "help") {
    const std::string topic = at + 1 < words.size() ? words[at + 1] : "";
    if (topic == "burn") return finish(raw, BurnOptions{{"--help"}});
    return finish(raw, HelpOptions{topic});
  }
  if (name == "__complete") {
    return finish(raw, CompleteOptions{at + 1 < words.size() ? words[at + 1] : ""});
  }
  if (std::find(kCommands.begin(), kCommands.end(), name) == kCommands.end()) {
    Words line = {"gpurota"};
    line.insert(line.end(), words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    line.emplace_back("run");
    if (name != "--") line.emplace_back("--");
    line.insert(line.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    return fail(Code::kInvalid,
                fmt::format("there is no command '{}'; to run a program on a GPU:\n  {}",
                            display_text(name, 60), line_of(line)));
  }
  GPUROTA_ASSIGN_OR_RETURN(Command command, simple_command(raw, name, rest));
  return finish(raw, std::move(command));
}

}  // namespace

tl::expected<Arguments, UsageError> parse_arguments(const std::vector<std::string>& words) {
  auto arguments = parse(words);
  if (arguments) return std::move(*arguments);
  const std::size_t at = command_at(words);
  const bool run = at < words.size() && words[at] == "run";
  return tl::unexpected(UsageError{arguments.error().message, run ? kExitRunFailed : kExitFailed});
}

}  // namespace gpurota::cli
