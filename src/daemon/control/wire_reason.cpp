#include "daemon/control/wire_reason.h"

#include "proto/words.h"

namespace gpurota::daemon {

proto::Reason wire_reason(const Reason& reason) {
  proto::Reason shown;
  shown.code = proto::enum_of<proto::ReasonCode>(to_string(reason.code));
  shown.text = reason.text;
  shown.time = reason.time;
  if (!reason.remedy.empty()) shown.remedy = reason.remedy;
  return shown;
}

proto::WireError no_gpu_error(const std::string& message, int free, int total,
                              const std::optional<Reason>& reason) {
  if (!reason) return proto::no_gpu_error(message, free, total);
  const std::string remedy = reason->remedy.empty() ? "" : "; " + reason->remedy;
  return proto::no_gpu_error(message + remedy, free, total, wire_reason(*reason));
}

}  // namespace gpurota::daemon
