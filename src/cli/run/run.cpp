// gpurota run: lookup, lease, fork, start, supervise, end as the command ended.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/run/child.h"
#include "cli/run/environment.h"
#include "cli/run/lookup.h"
#include "cli/run/signals.h"
#include "cli/run/supervise.h"
#include "cli/views.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

// Other processes of the lease are being ended; the daemon's own grace is shorter than this.
constexpr std::chrono::milliseconds kPatience{10000};

int run_failed(const Error& error) {
  complain(display_lines(error.message));
  return error.code == Code::kNoGpu ? kExitNoGpu : kExitRunFailed;
}

// As much of a note as the protocol takes, cut between characters.
std::optional<std::string> sendable_note(const std::optional<std::string>& note) {
  if (!note) return std::nullopt;
  std::string text = valid_utf8(*note);
  if (text.size() <= proto::kMaxNoteBytes) return text;
  std::size_t end = proto::kMaxNoteBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  complain(fmt::format("the note is longer than {} bytes: it is cut", proto::kMaxNoteBytes));
  return text.substr(0, end);
}

proto::Acquire request_of(const RunOptions& options) {
  proto::Acquire acquire;
  acquire.gpus = options.gpus;
  if (!options.gpu_ids.empty()) acquire.gpu_ids = options.gpu_ids;
  acquire.memory = options.memory;
  acquire.soft_limit = options.soft_limit;
  acquire.note = sendable_note(options.note);
  acquire.command = proto::sendable_command(options.command);
  return acquire;
}

// Tells the daemon whose the lease is. Processes that lose their parent become our children, so
// that none is lost where there is no cgroup to hold them.
Result<void> start(client::Connection& connection, LeaseId lease, pid_t pid) {
  const bool subreaper = ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  proto::Start call;
  call.lease_id = lease;
  call.pid = pid;
  call.subreaper = subreaper;
  GPUROTA_ASSIGN_OR_RETURN(const proto::Start::Reply reply, connection.call(call));
  if (reply.cgroup) (void)::prctl(PR_SET_CHILD_SUBREAPER, 0);
  return {};
}

int exit_as(int status) {
  if (WIFSIGNALED(status)) die_of(WTERMSIG(status));
  return WEXITSTATUS(status);
}

int finish(const Context& context, Supervisor& supervisor, const LeaseWatch& watch) {
  const int status = supervisor.wait_for_command();
  if (context.verbose && !watch.ended()) complain("the command has ended; ending its lease");
  supervisor.wait_for_lease(kPatience);
  // A daemon that does not know the lease may only have been quicker than we to see the end.
  const bool lost = watch.ended() && *watch.ended() != proto::Ended::kFinished;
  if (lost && (!watch.forgotten() || supervisor.lease_ended_first())) {
    complain(fmt::format("the lease ended before the command did: {}",
                         display_text(watch.reason(), 300)));
    return kExitLeaseLost;
  }
  return exit_as(status);
}

// With the lease taken: everything from the fork on.
int run_command(const Context& context, client::Connection& connection,
                const client::Location& location, LeaseId lease, const CommandLine& command) {
  const auto signals = Signals::make();
  if (!signals) return run_failed(signals.error());
  LeaseWatch watch(location, lease);
  if (const auto held = watch.begin(); !held) return run_failed(held.error());
  auto child = Child::fork(command, signals->inherited());
  if (!child) return run_failed(child.error());
  if (const auto started = start(connection, lease, child->pid()); !started) {
    child->abandon();
    return run_failed(started.error());
  }
  const int error = child->execute();
  Supervisor supervisor(child->pid(), watch, *signals);
  if (error != 0) {
    complain(fmt::format("cannot run {}: {}", display_text(command.file, 120),
                         error == ENOENT ? "it, or the interpreter in its first line, is not there"
                                         : std::strerror(error)));
  }
  return finish(context, supervisor, watch);
}

// A GPU that somebody has just left may look taken until the daemon's next look at it, which a refusal
// brings about; so a refusal is believed when it stands for longer than that takes.
constexpr int kTries = 4;
constexpr std::chrono::milliseconds kBetweenTries{150};

Result<proto::Acquire::Reply> acquire(client::Connection& connection,
                                      const proto::Acquire& request) {
  auto reply = connection.call(request);
  for (int i = 1; i < kTries && !reply && reply.error().code == Code::kNoGpu; ++i) {
    std::this_thread::sleep_for(kBetweenTries);
    reply = connection.call(request);
  }
  return reply;
}

}  // namespace

int run(const Context& context, const RunOptions& options) {
  const auto file = find_command(options.command.front(), std::getenv("PATH"));
  if (!file) {
    complain(file.error().message);
    return file.error().exit_code;
  }
  const client::Location location = context.location();
  auto connection = client::connect(location);
  if (!connection) return run_failed(connection.error());
  const auto reply = acquire(*connection, request_of(options));
  if (!reply) return run_failed(reply.error());
  const CommandEnvironment environment = command_environment(::environ, *reply);
  if (context.verbose) {
    complain("lease " + lease_line(reply->lease));
    for (const std::string& remark : environment.remarks) complain(remark);
  }
  return run_command(context, *connection, location, reply->lease.lease_id,
                     {*file, options.command, environment.variables});
}

}  // namespace gpurota::cli
