// The common main() of the plugins: reports errors in options, sets up the log, locks the state
// directory, runs the loop and ends. Only main.cpp files include it.
#pragma once

#include "base/directory.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "proto/service.h"
#include "sys/journal.h"
#include "sys/sd_event_loop.h"
#include "sys/worker.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::kube {

// Locks the state directory, so that one plugin at a time uses it: while a new version starts, the
// old one may still be ending.
inline Result<Fd> lock_state(const char* program, const std::string& folder) {
  constexpr std::chrono::milliseconds kPredecessorPatience{60000};
  constexpr mode_t kOwnFolder = 0700;
  GPUROTA_TRY(make_directory(folder, kOwnFolder));
  auto lock = lock_file(folder + "/lock", kPredecessorPatience);
  if (!lock && lock.error().code == Code::kLimit) {
    return fail(Code::kLimit, "another " + std::string(program) +
                                  " runs with the state directory " + folder + ": end it first");
  }
  return lock;
}

// `serve` runs the loop until a signal stops it.
template <class Options, class Serve>
Result<void> serve_plugin(const char* program, const Options& options, Serve serve) {
  GPUROTA_ASSIGN_OR_RETURN(const Fd lock, lock_state(program, options.state_dir));
  GPUROTA_ASSIGN_OR_RETURN(const auto loop, sys::SdEventLoop::make());
  const auto stop = [&loop] { loop->stop(); };
  GPUROTA_ASSIGN_OR_RETURN(const auto on_term, loop->on_signal(SIGTERM, stop));
  GPUROTA_ASSIGN_OR_RETURN(const auto on_int, loop->on_signal(SIGINT, stop));
  log::info(std::string(program) + " runs", {{"version", proto::version()}});
  GPUROTA_TRY(serve(options, *loop));
  log::info(std::string(program) + " stops; containers keep what they have");
  return {};
}

template <class Options, class Serve>
int run_plugin(const char* program, const Result<Options>& options, Serve serve) {
  occupy_closed_streams();
  if (!options) {
    std::fprintf(stderr, "%s: %s\n", program, options.error().message.c_str());
    return 2;
  }
  if (!options->print.empty()) return std::fputs(options->print.c_str(), stdout) < 0;
  log::set_level(options->log_level);
  // Sockets and files are only for kubelet and this program, which run as root.
  (void)::umask(S_IRWXG | S_IRWXO);
  if (sys::stderr_is_journal()) log::set_sink(sys::journal_sink());
  (void)std::signal(SIGPIPE, SIG_IGN);
  const auto done = serve_plugin(program, *options, serve);
  if (!done) std::fprintf(stderr, "%s: %s\n", program, done.error().message.c_str());
  // Do not wait for workers that were left behind in a call that hangs.
  if (sys::Worker::left_behind() > 0) ::_exit(done ? 0 : 1);
  return done ? 0 : 1;
}

}  // namespace gpurota::kube
