#include "daemon/history/audit_log.h"

#include "base/directory.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace gpurota::daemon {
namespace {

// Descriptors that stay open between two records.
constexpr std::size_t kMostOpen = 32;

}  // namespace

std::string audit_line(const AuditRecord& record, WallTime time) {
  std::string line = fmt::format("{{\"time\":\"{}\"", proto::format_time(time));
  if (record.uid) line += fmt::format(",\"uid\":{}", *record.uid);
  if (record.pid) line += fmt::format(",\"pid\":{}", *record.pid);
  if (record.session) line += fmt::format(",\"by\":\"web\",\"session\":\"W{}\"", *record.session);
  if (record.lease) line += fmt::format(",\"lease\":\"{}\"", to_string(*record.lease));
  line += fmt::format(",\"operation\":\"{}\"", record.operation);
  if (record.bytes) line += fmt::format(",\"bytes\":{}", record.bytes->count());
  line += fmt::format(",\"result\":\"{}\"", record.error_code.empty() ? "ok" : "denied");
  if (!record.error_code.empty()) line += fmt::format(",\"error_code\":\"{}\"", record.error_code);
  if (record.count != 1) line += fmt::format(",\"count\":{}", record.count);
  return line + "}\n";
}

Result<AuditLog> AuditLog::open(const std::string& directory, Bytes budget) {
  GPUROTA_TRY(make_directory(directory, 0700));
  return AuditLog(directory, budget);
}

Result<sys::AppendFile*> AuditLog::file_of(const std::string& name) {
  const auto known = open_.find(name);
  if (known != open_.end()) return &known->second;
  if (open_.size() >= kMostOpen) open_.clear();
  GPUROTA_ASSIGN_OR_RETURN(sys::AppendFile file,
                           sys::AppendFile::open(directory_ + "/" + name + ".jsonl"));
  return &open_.emplace(name, std::move(file)).first->second;
}

Result<void> AuditLog::write(const AuditRecord& record, WallTime time) {
  const std::string name = record.uid ? std::to_string(*record.uid) : "daemon";
  const std::string line = audit_line(record, time);
  GPUROTA_ASSIGN_OR_RETURN(sys::AppendFile * file, file_of(name));
  // Two files of half the budget each.
  if (file->size() > 0 && file->size() + line.size() > budget_.count() / 2) {
    open_.erase(name);
    const std::string path = directory_ + "/" + name + ".jsonl";
    if (std::rename(path.c_str(), (path + ".1").c_str()) != 0) {
      return fail_errno("cannot rotate " + path, errno);
    }
    GPUROTA_ASSIGN_OR_RETURN(file, file_of(name));
  }
  return file->append(line);
}

}  // namespace gpurota::daemon
