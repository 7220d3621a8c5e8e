// gpurota run: finds the command, gets a lease, forks, executes, supervises, and ends like the
// command.
#include "abi/env.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/containers/contain.h"
#include "cli/exit_codes.h"
#include "cli/lease_variables.h"
#include "cli/queue/booking_commands.h"
#include "cli/queue/waiting.h"
#include "cli/run/child.h"
#include "cli/run/environment.h"
#include "cli/run/left_behind.h"
#include "cli/run/lookup.h"
#include "cli/run/shell_lease.h"
#include "cli/run/signals.h"
#include "cli/run/supervise.h"
#include "cli/text/output.h"
#include "cli/text/ps_doctor_text.h"
#include "containers/parts.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

// The time to end other processes of the lease; the daemon's own grace is shorter.
constexpr std::chrono::milliseconds kEndTakes{10000};
// Short, because the daemon reports the end of a lease at the moment at which it ends the
// processes.
constexpr std::chrono::milliseconds kEndPatience{200};
// Long enough for a restart of the daemon, which takes a second or two.
constexpr std::chrono::seconds kComeback{20};
constexpr std::chrono::milliseconds kStartAgain{100};

int run_failed(const Error& error) {
  complain(display_lines(error.message));
  return kExitRunFailed;
}

// The lease that the command runs under.
struct Under {
  LeaseId lease;
  std::optional<std::chrono::seconds> lasts;  // the command's own limit, if it has one
  bool shared = false;                        // the lease continues without the command
  std::string said{};                         // text to print when the command starts; empty: none
  // When the command's time limit begins to count in this process: not later than in the daemon.
  LeaseWatch::Clock::time_point begun = LeaseWatch::Clock::now();
};

// The command to execute, with its environment and lease.
struct Prepared {
  proto::Acquire::Reply reply;  // `preload` in it is for the command itself, not for a container
  CommandLine command;
  CommandEnvironment environment;
  std::unique_ptr<ContainerEnd> container;  // if the command is an engine's; null: none
};

// A daemon that is being restarted has the lease in its store. The call is repeated, because the
// last daemon may not have received it. The time is limited, because signals wait meanwhile.
Result<proto::Start::Reply> call_start(const client::Location& location,
                                       client::Connection& connection, const proto::Start& call) {
  const auto until = LeaseWatch::Clock::now() + kComeback;
  for (;;) {
    auto reply = connection.call(call);
    if (reply || reply.error().code != Code::kGone) return reply;
    for (bool there = false; !there;) {
      if (LeaseWatch::Clock::now() >= until) return reply;
      std::this_thread::sleep_for(kStartAgain);
      auto again = client::connect(location);
      there = again.has_value();
      if (there) connection = std::move(*again);
    }
  }
}

// Tells the daemon which process runs under the lease. Orphaned processes become our children, so
// that none is lost where no cgroup holds them.
Result<void> start(const client::Location& location, client::Connection& connection,
                   const Under& under, pid_t pid) {
  const bool subreaper = ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  proto::Start call;
  call.lease_id = under.lease;
  if (under.lasts) call.seconds = under.lasts->count();
  call.pid = pid;
  call.subreaper = subreaper;
  GPUROTA_ASSIGN_OR_RETURN(const proto::Start::Reply reply, call_start(location, connection, call));
  if (reply.cgroup) (void)::prctl(PR_SET_CHILD_SUBREAPER, 0);
  return {};
}

int exit_as(int status) {
  if (WIFSIGNALED(status)) die_of(WTERMSIG(status));
  return WEXITSTATUS(status);
}

// Call when the command has ended by itself.
void say_what_is_left(const Context& context, const std::vector<std::string>& command,
                      std::optional<int> left, int status) {
  if (context.quiet) return;
  const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const std::string text = left_behind_text(command, left, succeeded);
  if (!text.empty()) complain(text);
}

int finish(const Context& context, const Under& under, Supervisor& supervisor,
           const LeaseWatch& watch, const Prepared& prepared,
           std::unique_ptr<ContainerEnd> container) {
  const int status = supervisor.wait_for_command();
  if (container) container->kill();
  container.reset();  // now: no destructor runs if we end by a signal below
  if (under.lasts && WIFSIGNALED(status) &&
      LeaseWatch::Clock::now() - under.begun >= *under.lasts) {
    complain("the time limit (--timeout) is over");
    return kExitTimedOut;
  }
  if (under.shared) {
    // If a signal ended the command, the end of the lease may be the cause. The daemon's message
    // about the lease may arrive just after the command's end.
    if (WIFSIGNALED(status) && !watch.ending()) supervisor.wait_for_lease(kEndPatience);
    if (!watch.ending() && !watch.ended()) {
      say_what_is_left(context, prepared.command.arguments, std::nullopt, status);
      return exit_as(status);
    }
  }
  if (context.verbose && !watch.ended()) complain("the command has ended; ending its lease");
  supervisor.wait_for_lease(kEndTakes);
  // If the daemon does not know the lease any more, the daemon may have seen the end of the command
  // before we did, and ended the lease for that reason.
  const bool lost = watch.ended() && *watch.ended() != proto::Ended::kFinished;
  if (!lost || (watch.forgotten() && !supervisor.lease_ended_first())) {
    say_what_is_left(context, prepared.command.arguments, watch.left_behind(), status);
    return exit_as(status);
  }
  // If we saw the command end first, the user has not been told yet that the lease has ended. The
  // end of the lease may still be what ended the command.
  if (!supervisor.lease_ended_first()) complain(watch.end_text());
  const bool timed_out = !under.shared && watch.ended() == proto::Ended::kExpired;
  return timed_out ? kExitTimedOut : kExitLeaseLost;
}

// Everything from the fork on, with the lease taken.
int run_command(const Context& context, client::Connection& connection,
                const client::Location& location, const Under& under, Prepared prepared) {
  if (prepared.reply.preload) {
    if (const auto usable = check_preload(*prepared.reply.preload); !usable)
      return run_failed(usable.error());
  }
  const auto signals = Signals::make();
  if (!signals) return run_failed(signals.error());
  LeaseWatch watch(location, under.lease);
  // If the daemon is just restarting, the watch tries again later.
  (void)watch.begin();
  const CommandLine& command = prepared.command;
  auto child = Child::fork(command, signals->inherited());
  if (!child) return run_failed(child.error());
  if (const auto started = start(location, connection, under, child->pid()); !started) {
    child->abandon();
    return run_failed(started.error());
  }
  if (!under.said.empty()) complain(under.said);
  const int error = child->execute();
  Supervisor supervisor(child->pid(), watch, *signals);
  if (error != 0) {
    complain(fmt::format("cannot run {}: {}", display_text(command.file, 120),
                         error == ENOENT ? "it, or the interpreter in its first line, is not there"
                                         : std::strerror(error)));
  }
  auto container = std::move(prepared.container);
  return finish(context, under, supervisor, watch, prepared, std::move(container));
}

// Prints the lease with -v; without -v only warnings about surprises.
void describe(const Context& context, const proto::Acquire::Reply& reply,
              const CommandEnvironment& environment) {
  const auto& gpus = reply.lease.gpus;
  const auto instances = std::count_if(gpus.begin(), gpus.end(), [](const proto::LeaseGpu& gpu) {
    return containers::is_instance(gpu.uuid);
  });
  if (instances > 0 && gpus.size() > 1) {
    complain(
        "if MIG instances are among several GPUs, CUDA shows each process only one of them: start "
        "a process for each, with its own CUDA_VISIBLE_DEVICES");
  }
  if (const std::string warning = oversize_warning(reply.lease); !warning.empty()) {
    complain("warning: " + warning);
  }
  if (!environment.chosen_gpus.empty() && !context.quiet) complain(environment.chosen_gpus);
  if (!context.verbose) return;
  complain("lease " + lease_line(reply.lease));
  for (const std::string& remark : environment.remarks) complain(remark);
}

// A container engine passes to its containers what a program would inherit.
Result<Prepared> prepare(client::Connection& connection, const proto::Acquire::Reply& reply,
                         const RunOptions& options, const std::string& file,
                         const std::optional<ShellLease>& shell) {
  const auto outer = shell ? std::optional(shell->visible_devices()) : std::nullopt;
  const auto call = engine_call(options.command);
  if (!call) {
    CommandEnvironment environment = command_environment(::environ, reply, outer);
    CommandLine command{file, options.command, environment.variables};
    return Prepared{reply, std::move(command), std::move(environment), nullptr};
  }
  GPUROTA_ASSIGN_OR_RETURN(Contained contained,
                           contain(connection, reply.lease.lease_id, *call, options.command));
  if (contained.library) GPUROTA_TRY(check_preload(*contained.library));
  const proto::Acquire::Reply own{reply.lease, contained.variables, std::nullopt};
  CommandEnvironment environment = command_environment(::environ, own, outer);
  environment.remarks.push_back(std::move(contained.remark));
  CommandLine command{file, std::move(contained.words), environment.variables};
  return Prepared{own, std::move(command), std::move(environment), std::move(contained.end)};
}

// Runs under a lease that continues without the command: that of `--lease`, or the shell's.
int run_under(const Context& context, const client::Location& location,
              client::Connection& connection, const RunOptions& options, const std::string& file,
              const std::optional<ShellLease>& shell) {
  const auto known = shell ? Result<proto::GetEnvironment::Reply>(shell->known)
                           : connection.call(proto::GetEnvironment{*options.lease});
  if (!known) return run_failed(known.error());
  const proto::Acquire::Reply reply{known->lease, known->environment, known->preload};
  auto prepared = prepare(connection, reply, options, file, shell);
  if (!prepared) return run_failed(prepared.error());
  describe(context, prepared->reply, prepared->environment);
  Under under{known->lease.lease_id, options.lasts, true};
  if (shell && !context.quiet) under.said = shell_lease_text(known->lease, options.typed.of_lease);
  return run_command(context, connection, location, under, std::move(*prepared));
}

// Runs in the lease of the shell, with the typed options only: the user's defaults are for new
// leases.
int run_in_shell(const Context& context, const client::Location& location,
                 client::Connection& connection, RunOptions options, const std::string& file,
                 const ShellLease& shell) {
  const bool is_reserved = shell.known.lease.kind == proto::LeaseKind::kReservation;
  if (const auto may = check_engine_call(options.command, is_reserved); !may) {
    return misused(may.error());
  }
  if (!options.typed.timeout && !options.typed.until) options.lasts.reset();
  return run_under(context, location, connection, options, file, shell);
}

// Runs under a lease of its own, even in a shell that has one.
int run_alone(const Context& context, const client::Location& location,
              client::Connection& connection, const RunOptions& options, const std::string& file) {
  // A shell's lease that has ended, or is another user's, does not matter.
  const auto found = find_shell_lease(connection, ::environ);
  const std::optional<ShellLease> shell = found ? *found : std::nullopt;
  const auto reply = obtain(location, connection,
                            {.wishes = options,
                             .kind = options.filler ? "filler" : "run",
                             .command = proto::sendable_command(options.command),
                             .quiet = context.quiet,
                             .inside = shell ? std::optional(shell->id) : std::nullopt});
  if (!reply) return shown_without_lease(reply.error(), kExitRunFailed);
  auto prepared = prepare(connection, *reply, options, file, shell);
  if (!prepared) return run_failed(prepared.error());
  describe(context, prepared->reply, prepared->environment);
  return run_command(context, connection, location, {reply->lease.lease_id, {}, false},
                     std::move(*prepared));
}

// A command that the owner's shell finds may be missing from the PATH of a job.
int not_found(const LookupError& error) {
  const bool job = std::getenv("GPUROTA_JOB") != nullptr;
  const bool missing = error.exit_code == kExitNotFound;
  complain(error.message + (job && missing
                                ? "; the PATH is not your shell's: write the full path of "
                                  "the command, or pass yours on with --env PATH"
                                : ""));
  return error.exit_code;
}

}  // namespace

int run(const Context& context, const RunOptions& given) {
  RunOptions options = given;
  const auto until = time_until(given.until, now());
  if (!until) return misused(until.error());
  if (*until) options.lasts = *until;
  const auto file = find_command(options.command.front(), std::getenv("PATH"));
  if (!file) return not_found(file.error());
  const bool own = options.lease || !options.typed.placement.empty() ||
                   !find_variable(::environ, GPUROTA_ENV_LEASE);
  if (own) {
    const auto known = check_engine_call(options.command, options.lease.has_value());
    if (!known) return misused(known.error());
  }
  if (const std::string hint = engine_hint(options.command); !hint.empty() && !context.quiet) {
    complain("warning: " + hint);
  }
  const client::Location location = context.location();
  auto connection = client::connect(location);
  if (!connection) return run_failed(connection.error());
  if (options.booking) {
    const auto begun = claim_booking(*connection, *options.booking, context.quiet);
    if (!begun) return run_failed(begun.error());
    static_cast<LeaseId&>(*options.lease) = *begun;
  }
  if (options.lease) return run_under(context, location, *connection, options, *file, {});
  if (own) return run_alone(context, location, *connection, options, *file);
  const auto shell = find_shell_lease(*connection, ::environ);
  if (!shell) return run_failed(shell.error());
  if (!*shell) return run_alone(context, location, *connection, options, *file);
  return run_in_shell(context, location, *connection, options, *file, **shell);
}

}  // namespace gpurota::cli
