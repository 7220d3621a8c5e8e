#include "kube/plugin_options.h"

#include "base/log_option.h"
#include "base/text.h"

#include <fmt/format.h>

#include <charconv>

namespace gpurota::kube {
namespace {

Result<Bytes> parse_memory_unit(std::string_view text) {
  GPUROTA_ASSIGN_OR_RETURN(const Bytes unit, parse_bytes(text));
  if (unit >= mib(64)) return unit;
  return fail(Code::kInvalid, "--memory-unit is at least 64MiB");
}

}  // namespace

Option::Take take_count(const char* option, int least, int most, std::function<void(int)> take) {
  return [=](const std::string& text) -> Result<void> {
    int count = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, count);
    if (error != std::errc() || stop != end || count < least || count > most) {
      return fail(Code::kInvalid, fmt::format("{} '{}' is not a number from {} to {}", option,
                                              display_text(text, 60), least, most));
    }
    take(count);
    return {};
  };
}

std::vector<Option> plugin_rows(PluginOptions& options, Bytes& unit) {
  return {
      {'\0', "--memory-unit",
       [&unit](const std::string& value) -> Result<void> {
         GPUROTA_ASSIGN_OR_RETURN(unit, parse_memory_unit(value));
         return {};
       },
       "SIZE", "the memory of GPUs is counted in these (1GiB)"},
      {'\0', "--gpus-by",
       [&options](const std::string& value) -> Result<void> {
         GPUROTA_ASSIGN_OR_RETURN(options.giver, parse_gpu_giver(value));
         return {};
       },
       "GIVER",
       "how containers get their GPUs: files (device files and the driver's\n"
       "libraries, mounted one by one), runtime (NVIDIA's container runtime), cdi\n"
       "(NVIDIA's CDI description) (files)"},
      {'\0', "--kubelet-dir", &options.kubelet_dir, "DIR",
       "kubelet's directory (/var/lib/kubelet)"},
      {'\0', "--runtime-dir", &options.runtime_dir, "DIR",
       "the gpurotad whose sockets are there (/run/gpurota)"},
      {'\0', "--host-root", &options.host_root, "DIR",
       "where this machine's files are, in a container (/)"},
      {'\0', "--interval",
       take_count("--interval", 50, 60000,
                  [&options](int count) { options.interval = std::chrono::milliseconds(count); }),
       "MS", "between two queries of gpurotad and kubelet (2000)"},
      log_level_option(options.log_level)};
}

}  // namespace gpurota::kube
