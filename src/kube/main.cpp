// gpurota-device-plugin: offers the GPUs of a node to Kubernetes. A client of gpurotad.
#include "abi/limits.h"
#include "kube/agent.h"
#include "kube/plugin_main.h"
#include "sys/secret.h"

namespace gpurota::kube {
namespace {

Result<void> serve(const Options& options, sys::SdEventLoop& loop) {
  GPUROTA_ASSIGN_OR_RETURN(
      AllocationBook book,
      AllocationBook::open(options.state_dir + "/allocations.textproto", loop.now()));
  Node::Settings settings;
  settings.rules = options.rules;
  settings.giver = options.giver;
  settings.names = options.names;
  settings.make_token = [] { return sys::random_hex(GPUROTA_TOKEN_CHARS).value_or(""); };
  settings.now = [&loop] { return loop.now(); };
  Agent agent(loop, options, client::locate(options.runtime_dir),
              Node(std::move(settings), std::move(book)));
  GPUROTA_TRY(agent.start());
  GPUROTA_TRY(loop.run());
  agent.stop();
  return {};
}

}  // namespace
}  // namespace gpurota::kube

int main(int argc, char** argv) {
  using namespace gpurota::kube;
  return run_plugin("gpurota-device-plugin", parse_options({argv + (argc > 0), argv + argc}),
                    serve);
}
