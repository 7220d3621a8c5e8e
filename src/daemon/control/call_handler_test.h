// A CallHandler that sends no messages, for tests of the control socket: each test defines the
// answer to a call. One thread.
#pragma once

#include "daemon/control/control_server.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

class QuietCalls : public CallHandler {
 public:
  void greet(uid_t, const std::vector<gid_t>&) override {}
  void abandon(LeaseId) override {}
  void leave(RequestId) override {}
  std::string describe(const Caller&, const LeaseEntry&, bool) const override { return {}; }
  std::string notice(const Caller&, LeaseId, const std::string& message) const override {
    return message;
  }
  std::string waits(const Caller&, const QueueEntry&) const override { return {}; }
  std::string granted(const Caller&, const LeaseEntry&) const override { return {}; }
};

}  // namespace gpurota::daemon
