#include "series/row.h"

#include <algorithm>

namespace gpurota::series {
namespace {

constexpr std::size_t kSubjectBytes = 8;

void put_number(std::string& to, std::uint64_t value) {
  while (value >= 0x80) {
    to.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7U;
  }
  to.push_back(static_cast<char>(value));
}

std::optional<std::uint64_t> take_number(std::string_view& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::size_t number_bytes(std::uint64_t value) {
  std::string text;
  put_number(text, value);
  return text.size();
}

// The body of an entry. In a row the length of the body comes first, so that an entry can be
// skipped.
std::string body_of(const Entry& entry) {
  const auto rules = rules_of(entry.subject.kind);
  std::string body;
  for (std::size_t i = 0; i < kSubjectBytes; ++i) {
    body.push_back(static_cast<char>((entry.subject.id >> (8 * i)) & 0xff));
  }
  put_number(body, entry.seconds);
  // An unknown value is 0; zeros at the end of the columns are left out.
  std::size_t columns = rules.size();
  while (columns > 0 && entry.values[columns - 1] == kNone) --columns;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::uint64_t value = entry.values[i];
    put_number(body, value == kNone ? 0 : std::min(value, rules[i].most) + 1);
  }
  return body;
}

}  // namespace

// FNV-1a: a collision between two GPUs of a machine is less likely than two equal UUIDs.
Subject subject_of(const GpuUuid& gpu) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : gpu.value) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return {Kind::kGpu, hash};
}

Subject subject_of(LeaseId lease) { return {Kind::kLease, lease.value}; }

std::string encode(const std::vector<Entry>& entries) {
  std::string row;
  for (const Entry& entry : entries) {
    const std::string body = body_of(entry);
    row.push_back(static_cast<char>(entry.subject.kind));
    put_number(row, body.size());
    row += body;
  }
  return row;
}

std::vector<Entry> decode(std::string_view row) {
  return decode(row, [](const Subject&) { return true; });
}

std::size_t most_bytes(Kind kind) {
  constexpr std::size_t kMostSeconds = 300;  // of the coarsest step
  std::size_t body = kSubjectBytes + number_bytes(kMostSeconds);
  for (const Column& column : rules_of(kind)) body += number_bytes(column.most + 1);
  return 1 + number_bytes(body) + body;
}

std::optional<Subject> RowReader::next() {
  while (!left_.empty()) {
    const auto kind = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    const auto size = take_number(left_);
    if (!size || *size > left_.size() || *size < kSubjectBytes) break;
    body_ = left_.substr(0, static_cast<std::size_t>(*size));
    left_.remove_prefix(static_cast<std::size_t>(*size));
    if (kind > static_cast<unsigned char>(Kind::kLease)) continue;  // of a newer gpurota
    subject_ = {static_cast<Kind>(kind), 0};
    for (std::size_t i = 0; i < kSubjectBytes; ++i) {
      subject_.id |= static_cast<std::uint64_t>(static_cast<unsigned char>(body_[i])) << (8 * i);
    }
    body_.remove_prefix(kSubjectBytes);
    return subject_;
  }
  left_ = {};
  return std::nullopt;
}

std::optional<Entry> RowReader::entry() {
  Entry entry;
  entry.subject = subject_;
  const auto seconds = take_number(body_);
  if (!seconds) return std::nullopt;
  entry.seconds = static_cast<std::uint32_t>(std::min<std::uint64_t>(*seconds, UINT32_MAX));
  const std::size_t columns = rules_of(subject_.kind).size();
  for (std::size_t i = 0; i < columns && !body_.empty(); ++i) {
    const auto value = take_number(body_);
    if (!value) return std::nullopt;
    entry.values[i] = *value == 0 ? kNone : *value - 1;
  }
  return entry;
}

}  // namespace gpurota::series
