#include "cli/args/args.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/args/command_names.h"
#include "cli/args/command_table.h"
#include "cli/args/container_options.h"
#include "cli/args/history_args.h"
#include "cli/args/host_args.h"
#include "cli/args/option_parser.h"
#include "cli/args/queue_args.h"
#include "cli/args/site_args.h"
#include "cli/args/top_args.h"
#include "cli/args/turns_args.h"
#include "cli/args/update_args.h"
#include "cli/args/web_args.h"
#include "cli/exit_codes.h"
#include "cli/text/time_text.h"
#include "core/compute_capability.h"
#include "core/compute_share.h"
#include "core/lease_name.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

std::string line_of(const Words& words) { return display_command(words, 1000); }

}  // namespace

// Zero shows every process.
Result<std::optional<Bytes>> threshold_of(const Raw& raw) {
  if (!raw.memory_threshold) return std::optional<Bytes>();
  if (*raw.memory_threshold == "0") return std::optional(Bytes());
  const auto threshold = parse_bytes(*raw.memory_threshold);
  if (!threshold) return fail(Code::kInvalid, "--memory-threshold: " + threshold.error().message);
  GPUROTA_TRY(check_amount("--memory-threshold", *raw.memory_threshold, *threshold));
  return std::optional(*threshold);
}

namespace {

Result<std::optional<Bytes>> min_memory_of(const Raw& raw) {
  GPUROTA_ASSIGN_OR_RETURN(const auto size, size_of("--min-memory", raw.min_memory));
  if (!size) return std::optional<Bytes>();
  if (size->percent != 0) {
    return fail(Code::kInvalid, "--min-memory is the size of a GPU: write an amount, as 40G");
  }
  return std::optional(size->bytes);
}

// "8.0" is 80.
Result<std::optional<int>> min_cc_of(const std::optional<std::string>& text) {
  if (!text) return std::optional<int>();
  const auto version = parse_compute_capability(*text);
  if (version) return std::optional(*version);
  return fail(Code::kInvalid,
              fmt::format("--min-cc: {}: write it as --min-cc 8.0", version.error().message));
}

// Reads the kind of GPU, and which GPUs it should be near.
Result<void> read_kind(const Raw& raw, LeaseWishes& run) {
  run.gpu_type = raw.gpu_type;
  run.gpu_class = raw.gpu_class;
  GPUROTA_ASSIGN_OR_RETURN(run.min_memory, min_memory_of(raw));
  GPUROTA_ASSIGN_OR_RETURN(run.min_cc, min_cc_of(raw.min_cc));
  if (raw.near) {
    GPUROTA_ASSIGN_OR_RETURN(run.near, lease_handle(*raw.near));
  }
  const bool kind = run.gpu_type || run.gpu_class || run.min_memory || run.min_cc || run.near;
  if (!run.gpu_ids.empty() && kind) {
    return fail(Code::kInvalid,
                "--gpu-ids names the GPUs: leave out --gpu-type, --gpu-class, --min-memory, "
                "--min-cc and --near");
  }
  return {};
}

// After all other options that decide about GPUs and memory.
Result<void> read_classes(const Raw& raw, LeaseWishes& run) {
  run.latency = latency_of(raw.latency);
  const LatencyClass latency = run.latency.value_or(LatencyClass::kNormal);
  GPUROTA_TRY(check_latency(latency, {run.memory.has_value() || run.swap, raw.filler}));
  GPUROTA_ASSIGN_OR_RETURN(run.compute, compute_of(raw.compute));
  GPUROTA_ASSIGN_OR_RETURN(run.compute_max, compute_max_of(raw.compute_max));
  const std::size_t named = run.gpu_ids.size();
  return check_compute_share({run.compute.value_or(0), compute_bound(run.compute_max.value_or(0))},
                             {.limited = run.memory.has_value(),
                              .swap = run.swap,
                              .filler = raw.filler,
                              .interactive = latency == LatencyClass::kInteractive,
                              .gpus = named != 0 ? static_cast<int>(named) : run.gpus.value_or(1)});
}

}  // namespace

Result<void> read_wishes(const Raw& raw, LeaseWishes& run) {
  if (raw.gpus && !raw.gpu_ids.empty()) {
    return fail(Code::kInvalid, "--gpus says how many, --gpu-ids says which: give one of them");
  }
  if (raw.gpus) {
    const std::string& text = *raw.gpus;
    if (text == "all") {
      return fail(Code::kInvalid, "--gpus takes a number; all GPUs of the machine: --gpu-ids all");
    }
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
  GPUROTA_TRY(read_kind(raw, run));
  GPUROTA_ASSIGN_OR_RETURN(run.memory, size_of("--memory", raw.memory));
  GPUROTA_ASSIGN_OR_RETURN(run.soft_limit, size_of("--soft-limit", raw.soft_limit));
  GPUROTA_ASSIGN_OR_RETURN(run.memory_threshold, threshold_of(raw));
  run.swap = raw.swap;
  if (run.soft_limit && !run.memory && !run.swap) {
    return fail(Code::kInvalid, "--soft-limit is a warning line below --memory: give --memory too");
  }
  run.oversize = raw.oversize;
  if (run.oversize && !(run.swap && run.memory)) {
    return fail(Code::kInvalid,
                "--oversize is for more memory than the GPU has: also give --swap, and the total "
                "with --memory");
  }
  if (raw.quantum && !run.swap) {
    return fail(Code::kInvalid, "--quantum is how long a turn lasts: give --swap too");
  }
  run.quantum = raw.quantum;
  GPUROTA_TRY(read_classes(raw, run));
  GPUROTA_ASSIGN_OR_RETURN(run.warning, warning_of(raw.warn));
  GPUROTA_ASSIGN_OR_RETURN(run.priority, priority_of(raw.priority));
  run.note = raw.note;
  run.as_name = raw.as_;
  if (raw.name) GPUROTA_TRY(check_lease_name(*raw.name));
  run.name = raw.name;
  run.nonblock = raw.nonblock;
  if (raw.nonblock && raw.wait) {
    return fail(Code::kInvalid, "--nonblock and --wait exclude each other: give one of them");
  }
  GPUROTA_ASSIGN_OR_RETURN(run.wait, time_of("--wait", raw.wait));
  return {};
}

namespace {

Result<RunOptions> run_options(const Raw& raw, Words command) {
  RunOptions run;
  GPUROTA_TRY(read_wishes(raw, run));
  GPUROTA_ASSIGN_OR_RETURN(run.lasts, time_of("--timeout", raw.timeout));
  run.until = raw.until;
  if (run.until && run.lasts) {
    return fail(Code::kInvalid, "--until and --timeout both say when it ends: give one of them");
  }
  if (raw.lease) {
    if (raw.gpus || !raw.gpu_ids.empty() || raw.memory || raw.soft_limit || raw.note || raw.wait ||
        raw.nonblock || raw.as_ || raw.filler || raw.memory_threshold || raw.swap || raw.oversize ||
        raw.latency || raw.compute || raw.compute_max || raw.priority || raw.quantum || raw.warn ||
        raw.gpu_type || raw.gpu_class || raw.min_memory || raw.min_cc || raw.near || raw.name) {
      return fail(Code::kInvalid,
                  "--lease runs the command under a reservation, which already has its GPUs: only "
                  "--timeout or --until can be combined with it");
    }
    // A booking becomes a lease when it is used.
    const auto booking = request_handle(*raw.lease);
    const auto lease = lease_handle(*raw.lease);
    if (!lease && booking && booking->name.empty()) {
      run.booking = *booking;
      run.lease.emplace();
    } else {
      GPUROTA_ASSIGN_OR_RETURN(run.lease, std::move(lease));
    }
  }
  run.filler = raw.filler;
  run.command = std::move(command);
  return run;
}

// The words before the command have been parsed. `rest`: the parsed words that belong to no option.
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
  return {raw.runtime_dir, raw.verbose, raw.quiet, raw.color, std::move(command), {}};
}

// Parses the typed words and the user's defaults together. An error names the defaults that were
// added.
template <class Parse>
Result<Arguments> with_defaults(std::string_view command, const OwnDefaults& defaults, Raw& raw,
                                Parse parse) {
  const std::string added = add_defaults(command, defaults, raw);
  Result<Command> parsed = parse();
  if (!parsed && !added.empty()) {
    parsed.error().message +=
        fmt::format("\n  (not typed, but in {}: {}; --no-defaults leaves it out)",
                    display_text(defaults.path), added);
  }
  if (!parsed) return tl::unexpected(parsed.error());
  Arguments arguments = finish(raw, std::move(*parsed));
  arguments.defaults = added;
  return arguments;
}

Result<Arguments> parse_run(Raw& raw, const Words& words, std::size_t run_at,
                            const OwnDefaults& defaults) {
  const auto dashes =
      std::find(words.begin() + static_cast<std::ptrdiff_t>(run_at), words.end(), "--");
  const Words before(words.begin(), dashes);
  const Words command(dashes == words.end() ? dashes : dashes + 1, words.end());
  Words options = before;
  options.erase(options.begin() + static_cast<std::ptrdiff_t>(run_at));
  GPUROTA_ASSIGN_OR_RETURN(const Words rest,
                           parse_words(options_of("run", raw), "run", options, true));
  if (raw.help) return finish(raw, HelpOptions{"run"});
  GPUROTA_TRY(check_run_words(before, rest, dashes != words.end(), command));
  const TypedOptions typed = typed_options(raw);
  return with_defaults("run", defaults, raw, [&]() -> Result<Command> {
    GPUROTA_ASSIGN_OR_RETURN(RunOptions run, run_options(raw, command));
    run.typed = typed;
    return on_hosts("run", raw, std::move(run));
  });
}

// Options and positional words of every other command.
Result<void> parse_simple(Raw& raw, const std::string& name, const Words& words) {
  GPUROTA_ASSIGN_OR_RETURN(raw.positional, parse_words(options_of(name, raw), name, words));
  const std::size_t most = find_command(name)->most_words;
  if (raw.positional.size() > most) {
    return fail(Code::kInvalid, fmt::format("unexpected '{}' (see 'gpurota {} --help')",
                                            display_text(raw.positional[most], 60), name));
  }
  return {};
}

Result<StatusForm> status_form(const Raw& raw) {
  if (!raw.columns) {
    if (!raw.no_titles) return StatusForm{raw.summary, std::nullopt, {}};
    return fail(Code::kInvalid, "--no-titles needs --format COLUMN,…");
  }
  if (raw.json || raw.summary) {
    return fail(Code::kInvalid, "--format cannot be combined with --json or --summary");
  }
  GPUROTA_ASSIGN_OR_RETURN(auto columns, parse_status_columns(*raw.columns));
  return StatusForm{false, ChosenColumns{std::move(columns), !raw.no_titles}, {}};
}

Result<Command> status_command(const Raw& raw) {
  if (raw.json && (raw.summary || raw.watch)) {
    return fail(Code::kInvalid, "--json cannot be combined with --summary or --watch");
  }
  if (raw.summary && (raw.me || raw.user)) {
    return fail(Code::kInvalid, "--summary counts all GPUs: leave out --me and --user");
  }
  StatusOptions status;
  status.json = raw.json;
  status.watch = raw.watch;
  GPUROTA_ASSIGN_OR_RETURN(status.form, status_form(raw));
  GPUROTA_ASSIGN_OR_RETURN(status.memory_threshold, threshold_of(raw));
  GPUROTA_ASSIGN_OR_RETURN(status.form.whose, whose_of(raw));
  return status;
}

Result<Command> release_command(const Raw& raw) {
  ReleaseOptions release;
  for (const std::string& word : raw.positional) {
    auto lease = lease_handle(word);
    const auto booking = request_handle(word);
    // Release also accepts bookings. "7" and a name mean a lease.
    if (booking && booking->name.empty() && (!lease || !lease->name.empty())) {
      release.bookings.push_back(*booking);
    } else {
      GPUROTA_ASSIGN_OR_RETURN(release.leases.emplace_back(), std::move(lease));
    }
  }
  GPUROTA_ASSIGN_OR_RETURN(release.gpu_ids, split_ids(raw.gpu_ids));
  release.all = raw.all;
  release.all_users = raw.all_users;
  release.yes = raw.yes;
  release.reason = raw.reason;
  const bool named = !release.leases.empty() || !release.bookings.empty();
  const int ways = named + !release.gpu_ids.empty() + release.all + release.all_users;
  if (ways > 1) {
    return fail(Code::kInvalid,
                "give leases, or --gpu-ids, or --all, or --all-users: only one of them");
  }
  return release;
}

Result<Command> park_command(const Raw& raw, const std::string& name) {
  if (raw.positional.empty()) {
    return fail(Code::kInvalid, fmt::format("which lease? For instance: gpurota {} L7", name));
  }
  GPUROTA_ASSIGN_OR_RETURN(const LeaseHandle lease, lease_handle(raw.positional.front()));
  ParkOptions park{lease, name == "park"};
  if (raw.no_wait && raw.wait) {
    return fail(Code::kInvalid, "--no-wait and --wait exclude each other: give one of them");
  }
  park.no_wait = raw.no_wait;
  GPUROTA_ASSIGN_OR_RETURN(park.wait, time_of("--wait", raw.wait));
  return park;
}

// The command for the parsed words in `raw`.
Result<Command> simple_command(const Raw& raw, const std::string& name) {
  if (is_queue_command(name)) return queue_command(name, raw);
  if (name == "turns" || name == "set") return turns_command(name, raw);
  if (name == "status") return status_command(raw);
  if (name == "top") return parse_top(raw);
  if (name == "doctor")
    return DoctorOptions{raw.json, raw.kubernetes || raw.kubelet_dir, raw.kubelet_dir};
  if (name == "version") return VersionOptions{false, raw.json};
  if (name == "events" || name == "report" || name == "history") return history_command(raw, name);
  if (name == "reload") return ReloadOptions{raw.json};
  if (name == "notify") return notify_command(raw);
  if (name == "web") return parse_web(raw);
  if (name == "setup") return setup_command(raw);
  if (name == "container-args") return parse_container_args(raw);
  if (name == "release") return release_command(raw);
  if (name == "update") return update_command(raw);
  if (name == "park" || name == "unpark") return park_command(raw, name);
  PsOptions ps{raw.json, std::nullopt};
  if (!raw.positional.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(ps.lease, lease_handle(raw.positional.front()));
  }
  return ps;
}

// The index of the command's name: the first word that is neither an option nor a value.
std::size_t command_at(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--runtime-dir" || words[i] == "--color") {
      ++i;
    } else if (!words[i].starts_with("-") || words[i] == "--") {
      return i;
    }
  }
  return words.size();
}

Result<Arguments> parse_without_command(Raw& raw, const Words& words) {
  GPUROTA_TRY(parse_words(options_of("", raw), "", words));
  if (raw.version) return finish(raw, VersionOptions{true});
  if (raw.help) return finish(raw, HelpOptions{});
  return fail(
      Code::kInvalid,
      "which command? One of run, reserve, status, queue, release, update, explain, ps, job, "
      "filler, doctor ('gpurota "
      "--help' explains them)");
}

// `gpurota job`, `gpurota filler` and `gpurota config`.
template <class Options>
Result<Arguments> parse_program_command(Raw& raw, const Words& words, std::size_t at,
                                        Result<std::optional<Options>> (*parse)(const Words&)) {
  const std::string& command = words[at];
  const auto behind = words.begin() + static_cast<std::ptrdiff_t>(at);
  // Before the command only the options of every command are allowed.
  GPUROTA_TRY(parse_words(options_of_every_command(raw), command, Words(words.begin(), behind)));
  if (raw.help) return finish(raw, HelpOptions{command});
  GPUROTA_ASSIGN_OR_RETURN(auto program, parse(Words(behind + 1, words.end())));
  if (!program) return finish(raw, HelpOptions{command});
  raw.quiet = raw.quiet || program->quiet;
  return finish(raw, std::move(*program));
}

// An unknown command: a typing error, or a program whose 'run --' was left out.
tl::unexpected<Error> no_such_command(const Words& words, std::size_t at) {
  const std::string& name = words[at];
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at);
  const Words before(words.begin(), begin);
  Raw raw;
  if (const auto known = parse_words(options_of_every_command(raw), "", before); !known) {
    return fail(Code::kInvalid,
                known.error().message +
                    "; the options of a command come after its name:\n  gpurota run "
                    "--memory 8G -- python train.py");
  }
  const MeantCommands meant = meant_commands(name);
  Words line = {"gpurota"};
  line.insert(line.end(), before.begin(), before.end());
  // A word with a '--' after it is not a program: the user probably meant 'run'.
  const bool has_dashes = name != "--" && std::find(begin, words.end(), "--") != words.end();
  line.emplace_back(meant.slip ? meant.names.front() : "run");
  if (!meant.slip && !has_dashes && name != "--") line.emplace_back("--");
  line.insert(line.end(), begin + (meant.slip || has_dashes), words.end());
  const std::string why = fmt::format("there is no command '{}'{}", display_text(name, 60),
                                      did_you_mean(meant.names, "'"));
  if (meant.slip) return fail(Code::kInvalid, why + "\n  " + line_of(line));
  if (!meant.names.empty()) return fail(Code::kInvalid, why);
  return fail(Code::kInvalid, why + "; to run a program on a GPU:\n  " + line_of(line));
}

Result<Arguments> parse_help(const Raw& raw, const std::string& topic) {
  if (topic == "burn") return finish(raw, BurnOptions{{"--help"}});
  if (!topic.empty() && !is_command(topic)) {
    return fail(
        Code::kInvalid,
        fmt::format("there is no command '{}' to explain{} ('gpurota --help' "
                    "lists them)",
                    display_text(topic, 60), did_you_mean(meant_commands(topic).names, "'")));
  }
  return finish(raw, HelpOptions{topic});
}

Result<Arguments> parse(const Words& words, const OwnDefaults& defaults, Raw& raw) {
  const std::size_t at = command_at(words);
  if (at == words.size()) return parse_without_command(raw, words);
  const std::string& name = words[at];
  if (name == "run") return parse_run(raw, words, at, defaults);
  Words rest = words;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  if (name == "burn")
    return finish(
        raw, BurnOptions{Words(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end())});
  if (name == "job") return parse_program_command(raw, words, at, parse_job);
  if (name == "filler") return parse_program_command(raw, words, at, parse_filler);
  if (name == "config") return parse_program_command(raw, words, at, parse_config);
  if (name == "help") return parse_help(raw, at + 1 < words.size() ? words[at + 1] : "");
  if (name == "__complete") {
    return finish(raw, CompleteOptions{at + 1 < words.size() ? words[at + 1] : ""});
  }
  if (!is_command(name)) return no_such_command(words, at);
  GPUROTA_TRY(parse_simple(raw, name, rest));
  if (raw.help) return finish(raw, HelpOptions{name});
  return with_defaults(name, defaults, raw, [&]() -> Result<Command> {
    GPUROTA_ASSIGN_OR_RETURN(Command here, simple_command(raw, name));
    return on_hosts(name, raw, std::move(here));
  });
}

}  // namespace

Result<RunOptions> parse_run_words(const std::vector<std::string>& options) {
  Words words = {"run"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "command"});
  Raw raw;
  GPUROTA_ASSIGN_OR_RETURN(Arguments arguments, parse_run(raw, words, 0, {}));
  const auto* run = std::get_if<RunOptions>(&arguments.command);
  if (run == nullptr) return fail(Code::kInvalid, "--help and --host are not job options");
  if (run->near && !run->near->name.empty()) {
    return fail(Code::kInvalid,
                "--near: write the id of the lease (L12), which means the same later");
  }
  return *run;
}

bool uses_defaults(const std::vector<std::string>& words) {
  const std::size_t at = command_at(words);
  return at < words.size() && (words[at] == "run" || words[at] == "reserve");
}

tl::expected<Arguments, UsageError> parse_arguments(const std::vector<std::string>& words,
                                                    const OwnDefaults& defaults) {
  Raw raw;
  auto arguments = parse(words, defaults, raw);
  if (arguments) {
    add_output_defaults(defaults, raw);
    arguments->verbose = arguments->verbose || raw.verbose;
    arguments->quiet = arguments->quiet || raw.quiet;
    arguments->color = raw.color;
  }
  if (arguments && arguments->runtime_dir == "") {
    arguments = fail(Code::kInvalid, "--runtime-dir: the directory has no name");
  }
  if (arguments) return std::move(*arguments);
  return tl::unexpected(UsageError{arguments.error().message, kExitUsage});
}

}  // namespace gpurota::cli
