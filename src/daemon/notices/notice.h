// A notice to a user about their leases, requests and jobs when somebody or something else acts on
// them: plain data, and the interface for its receiver. State thread only.
#pragma once

#include "base/ids.h"
#include "core/notice_kind.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

struct Notice {
  NoticeKind kind = NoticeKind::kTest;
  uid_t to = 0;
  std::optional<LeaseId> lease{};
  std::vector<std::string> gpus{};  // names for people: "0", "0:1"
  std::string text{};               // one sentence, safe to show on a terminal
  std::string reason{};             // the reason that a user gave; untrusted bytes; empty: none
  std::optional<uid_t> by{};        // who acted
};

class NoticeListener {
 public:
  virtual ~NoticeListener() = default;
  virtual void on_notice(const Notice& notice) = 0;
};

}  // namespace gpurota::daemon
