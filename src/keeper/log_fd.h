// A file of a job's log, for jobs/log_ring.h.
#pragma once

#include "base/fd.h"
#include "jobs/log_ring.h"

namespace gpurota::keeper {

class LogFd final : public jobs::LogFile {
 public:
  // Created with mode 0600 if it does not exist. Never follows a symbolic link.
  static Result<LogFd> open(int directory, const char* name);

  Result<std::uint64_t> size() override;
  Result<std::string> read(std::uint64_t offset, std::size_t bytes) override;
  Result<void> append(std::string_view text) override;
  Result<void> make_empty() override;

 private:
  explicit LogFd(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace gpurota::keeper
