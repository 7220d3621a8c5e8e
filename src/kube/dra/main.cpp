// gpurota-dra: offers the GPUs of a node to Kubernetes as dynamic resources. A client of gpurotad.
#include "abi/limits.h"
#include "kube/dra/driver.h"
#include "kube/plugin_main.h"
#include "sys/secret.h"

namespace gpurota::kube {
namespace {

Result<void> serve_dra(const DraOptions& options, sys::SdEventLoop& loop) {
  GPUROTA_ASSIGN_OR_RETURN(ClaimBook book,
                           ClaimBook::open(options.state_dir + "/claims.textproto"));
  DraNode::Settings settings;
  settings.giver = options.giver;
  settings.rules = options.rules;
  settings.make_token = [] { return sys::random_hex(GPUROTA_TOKEN_CHARS).value_or(""); };
  settings.now = [&loop] { return loop.now(); };
  Driver driver(loop, options, client::locate(options.runtime_dir),
                DraNode(std::move(settings), std::move(book)));
  driver.start();
  GPUROTA_TRY(loop.run());
  driver.stop();
  return {};
}

}  // namespace
}  // namespace gpurota::kube

int main(int argc, char** argv) {
  using namespace gpurota::kube;
  return run_plugin("gpurota-dra", parse_dra_options({argv + (argc > 0), argv + argc}), serve_dra);
}
