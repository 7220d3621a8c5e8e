#include "daemon/control/pods.h"

#include "base/text.h"
#include "proto/methods.h"

#include <fmt/format.h>

namespace gpurota::daemon {
namespace {

constexpr std::string_view kSigns = "abcdefghijklmnopqrstuvwxyz0123456789-.";

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= proto::kMaxPodNameBytes &&
         text.find_first_not_of(kSigns) == std::string_view::npos;
}

}  // namespace

Result<std::string> pod_text(const proto::Pod& pod) {
  for (const std::string* part : {&pod.namespace_, &pod.name, &pod.container}) {
    if (is_name(*part)) continue;
    return fail(Code::kInvalid,
                fmt::format("'{}' is not a name of Kubernetes: those have at most {} "
                            "small letters, digits, '-' and '.'",
                            display_text(*part, 60), proto::kMaxPodNameBytes));
  }
  return fmt::format("{}/{}/{}", pod.namespace_, pod.name, pod.container);
}

std::optional<proto::Pod> pod_of(std::string_view text) {
  const std::size_t first = text.find('/'), last = text.rfind('/');
  if (first == last) return std::nullopt;
  return proto::Pod{std::string(text.substr(0, first)),
                    std::string(text.substr(first + 1, last - first - 1)),
                    std::string(text.substr(last + 1))};
}

}  // namespace gpurota::daemon
