// Reports a change of a job or a filler by somebody other than its owner: the text, the event, and
// the notice to the owner. State thread only.
#pragma once

#include "core/notice_kind.h"
#include "daemon/control/call_context.h"
#include "daemon/supervised/supervisor.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

// Construct a ProgramDeed before the change, as the job or the filler may not exist afterwards.
class ProgramDeed {
 public:
  // `what`: "job" or "filler". `reason`: as the caller gave it.
  ProgramDeed(const CallContext& parts, uid_t caller, const char* what, const Supervised& program,
              const std::optional<std::string>& reason);

  // "by root (administrator): \"new fan\""; empty: the caller is the owner.
  std::string by() const;
  // Reports what was done: "stopped", "changed the restart policy of". Changes by the owner are
  // not reported.
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
