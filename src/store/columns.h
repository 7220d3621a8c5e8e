// How values are stored in SQLite's columns: integers are signed 64-bit (an unsigned number keeps
// its bits), times are milliseconds since 1970, a process is two columns (number and start), a list
// is text with commas. Pure.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/time.h"
#include "ports/process_id.h"
#include "ports/store.h"
#include "store/database.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::store {

using Integer = std::optional<std::int64_t>;  // nullopt is NULL

inline std::int64_t to_integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }
inline std::uint64_t from_integer(std::int64_t value) { return static_cast<std::uint64_t>(value); }
inline std::int64_t to_integer(WallTime time) { return time.time_since_epoch().count(); }
inline Integer to_integer(const std::optional<Bytes>& bytes) {
  return bytes ? Integer(to_integer(bytes->count())) : Integer();
}
inline Integer to_integer(const std::optional<WallTime>& time) {
  return time ? Integer(to_integer(*time)) : Integer();
}

inline WallTime time_at(const Statement& row, int column) {
  return WallTime(std::chrono::milliseconds(row.integer(column)));
}

inline std::optional<WallTime> optional_time_at(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return time_at(row, column);
}
inline std::optional<Bytes> bytes_at(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return Bytes(from_integer(row.integer(column)));
}

// A word that is not known, from a newer gpurota, is normal.
inline LatencyClass latency_at(const Statement& row, int column) {
  return parse_latency_class(row.bytes(column)).value_or(LatencyClass::kNormal);
}

// Reads one process from two columns, which must not be NULL.
inline ports::ProcessId process_at(const Statement& row, int column) {
  return {static_cast<pid_t>(row.integer(column)), from_integer(row.integer(column + 1))};
}
// The same for columns that may both be NULL.
inline std::optional<ports::ProcessId> optional_process_at(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return process_at(row, column);
}
inline void bind_process(Statement& statement, const std::optional<ports::ProcessId>& process) {
  statement.bind(process ? Integer(process->pid) : Integer());
  statement.bind(process ? Integer(to_integer(process->start_ticks)) : Integer());
}

std::string join_gpus(const std::vector<GpuUuid>& gpus);
std::vector<GpuUuid> split_gpus(const std::string& text);
std::string join_pids(const std::vector<pid_t>& pids);
// Stops at the first part that is not a number.
std::vector<pid_t> split_pids(const std::string& text);

// "4711 123456", a line each: number and start.
std::string join_processes(const std::vector<ports::ProcessId>& processes);
// Leaves out damaged lines.
std::vector<ports::ProcessId> split_processes(const std::string& text);

// "1000 PATH", a line each: the kernel allows no line break in the path of a control group.
std::string join_containers(const std::vector<ports::StoredContainer>& containers);
// Leaves out damaged lines.
std::vector<ports::StoredContainer> split_containers(const std::string& text);

}  // namespace gpurota::store
