#include "kube/dra/dra_options.h"

#include "proto/service.h"

namespace gpurota::kube {
namespace {

constexpr std::string_view kDraBefore = R"(Usage: gpurota-dra [OPTION]...

The driver of gpurota for dynamic resources of Kubernetes (1.34 or newer): publishes the GPUs of )"
                                        R"(this node and has
gpurotad make the lease of each claim before its pod starts. It runs in the foreground, as root, )"
                                        R"(and logs to stderr.

)";

std::vector<Option> dra_rows(DraOptions& options) {
  std::vector<Option> rows = api_rows(options.api);
  const std::vector<Option> own = {
      {'\0', "--mixed", &options.rules.mixed, "",
       "parts of a GPU's memory and turns on it may be claimed at the same time"},
      {'\0', "--cdi-dir", &options.cdi_dir, "DIR",
       "where container engines look for devices (/var/run/cdi)"},
      {'\0', "--state-dir", &options.state_dir, "DIR",
       "state that outlives a restart (/var/lib/gpurota-dra)"},
      {'\0', "--review",
       take_count("--review", 1, 86400,
                  [&options](int count) { options.review = std::chrono::seconds(count); }),
       "SECONDS", "between two checks of the published GPUs (60)"}};
  rows.insert(rows.end(), own.begin(), own.end());
  const auto shared = plugin_rows(options, options.rules.unit);
  rows.insert(rows.end(), shared.begin(), shared.end());
  return rows;
}

}  // namespace

Result<DraOptions> parse_dra_options(const std::vector<std::string>& words) {
  DraOptions options;
  const Program program{"gpurota-dra", proto::version(), kDraBefore, "\nSee gpurota-dra(8).\n"};
  GPUROTA_ASSIGN_OR_RETURN(options.print, read_program_options(program, dra_rows(options), words));
  if (options.print.empty()) GPUROTA_TRY(complete(options.api));
  return options;
}

}  // namespace gpurota::kube
