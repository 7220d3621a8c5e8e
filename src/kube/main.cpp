// gpurota-device-plugin: offers the GPUs of a node to Kubernetes. A client of gpurotad.
#include "abi/limits.h"
#include "base/directory.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "kube/agent.h"
#include "proto/service.h"
#include "sys/clock.h"
#include "sys/journal.h"
#include "sys/sd_event_loop.h"
#include "sys/secret.h"

#include <csignal>
#include <cstdio>

namespace gpurota::kube {
namespace {

// While a new version starts the old one may be ending: each has its devices for itself.
constexpr std::chrono::milliseconds kPredecessorPatience{60000};
constexpr mode_t kOwnFolder = 0700;

Result<void> serve(const Options& options) {
  GPUROTA_TRY(make_directory(options.state_dir, kOwnFolder));
  auto lock = lock_file(options.state_dir + "/lock", kPredecessorPatience);
  if (!lock && lock.error().code == Code::kLimit) {
    return fail(Code::kLimit, "another gpurota-device-plugin runs with the state directory " +
                                  options.state_dir + ": end it first");
  }
  if (!lock) return tl::unexpected(std::move(lock).error());
  GPUROTA_ASSIGN_OR_RETURN(const auto loop, sys::SdEventLoop::make());
  const auto stop = [&loop] { loop->stop(); };
  GPUROTA_ASSIGN_OR_RETURN(const auto on_term, loop->on_signal(SIGTERM, stop));
  GPUROTA_ASSIGN_OR_RETURN(const auto on_int, loop->on_signal(SIGINT, stop));
  GPUROTA_ASSIGN_OR_RETURN(
      AllocationBook book,
      AllocationBook::open(options.state_dir + "/allocations.textproto", loop->now()));
  Node::Settings settings;
  settings.rules = options.rules;
  settings.giver = options.giver;
  settings.names = options.names;
  settings.make_token = [] { return sys::random_hex(GPUROTA_TOKEN_CHARS).value_or(""); };
  settings.now = [&loop = *loop] { return loop.now(); };
  Agent agent(*loop, options, client::locate(options.runtime_dir),
              Node(std::move(settings), std::move(book)));
  GPUROTA_TRY(agent.start());
  log::info("gpurota-device-plugin runs", {{"version", proto::version()}});
  GPUROTA_TRY(loop->run());
  agent.stop();
  log::info("gpurota-device-plugin stops; containers keep what they have");
  return {};
}

}  // namespace
}  // namespace gpurota::kube

int main(int argc, char** argv) {
  using namespace gpurota;
  occupy_closed_streams();
  const auto options = kube::parse_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "gpurota-device-plugin: %s\n", options.error().message.c_str());
    return 2;
  }
  if (options->help) return std::fputs(kube::kUsage, stdout) < 0;
  if (options->version)
    return std::printf("gpurota-device-plugin %s\n", std::string(proto::version()).c_str()) < 0;
  log::set_level(options->log_level);
  if (sys::stderr_is_journal()) log::set_sink(sys::journal_sink());
  (void)std::signal(SIGPIPE, SIG_IGN);
  const auto done = kube::serve(*options);
  if (!done) std::fprintf(stderr, "gpurota-device-plugin: %s\n", done.error().message.c_str());
  // What it left behind in a call that hangs is nobody's to wait for.
  if (sys::Worker::left_behind() > 0) ::_exit(done ? 0 : 1);
  return done ? 0 : 1;
}
