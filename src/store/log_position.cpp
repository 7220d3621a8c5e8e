#include "store/log_position.h"

#include "base/fd.h"
#include "base/read_all.h"

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

constexpr std::size_t kHeadBytes = 32, kFrameHeadBytes = 24;
constexpr std::uint32_t kMagic = 0x377f0682;  // and one more where sums are of big-endian words
constexpr std::size_t kMostLog = std::size_t{4} << 30;

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  return __builtin_bswap32(big_endian(bytes, at));
}

struct Sum {
  std::uint32_t first = 0, second = 0;
  bool operator==(const Sum&) const = default;
};

Sum add(Sum sum, std::string_view bytes, bool big) {
  const auto word = [&](std::size_t at) {
    return big ? big_endian(bytes, at) : little_endian(bytes, at);
  };
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    sum.first += word(at) + sum.second;
    sum.second += word(at + 4) + sum.first;
  }
  return sum;
}

struct Head {
  LogPosition position;
  std::size_t page = 0;
  bool big = false;
  Sum sum;
};

std::optional<Head> read_head(std::string_view log) {
  if (log.size() < kHeadBytes || (big_endian(log, 0) & ~1u) != kMagic) return std::nullopt;
  Head head;
  head.big = (big_endian(log, 0) & 1u) != 0;
  head.page = big_endian(log, 8);
  head.position.number = big_endian(log, 12);
  head.position.salt = {big_endian(log, 16), big_endian(log, 20)};
  head.sum = add({}, log.substr(0, 24), head.big);
  const bool good = head.sum == Sum{big_endian(log, 24), big_endian(log, 28)};
  return good && head.page >= 512 ? std::optional(head) : std::nullopt;
}

}  // namespace

Result<LogPosition> read_log(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return LogPosition();
  if (!fd) return fail_errno("cannot open " + path, errno);
  const auto whole = read_all(fd.get(), kMostLog);
  if (!whole) return fail_errno("cannot read " + path, errno);
  const std::string_view log = *whole;
  const auto head = read_head(log);
  if (!head) return LogPosition();
  LogPosition position = head->position;
  Sum sum = head->sum;
  const std::size_t step = kFrameHeadBytes + head->page;
  std::uint64_t frames = 0;
  for (std::size_t at = kHeadBytes; at + step <= log.size(); at += step) {
    const std::string_view frame = log.substr(at, step);
    if (big_endian(frame, 8) != position.salt[0] || big_endian(frame, 12) != position.salt[1])
      break;
    sum = add(sum, frame.substr(0, 8), head->big);
    sum = add(sum, frame.substr(kFrameHeadBytes), head->big);
    if (sum != Sum{big_endian(frame, 16), big_endian(frame, 20)}) break;
    ++frames;
    if (big_endian(frame, 4) != 0) position.frames = frames;  // the last frame of a change
  }
  return position;
}

LogPosition read_log_head(int fd) {
  char bytes[kHeadBytes];
  const ssize_t size = ::pread(fd, bytes, sizeof bytes, 0);
  if (size != static_cast<ssize_t>(sizeof bytes)) return {};
  const auto head = read_head(std::string_view(bytes, sizeof bytes));
  return head ? head->position : LogPosition();
}

}  // namespace gpurota::store
