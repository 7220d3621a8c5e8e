// The calls about fillers. Users see and change their own fillers. Administrators see the fillers
// of all users, and name the user whose fillers they mean. State thread only.
#pragma once

#include "daemon/control/call_context.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

struct FillerEntry;

class FillerMethods {
 public:
  explicit FillerMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::AddFiller&);
  Outcome on(const Caller& caller, const proto::ListFillers&);
  Outcome on(const Caller& caller, const proto::ControlFiller&);
  Outcome on(const Caller& caller, const proto::ReadFillerLog&);

 private:
  proto::FillerPlace describe_place(const FillerEntry& filler, const GpuEntry& gpu) const;
  proto::Filler describe_filler(const FillerEntry& filler) const;
  Result<const FillerEntry*> own_filler(const Caller& caller, const std::string& name,
                                        const std::optional<std::string>& user) const;

  const CallContext& parts_;
};

}  // namespace gpurota::daemon
