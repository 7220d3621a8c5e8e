// The audit log of users' actions: JSON lines, append-only, mode 0600, a file for each user. State
// thread only.
//
//   STATE_DIR/audit/1000.jsonl      and 1000.jsonl.1, the older records
//   STATE_DIR/audit/daemon.jsonl    actions of gpurotad itself
//
// Each user has a file, so that the actions of one user never push out the records of others. Every
// line begins with its time, so that `sort` merges the files. No line has text from users.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "core/time.h"
#include "sys/append_file.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota::daemon {

struct AuditRecord {
  std::optional<uid_t> uid;  // empty: the daemon itself
  std::optional<pid_t> pid;
  std::optional<LeaseId> lease;
  std::string_view operation;  // one of our words: "Acquire", "stopped", …
  std::optional<Bytes> bytes;
  std::string_view error_code;  // empty: the operation succeeded
  std::uint64_t count = 1;
  std::optional<std::uint32_t> session{};  // of the web page, if the call came from there
};

// One line with its newline.
std::string audit_line(const AuditRecord& record, WallTime time);

class AuditLog {
 public:
  // Makes the directory (0700). `budget`: the most that is kept for each user.
  static Result<AuditLog> open(const std::string& directory, Bytes budget);

  // An error leaves the log as it was; the next call tries to write again.
  Result<void> write(const AuditRecord& record, WallTime time);

 private:
  AuditLog(std::string directory, Bytes budget)
      : directory_(std::move(directory)), budget_(budget) {}
  Result<sys::AppendFile*> file_of(const std::string& name);

  std::string directory_;
  Bytes budget_;
  std::map<std::string, sys::AppendFile> open_;  // bounded
};

}  // namespace gpurota::daemon
