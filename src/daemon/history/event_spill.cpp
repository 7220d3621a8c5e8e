#include "daemon/history/event_spill.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr std::size_t kFields = 13;
using Fields = std::array<std::string, kFields>;

template <class Number>
Number number(const std::string& text) {
  Number value{};
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

template <class Number>
std::optional<Number> perhaps(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(number<Number>(text));
}

// Takes one string from the front of `text`. Empty: the string is incomplete.
std::optional<std::string> take(std::string_view& text) {
  std::size_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  if (error != std::errc() || stop == end || *stop != ':') return std::nullopt;
  const std::string_view rest(stop + 1, static_cast<std::size_t>(end - stop - 1));
  if (rest.size() < size) return std::nullopt;
  text = rest.substr(size);
  return std::string(rest.substr(0, size));
}

ports::StoredEvent event_of(Fields fields) {
  ports::StoredEvent event;
  event.id = number<std::uint64_t>(fields[0]);
  event.time = WallTime(std::chrono::milliseconds(number<std::int64_t>(fields[1])));
  event.type = std::move(fields[2]);
  if (const auto lease = perhaps<std::uint64_t>(fields[3])) event.lease = LeaseId{*lease};
  event.gpu_index = perhaps<int>(fields[4]);
  event.gpu.value = std::move(fields[5]);
  event.uid = perhaps<uid_t>(fields[6]);
  event.finding = std::move(fields[7]);
  if (const auto bytes = perhaps<std::uint64_t>(fields[8])) event.bytes = Bytes(*bytes);
  event.count = number<std::uint64_t>(fields[9]);
  event.message = std::move(fields[10]);
  std::string_view pids = fields[11];
  while (auto pid = take(pids)) event.pids.push_back(number<pid_t>(*pid));
  event.detail = std::move(fields[12]);
  return event;
}

void put(std::string& text, std::string_view field) {
  text += std::to_string(field.size());
  text += ':';
  text += field;
}

template <class Optional, class Get>
std::string word(const Optional& value, Get get) {
  return value ? std::to_string(get(*value)) : std::string();
}

}  // namespace

std::string encode_event(const ports::StoredEvent& event) {
  std::string text, pids;
  for (const pid_t pid : event.pids) put(pids, std::to_string(pid));
  put(text, std::to_string(event.id));
  put(text, std::to_string(event.time.time_since_epoch().count()));
  put(text, event.type);
  put(text, word(event.lease, [](LeaseId lease) { return lease.value; }));
  put(text, word(event.gpu_index, [](int index) { return index; }));
  put(text, event.gpu.value);
  put(text, word(event.uid, [](uid_t uid) { return uid; }));
  put(text, event.finding);
  put(text, word(event.bytes, [](Bytes bytes) { return bytes.count(); }));
  put(text, std::to_string(event.count));
  put(text, event.message);
  put(text, pids);
  put(text, event.detail);
  return text + "\n";
}

std::vector<ports::StoredEvent> decode_events(std::string_view& text) {
  std::vector<ports::StoredEvent> events;
  for (std::string_view rest = text; !rest.empty(); text = rest) {
    Fields fields;
    for (std::string& field : fields) {
      auto next = take(rest);
      if (!next) return events;
      field = std::move(*next);
    }
    if (rest.empty() || rest.front() != '\n') return events;
    rest.remove_prefix(1);
    events.push_back(event_of(std::move(fields)));
  }
  return events;
}

Result<EventSpill> EventSpill::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat state = {};
  if (!fd || ::fstat(fd.get(), &state) != 0) return fail_errno("cannot open " + path, errno);
  return EventSpill(std::move(fd), static_cast<std::size_t>(state.st_size));
}

Result<std::vector<ports::StoredEvent>> EventSpill::read() {
  std::string text(std::min(size_, kMostBytes), '\0');
  const ssize_t count = ::pread(fd_.get(), text.data(), text.size(), 0);
  if (count < 0) return fail_errno("cannot read the events that were not stored", errno);
  text.resize(static_cast<std::size_t>(count));
  std::string_view rest = text;
  auto events = decode_events(rest);
  const std::size_t whole = text.size() - rest.size();
  if (whole < size_ && ::ftruncate(fd_.get(), static_cast<off_t>(whole)) == 0) size_ = whole;
  return events;
}

void EventSpill::add(const ports::StoredEvent& event) {
  const std::string text = encode_event(event);
  if (size_ + text.size() > kMostBytes) return;
  const ssize_t count = ::write(fd_.get(), text.data(), text.size());
  if (count == static_cast<ssize_t>(text.size())) {
    size_ += text.size();
  } else {
    // An incomplete event would hide the events after it.
    (void)!::ftruncate(fd_.get(), static_cast<off_t>(size_));
  }
}

void EventSpill::clear() {
  if (size_ > 0 && ::ftruncate(fd_.get(), 0) == 0) size_ = 0;
}

}  // namespace gpurota::daemon
