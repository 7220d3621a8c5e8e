// gpurota: parses its command line and calls the command.
#include "base/standard_streams.h"
#include "cli/args/args.h"
#include "cli/args/command_table.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/queue/find_named.h"
#include "cli/text/output.h"

#include <clocale>
#include <type_traits>
#include <variant>

namespace {

int run_command(const gpurota::cli::Context& context, const gpurota::cli::Command& command) {
  using namespace gpurota::cli;
  return std::visit(
      [&](const auto& options) {
        using Options = std::decay_t<decltype(options)>;
        if constexpr (std::is_same_v<Options, HelpOptions>) return shown(help_text(options.topic));
        if constexpr (std::is_same_v<Options, RunOptions>) return run(context, options);
        if constexpr (std::is_same_v<Options, ReserveOptions>) return reserve(context, options);
        if constexpr (std::is_same_v<Options, QueueOptions>) return queue(context, options);
        if constexpr (std::is_same_v<Options, CalendarOptions>) return calendar(context, options);
        if constexpr (std::is_same_v<Options, ClaimOptions>) return claim(context, options);
        if constexpr (std::is_same_v<Options, CancelOptions>) return cancel(context, options);
        if constexpr (std::is_same_v<Options, ExplainOptions>) return explain(context, options);
        if constexpr (std::is_same_v<Options, LimitsOptions>) return limits(context, options);
        if constexpr (std::is_same_v<Options, DrainOptions>) return drain(context, options);
        if constexpr (std::is_same_v<Options, TurnsOptions>) return turns(context, options);
        if constexpr (std::is_same_v<Options, SetOptions>) return set(context, options);
        if constexpr (std::is_same_v<Options, StatusOptions>) return status(context, options);
        if constexpr (std::is_same_v<Options, TopOptions>) return top(context, options);
        if constexpr (std::is_same_v<Options, PsOptions>) return ps(context, options);
        if constexpr (std::is_same_v<Options, ContainerArgsOptions>)
          return container_args(context, options);
        if constexpr (std::is_same_v<Options, ReleaseOptions>) return release(context, options);
        if constexpr (std::is_same_v<Options, UpdateOptions>) return update(context, options);
        if constexpr (std::is_same_v<Options, ParkOptions>) return park(context, options);
        if constexpr (std::is_same_v<Options, VersionOptions>) return version(context, options);
        if constexpr (std::is_same_v<Options, DoctorOptions>) return doctor(context, options);
        if constexpr (std::is_same_v<Options, EventsOptions>) return events(context, options);
        if constexpr (std::is_same_v<Options, ReportOptions>) return report(context, options);
        if constexpr (std::is_same_v<Options, HistoryOptions>) return history(context, options);
        if constexpr (std::is_same_v<Options, ReloadOptions>) return reload(context, options);
        if constexpr (std::is_same_v<Options, HostsOptions>) return hosts(context, options);
        if constexpr (std::is_same_v<Options, ConfigOptions>) return config(context, options);
        if constexpr (std::is_same_v<Options, JobOptions>) return job(context, options);
        if constexpr (std::is_same_v<Options, FillerOptions>) return filler(context, options);
        if constexpr (std::is_same_v<Options, NotifyOptions>) return notify(context, options);
        if constexpr (std::is_same_v<Options, WebOptions>) return web(context, options);
        if constexpr (std::is_same_v<Options, SetupOptions>) return setup(context, options);
        if constexpr (std::is_same_v<Options, BurnOptions>) return burn(context, options);
        if constexpr (std::is_same_v<Options, CompleteOptions>) return complete(context, options);
      },
      command);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gpurota::cli;
  gpurota::occupy_closed_streams();
  (void)std::setlocale(LC_TIME, "");
  const std::vector<std::string> words(argv + (argc > 0), argv + argc);
  const auto defaults = read_own_defaults();
  if (!defaults) complain(defaults.error().message);
  if (!defaults && uses_defaults(words)) return kExitUsage;
  auto arguments = parse_arguments(words, defaults.value_or(OwnDefaults{}));
  if (!arguments) {
    complain(arguments.error().message);
    return arguments.error().exit_code;
  }
  choose_colour(arguments->color);
  if (arguments->verbose && !arguments->defaults.empty()) {
    complain(arguments->defaults + " (from " + defaults->path + ")");
  }
  const Context context{arguments->runtime_dir, arguments->verbose, arguments->quiet};
  if (const auto found = find_all_named(context, arguments->command); !found) {
    return failed(found.error());
  }
  return run_command(context, arguments->command);
}
