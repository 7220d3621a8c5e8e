// reload and config: the effect of the configuration files.
#include "base/text.h"
#include "cli/args/program_commands.h"
#include "cli/exit_codes.h"
#include "cli/site/config_text.h"
#include "cli/site/main_file.h"
#include "proto/documents.h"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace gpurota::cli {
namespace {

// Without the prefix "gpurota: ": editors and scripts expect FILE:LINE at the beginning of a line.
void tell(std::string_view lines) {
  std::string text(lines);
  text += '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void warn(const std::vector<config::Problem>& problems) {
  for (const config::Problem& problem : problems) tell(to_string(problem));
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

int check(const Context& context, const ConfigOptions& options) {
  const MainFile file = find_main_file(context, options.file);
  const config::Loaded loaded = config::load(file.path, file.required);
  if (loaded.mistake_count() > 0) {
    tell(config::mistakes_text(loaded));
    return kExitFailed;
  }
  const auto unknown = read_unknown_accounts(loaded);
  warn(unknown);
  const bool has_main =
      std::find(loaded.files.begin(), loaded.files.end(), file.path) != loaded.files.end();
  std::string text = fmt::format("{}: {}", display_text(file.path),
                                 has_main ? "ok" : "is not there, every setting has its default");
  const std::size_t drop_ins = loaded.files.size() - (has_main ? 1 : 0);
  if (drop_ins > 0) {
    text = fmt::format("{}: ok, {} in {}", display_text(file.path), counted(drop_ins, "drop-in"),
                       display_text(config::drop_in_folder(file.path)));
  }
  if (!unknown.empty()) text += fmt::format(" ({})", counted(unknown.size(), "warning"));
  return done(context, text);
}

int show(const Context& context, const ConfigOptions& options) {
  auto reply = ask_daemon(context, proto::ShowConfig{});
  if (!reply) return failed(reply.error());
  if (options.json) {
    if (options.changed) reply->settings = changed_settings(*reply);
    return shown(proto::document_json<proto::ShowConfig>(*reply));
  }
  for (const proto::ConfigProblem& warning : reply->warnings) tell(to_string(problem_of(warning)));
  return shown(settings_text(*reply, options.changed, terminal_layout()));
}

int diff(const Context& context, const ConfigOptions& options) {
  const auto reply = ask_daemon(context, proto::ShowConfig{});
  if (!reply) return failed(reply.error());
  const MainFile file = find_main_file(context, options.file);
  const config::Loaded loaded = config::load(file.path, file.required);
  if (loaded.mistake_count() > 0) {
    tell(config::mistakes_text(loaded));
    complain("a reload would be refused, and the old settings stay in effect");
    return kExitFailed;
  }
  const auto unknown = read_unknown_accounts(loaded);
  const auto changes = changes_of(*reply, loaded.config);
  if (options.json) {
    proto::Reload::Reply document;
    document.changes.emplace();
    document.warnings.emplace();
    for (const config::Change& each : changes) document.changes->push_back(proto_change(each));
    for (const config::Problem& each : unknown) document.warnings->push_back(proto_problem(each));
    return shown(proto::document_json<proto::Reload>(document));
  }
  warn(unknown);
  if (reply->hidden > 0) {
    complain("settings about other users are not compared: only administrators see them");
  }
  return shown(changes_text(changes, true) + "\n");
}

}  // namespace

int reload(const Context& context, const ReloadOptions& options) {
  const auto reply = ask_daemon(context, proto::Reload{});
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::Reload>(*reply));
  for (const proto::ConfigProblem& each :
       reply->warnings.value_or(std::vector<proto::ConfigProblem>())) {
    tell(to_string(problem_of(each)));
  }
  // An older daemon does not say what has changed.
  if (!reply->changes) return done(context, "the daemon has read its configuration again");
  std::vector<config::Change> changes;
  for (const proto::ConfigChange& each : *reply->changes) changes.push_back(change_of(each));
  const std::string text = changes_text(changes, false);
  return done(context, fmt::format("the daemon has read its configuration again:{}{}",
                                   changes.empty() ? " " : "\n", text));
}

int config(const Context& context, const ConfigOptions& options) {
  if (options.action == "check") return check(context, options);
  if (options.action == "show") return show(context, options);
  return diff(context, options);
}

}  // namespace gpurota::cli
