// gpurota setup: asks for a site's first decisions, writes them to a file, and makes the daemon use
// it.
#include "base/directory.h"
#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "cli/args/program_commands.h"
#include "cli/exit_codes.h"
#include "cli/site/config_text.h"
#include "cli/site/main_file.h"
#include "cli/site/setup_file.h"
#include "cli/text/ask_person.h"
#include "config/loaded.h"

#include <fmt/format.h>

#include <cerrno>
#include <set>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

// The drop-in to write, and its present content.
struct Place {
  MainFile main;
  std::string folder, path;
  config::Text before;  // empty: the file does not exist
  config::Loaded loaded;
};

Error not_writable(const std::string& path, int reason) {
  return {Code::kDenied, reason,
          fmt::format("cannot write {}: {}{}", display_text(path),
                      std::generic_category().message(reason),
                      ::geteuid() == 0 ? "" : " (sudo gpurota setup)")};
}

Result<std::string> text_if_there(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return fail_errno("cannot open " + display_text(path), errno);
  auto text = read_all(file.get(), config::kMostBytes);
  if (!text) return fail_errno("cannot read " + display_text(path), errno);
  return std::move(*text);
}

Result<Place> find_place(const Context& context) {
  Place place;
  place.main = find_main_file(context);
  place.folder = config::drop_in_folder(place.main.path);
  place.path = fmt::format("{}/{}", place.folder, kSetupFile);
  place.before.file = place.path;
  GPUROTA_ASSIGN_OR_RETURN(place.before.text, text_if_there(place.path));
  place.loaded = config::load(place.main.path, place.main.required);
  if (place.loaded.mistake_count() > 0) {
    return fail(Code::kInvalid, "the configuration has mistakes, which come first:\n" +
                                    config::mistakes_text(place.loaded));
  }
  return place;
}

// The keys of the questions that were answered.
Result<std::set<std::string_view>> answer(SetupValues& values, const Place& place,
                                          const SetupOptions& options) {
  std::set<std::string_view> answered;
  for (const SetupQuestion& question : setup_questions()) {
    const auto given = options.answers.find(question.option);
    if (given != options.answers.end()) {
      GPUROTA_TRY(put_answer(values, question, given->second));
      answered.insert(question.key);
      continue;
    }
    if (options.yes) continue;
    const std::string now = answer_now(place.loaded.config, question);
    const std::string typed =
        ask_person(now == question.nothing
                       ? fmt::format("{} [{}]", question.question, now)
                       : fmt::format("{} [{}; or {}]", question.question, now, question.nothing));
    if (typed.empty() || typed == now) continue;
    GPUROTA_TRY(put_answer(values, question, typed));
    answered.insert(question.key);
  }
  return answered;
}

// Checks the whole configuration as it will be with the new file.
Result<void> check(const Place& place, const std::string& text,
                   const std::set<std::string_view>& answered) {
  const config::Loaded next =
      config::load_with(place.main.path, place.main.required, {place.path, text});
  if (next.mistake_count() > 0) {
    return fail(Code::kInvalid, "nothing is written:\n" + config::mistakes_text(next));
  }
  for (const config::Problem& problem : read_unknown_accounts(next)) {
    if (problem.place.file == place.path) {
      return fail(Code::kInvalid, "nothing is written: " + problem.key + ": " + problem.what);
    }
  }
  for (const std::string_view key : answered) {
    const auto where = next.places.find(std::string(key));
    if (where == next.places.end() || where->second.file == place.path) continue;
    complain(fmt::format("{} is set at {}, and that counts: change it there", key,
                         to_string(where->second)));
  }
  return {};
}

// Writes all of the file or nothing, even on a full disk.
Result<void> write_file(const Place& place, const std::string& text) {
  const bool made = ::mkdir(place.folder.c_str(), 0755) == 0;
  if (!made && errno != EEXIST) return tl::unexpected(not_writable(place.folder, errno));
  // Independent of our umask.
  if (made) (void)::chmod(place.folder.c_str(), 0755);
  GPUROTA_TRY(check_own_place(place.folder));
  const auto replaced = replace_file(place.path, text, 0644);
  if (!replaced) return tl::unexpected(not_writable(place.path, replaced.error().native));
  return {};
}

bool run_systemctl() {
  const char* const words[] = {"systemctl",       "enable",           "--now",
                               "gpurotad.socket", "gpurotad.service", nullptr};
  pid_t pid = 0;
  if (::posix_spawnp(&pid, words[0], nullptr, nullptr, const_cast<char* const*>(words), environ)) {
    return false;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Makes a running daemon read the configuration. If none runs, systemd starts one, if this machine
// and this user allow it.
int take_over(const Context& context, const SetupOptions& options) {
  if (options.no_start) return kExitOk;
  if (context.connect()) return reload(context, {});
  const bool has_systemd = ::access("/run/systemd/system", F_OK) == 0;
  if (::geteuid() == 0 && has_systemd && context.location().runtime_dir == "/run/gpurota") {
    if (run_systemctl()) return done(context, "gpurotad is started, now and at each boot");
    complain("gpurotad is not started: systemctl status gpurotad says why");
    return kExitFailed;
  }
  return done(context, "no gpurotad runs here: start it (systemctl enable --now gpurotad)");
}

Result<bool> write_answers(const Context& context, const SetupOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(const Place place, find_place(context));
  GPUROTA_ASSIGN_OR_RETURN(SetupValues values, parse_setup_file(place.before));
  GPUROTA_ASSIGN_OR_RETURN(const auto answered, answer(values, place, options));
  const std::string text = setup_file_text(values);
  const bool is_new = place.before.text.empty() && values.empty();
  if (text == place.before.text || is_new) {
    (void)done(context, "the configuration stays as it is");
    return true;
  }
  GPUROTA_TRY(check(place, text, answered));
  GPUROTA_TRY(print(fmt::format("{}:\n{}", display_text(place.path), display_lines(text))));
  if (!options.yes) {
    const std::string typed = ask_person("write it? [yes; or no]");
    if (!typed.empty() && typed != "yes" && typed != "y") return false;
  }
  GPUROTA_TRY(write_file(place, text));
  return true;
}

}  // namespace

int setup(const Context& context, const SetupOptions& options) {
  if (!options.yes && !can_ask()) {
    return misused({Code::kInvalid, 0,
                    "there is no terminal to ask on: give --yes and what to set, as in "
                    "gpurota setup --yes --group gpurota"});
  }
  const auto written = write_answers(context, options);
  if (!written) return failed(written.error());
  if (!*written) {
    complain("nothing is written");
    return kExitFailed;
  }
  return take_over(context, options);
}

}  // namespace gpurota::cli
