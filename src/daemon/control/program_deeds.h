// Reports an act on a job or a filler by somebody else than its owner: the words for it, the event,
// and the notice to the owner. State thread only.
#pragma once

#include "core/notice_kind.h"
#include "daemon/control/call_context.h"
#include "daemon/supervised/supervisor.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

// Made before it is done, as the job or the filler may be gone then.
class ProgramDeed {
 public:
  // `what`: "job" or "filler". `reason`: as the caller gave it.
  ProgramDeed(const CallContext& parts, uid_t caller, const char* what, const Supervised& program,
              const std::optional<std::string>& reason);

  // "by root (administrator): \"new fan\""; empty: its owner does it.
  std::string by() const;
  // Reports the act that was done: "stopped", "changed the restart policy of". Acts of owners
  // themselves are not reported.
  void tell(const std::string& did, NoticeKind kind) const;

 private:
  bool own() const { return caller_ == owner_; }

  const CallContext& parts_;
  uid_t caller_;
  std::string what_;
  uid_t owner_;
  std::string user_, name_, command_, reason_;
};

}  // namespace gpurota::daemon
