// The commands of `gpurota`: each does one thing, prints, and returns the exit status.
#pragma once

#include "base/result.h"
#include "cli/args/args.h"
#include "client/locate.h"

#include <optional>
#include <string>

namespace gpurota::cli {

// The context of every command.
struct Context {
  std::optional<std::string> runtime_dir;
  bool verbose = false;
  bool quiet = false;  // prints nothing about what was done

  client::Location location() const { return client::locate(runtime_dir); }
  Result<client::Connection> connect() const { return client::connect(location()); }
};

int run(const Context& context, const RunOptions& options);
int reserve(const Context& context, const ReserveOptions& options);
int calendar(const Context& context, const CalendarOptions& options);
int claim(const Context& context, const ClaimOptions& options);
int queue(const Context& context, const QueueOptions& options);
int cancel(const Context& context, const CancelOptions& options);
int explain(const Context& context, const ExplainOptions& options);
int limits(const Context& context, const LimitsOptions& options);
int drain(const Context& context, const DrainOptions& options);
int turns(const Context& context, const TurnsOptions& options);
int set(const Context& context, const SetOptions& options);
int status(const Context& context, const StatusOptions& options);
int top(const Context& context, const TopOptions& options);
int container_args(const Context& context, const ContainerArgsOptions& options);
int ps(const Context& context, const PsOptions& options);
int release(const Context& context, const ReleaseOptions& options);
int park(const Context& context, const ParkOptions& options);
int update(const Context& context, const UpdateOptions& options);
int version(const Context& context, const VersionOptions& options);
int doctor(const Context& context, const DoctorOptions& options);
int events(const Context& context, const EventsOptions& options);
int report(const Context& context, const ReportOptions& options);
int history(const Context& context, const HistoryOptions& options);
int reload(const Context& context, const ReloadOptions& options);
int hosts(const Context& context, const HostsOptions& options);
int config(const Context& context, const ConfigOptions& options);
int setup(const Context& context, const SetupOptions& options);
int notify(const Context& context, const NotifyOptions& options);
int web(const Context& context, const WebOptions& options);
int job(const Context& context, const JobOptions& options);
int job_logs(const Context& context, const JobOptions& options);
int job_wait(const Context& context, const JobOptions& options);
int job_export(const Context& context, const JobOptions& options);
int job_apply(const Context& context, const JobOptions& options);
int filler(const Context& context, const FillerOptions& options);
// Executes gpurota-burn.
int burn(const Context& context, const BurnOptions& options);
// Prints names for the shell's completion, one per line; prints nothing if there is no daemon.
int complete(const Context& context, const CompleteOptions& options);

// Prints the error and returns its exit status (for commands other than run).
int failed(const Error& error);
// The same for a mistake on the command line that the parser did not find.
int misused(const Error& error);
// Prints a result and returns the exit status.
int shown(std::string_view text);
// Prints on standard output what a command has changed, unless `context` is quiet. Returns kExitOk.
int done(const Context& context, std::string_view what);

}  // namespace gpurota::cli
