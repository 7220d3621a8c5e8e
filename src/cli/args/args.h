// The command line of `gpurota` as data. Parsing touches nothing and prints nothing.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "cli/args/config_args.h"
#include "cli/args/filler_args.h"
#include "cli/args/job_args.h"
#include "cli/args/own_defaults.h"
#include "cli/args/typed_options.h"
#include "cli/args/whose.h"
#include "cli/handles.h"
#include "cli/status/status_columns.h"
#include "core/end_warning.h"
#include "core/latency_class.h"

#include <tl/expected.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gpurota::cli {

// The options of a lease, including how long to wait for it.
struct LeaseWishes {
  std::optional<int> gpus;
  std::vector<std::string> gpu_ids;
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::string> as_name;
  std::optional<std::string> name;  // its name; checked
  bool swap = false;                // in turns with others
  bool oversize = false;            // memory that does not fit on the GPU is in host memory
  std::optional<LatencyClass> latency;
  std::optional<int> compute;      // percent; 0: none
  std::optional<int> compute_max;  // percent; 100: none
  std::optional<int> priority;
  std::optional<std::string> quantum;  // as written
  std::optional<EndWarning> warning;
  std::optional<std::chrono::seconds> lasts;  // --timeout, --for
  std::optional<std::string> until;           // as written; instead of `lasts`
  bool nonblock = false;
  std::optional<std::chrono::seconds> wait;  // at most this long
  std::optional<Bytes> memory_threshold;     // of unreserved use
  std::optional<std::string> gpu_type;
  std::optional<std::string> gpu_class;  // a class of the site
  std::optional<Bytes> min_memory;
  std::optional<int> min_cc;  // 10 * major + minor
  std::optional<LeaseHandle> near;
};
struct RunOptions : LeaseWishes {
  std::optional<LeaseHandle> lease;    // the reservation to run under; then only `lasts` may be set
  std::optional<RequestId> booking{};  // becomes `lease` when it is used
  bool filler = false;                 // leaves when somebody needs the GPU
  TypedOptions typed;
  std::vector<std::string> command;  // never empty
};
struct ReserveOptions : LeaseWishes {
  std::optional<std::string> at;  // as written: the beginning
  std::optional<int> weekly;      // how many times, with `at`
  bool on_time = false;           // with `at`: others leave when it begins, even if unused
  bool take_over = false;
  bool is_short = false;  // print only the ids
  bool json = false;
};
struct CalendarOptions {
  int days = 7;
  bool ical = false;
  bool json = false;
};
struct QueueOptions {
  bool json = false;
  Whose whose;
};
struct ClaimOptions {
  RequestId booking;
  bool json = false;
};
struct CancelOptions {
  std::vector<RequestHandle> requests;
  std::optional<std::string> reason;
};
struct LimitsOptions {
  std::optional<std::string> user;  // name or uid; empty: the caller
  bool json = false;
};

struct ExplainOptions {
  std::optional<RequestId> request;
  std::optional<LeaseId> lease;
  std::string name;  // of a request or a lease; all three empty: all that the caller has
  bool json = false;
};
struct DrainOptions {
  bool drain = true;  // false: undrain
  std::vector<std::string> gpu_ids;
  std::optional<std::string> reason;
};
struct StatusOptions {
  bool json = false;
  bool watch = false;
  StatusForm form;
  std::optional<Bytes> memory_threshold;
};
inline constexpr std::size_t kMostTopSize = 1000;
struct TopOptions {
  bool once = false;
  std::size_t width = 0, height = 0;  // at most kMostTopSize; 0: the terminal's
};
struct PsOptions {
  bool json = false;
  std::optional<LeaseHandle> lease;
};
struct ContainerArgsOptions {
  std::optional<LeaseHandle> lease;  // always set
  std::string format;                // docker, podman, nerdctl, compose, apptainer, ctr, cdi
  std::string env_file;              // empty for apptainer and cdi only
  std::string service;
};
struct ReleaseOptions {
  std::vector<LeaseHandle> leases;
  std::vector<RequestHandle> bookings;
  std::vector<std::string> gpu_ids;
  bool all = false;
  bool all_users = false;  // at most one of these four is set; none: a reservation of the caller
  bool yes = false;        // do not ask
  std::optional<std::string> reason;
};
struct UpdateOptions {
  LeaseHandle lease;
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::chrono::seconds> lasts;  // from now on
  std::optional<std::string> until;           // as written; instead of `lasts`
  std::optional<int> priority;
  std::optional<std::string> quantum;  // as written
  std::optional<LatencyClass> latency;
  std::optional<int> compute;         // percent; 0: none
  std::optional<int> compute_max;     // percent; 100: none
  std::optional<EndWarning> warning;  // at least one of `memory` to `warning` is set
  std::optional<std::string> reason;
};
struct ParkOptions {
  LeaseHandle lease;
  bool parks = true;  // false: unpark
  // Of unpark: how long to wait until the lease is back; empty: as long as it takes.
  std::optional<std::chrono::seconds> wait{};
  bool no_wait = false;
};
struct TurnsOptions {
  bool json = false;
  std::vector<std::string> gpu_ids;  // empty: all
};
struct SetOptions {
  std::vector<std::string> gpu_ids;
  std::optional<SizeSpec> capacity;
  std::optional<std::string> quantum, turns;  // as written
  bool reset = false;                         // at least one of the four is set
};
struct VersionOptions {
  bool client_only = false;  // --version
  bool json = false;
};
struct DoctorOptions {
  bool json = false;
  bool kubernetes = false;
  std::optional<std::string> kubelet_dir;  // empty: the usual folder
};
struct EventsOptions {
  bool json = false;
  bool follow = false;
  std::optional<std::string> since;  // as written
  std::optional<LeaseHandle> lease;
  std::optional<int> lines;  // only the last ones
  Whose whose;
};
struct ReportOptions {
  bool json = false;
  bool csv = false;
  std::optional<std::string> days, since, by;  // as written
  Whose whose;
};
struct HistoryOptions {
  bool json = false;
  std::optional<std::string> since;  // as written
  std::vector<std::string> gpu_ids;  // empty: all
  std::optional<LeaseHandle> lease;  // instead of GPUs
  bool steps = false;                // one row per step, no picture
};
struct NotifyOptions {
  std::optional<std::string> user;  // the user that gets a test; empty: the caller
};
struct WebOptions {
  bool no_open = false;
  bool list = false;
  bool json = false;
  std::optional<std::string> end;  // a session to end, or "all"
};
struct SetupOptions {
  std::map<std::string, std::string, std::less<>> answers;  // by option, as written
  bool yes = false;                                         // ask nothing
  bool no_start = false;
};
struct ReloadOptions {
  bool json = false;
};
// A command for other machines. Output is in the order of the hosts.
struct HostsOptions {
  std::string command;               // status, top, queue, report or run
  std::vector<std::string> hosts;    // as given, each safe as a host name for ssh
  std::optional<std::string> file;   // lists more hosts; `hosts` or `file` is given, or both
  std::vector<std::string> options;  // for gpurota there
  bool json = false, csv = false;
  StatusForm form;                // of status
  std::optional<RunOptions> run;  // of run
};
struct BurnOptions {
  std::vector<std::string> words;  // for gpurota-burn, which parses them
};
struct CompleteOptions {
  std::string what;  // leases, gpus
};
struct HelpOptions {
  std::string topic;  // a command, or empty
};

using Command =
    std::variant<HelpOptions, RunOptions, StatusOptions, PsOptions, ReleaseOptions, UpdateOptions,
                 ParkOptions, VersionOptions, DoctorOptions, EventsOptions, ReportOptions,
                 ReloadOptions, BurnOptions, JobOptions, FillerOptions, CompleteOptions,
                 ReserveOptions, QueueOptions, CalendarOptions, ClaimOptions, CancelOptions,
                 ExplainOptions, LimitsOptions, DrainOptions, TurnsOptions, SetOptions,
                 ConfigOptions, NotifyOptions, WebOptions, SetupOptions, TopOptions, HistoryOptions,
                 HostsOptions, ContainerArgsOptions>;

struct Arguments {
  std::optional<std::string> runtime_dir;
  bool verbose = false;
  bool quiet = false;
  std::optional<std::string> color;  // auto, always or never
  Command command;
  // "--memory 8G": the options that the user's own defaults added to the typed ones; empty: none.
  std::string defaults;
};

struct UsageError {
  std::string message;  // what to write instead; may have several lines
  int exit_code = 0;
};

// `words`: argv without argv[0].
tl::expected<Arguments, UsageError> parse_arguments(const std::vector<std::string>& words,
                                                    const OwnDefaults& defaults = {});
// Whether these words are a command that has own defaults besides those of [output].
bool uses_defaults(const std::vector<std::string>& words);

// Parses options of `gpurota run` without the command.
Result<RunOptions> parse_run_words(const std::vector<std::string>& options);

}  // namespace gpurota::cli
