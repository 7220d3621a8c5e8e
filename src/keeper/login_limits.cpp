#include "keeper/login_limits.h"

#include "base/fd.h"
#include "base/read_all.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

struct Item {
  std::string_view name;
  int resource;
  rlim_t unit;  // of the number in the file
};
constexpr std::array<Item, 15> kItems = {{{"core", RLIMIT_CORE, 1024},
                                          {"data", RLIMIT_DATA, 1024},
                                          {"fsize", RLIMIT_FSIZE, 1024},
                                          {"memlock", RLIMIT_MEMLOCK, 1024},
                                          {"nofile", RLIMIT_NOFILE, 1},
                                          {"rss", RLIMIT_RSS, 1024},
                                          {"stack", RLIMIT_STACK, 1024},
                                          {"cpu", RLIMIT_CPU, 60},
                                          {"nproc", RLIMIT_NPROC, 1},
                                          {"as", RLIMIT_AS, 1024},
                                          {"locks", RLIMIT_LOCKS, 1},
                                          {"sigpending", RLIMIT_SIGPENDING, 1},
                                          {"msgqueue", RLIMIT_MSGQUEUE, 1},
                                          {"nice", RLIMIT_NICE, 1},
                                          {"rtprio", RLIMIT_RTPRIO, 1}}};

// How closely a line matches the user; the closest match counts.
enum Nearness { kNobody, kEverybody, kGroup, kUser };

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// "1000", "1000:1999", "1000:", ":1999".
bool in_range(std::string_view text, std::uint32_t id) {
  const auto colon = text.find(':');
  std::uint32_t least = 0, most = UINT32_MAX;
  if (colon == std::string_view::npos) return false;
  const std::string_view from = text.substr(0, colon), to = text.substr(colon + 1);
  if (from.empty() && to.empty()) return false;
  if (!from.empty() && !read_number(from, least)) return false;
  if (!to.empty() && !read_number(to, most)) return false;
  return id >= least && id <= most;
}

Nearness nearness(std::string_view domain, const LoginUser& user) {
  if (domain == user.name || in_range(domain, user.uid)) return kUser;
  // Lines about groups and about everybody do not apply to root.
  if (user.uid == 0) return kNobody;
  if (domain == "*") return kEverybody;
  if (!domain.starts_with("@")) return kNobody;
  domain.remove_prefix(1);
  const bool named =
      std::find(user.group_names.begin(), user.group_names.end(), domain) != user.group_names.end();
  const bool ranged = std::any_of(user.groups.begin(), user.groups.end(),
                                  [&](gid_t gid) { return in_range(domain, gid); });
  return named || ranged ? kGroup : kNobody;
}

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

std::optional<rlim_t> value_of(const Item& item, std::string_view text) {
  const bool endless = text == "unlimited" || text == "infinity" || text == "-1";
  if (item.resource == RLIMIT_NICE) {
    int nice = 0;
    if (text.starts_with('+')) text.remove_prefix(1);
    if (!read_number(text, nice)) return std::nullopt;
    return static_cast<rlim_t>(20 - std::clamp(nice, -20, 19));
  }
  if (endless) return RLIM_INFINITY;
  rlim_t number = 0;
  if (!read_number(text, number)) return std::nullopt;
  return number > RLIM_INFINITY / item.unit ? RLIM_INFINITY : number * item.unit;
}

class Collector {
 public:
  explicit Collector(const LoginUser& user) : user_(user) {}

  void take(std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 2) return;
    const Nearness near = nearness(words[0], user_);
    if (near == kNobody) return;
    // "alice -": alice has no limits.
    if (words.size() == 2 && words[1] == "-" && near == kUser) spared_ = true;
    if (words.size() != 4) return;
    const auto item = std::find_if(kItems.begin(), kItems.end(),
                                   [&](const Item& each) { return each.name == words[2]; });
    if (item == kItems.end()) return;
    const auto value = value_of(*item, words[3]);
    if (!value) return;
    Said& said = said_[item->resource];
    if ((words[1] == "soft" || words[1] == "-") && near >= said.soft_near) {
      said.soft = value;
      said.soft_near = near;
    }
    if ((words[1] == "hard" || words[1] == "-") && near >= said.hard_near) {
      said.hard = value;
      said.hard_near = near;
    }
  }

  std::vector<LoginLimit> limits() const {
    std::vector<LoginLimit> limits;
    if (spared_) return limits;
    for (const auto& [resource, said] : said_) {
      if (said.soft || said.hard) limits.push_back({resource, said.soft, said.hard});
    }
    return limits;
  }

 private:
  struct Said {
    std::optional<rlim_t> soft, hard;
    Nearness soft_near = kNobody, hard_near = kNobody;
  };
  const LoginUser& user_;
  std::map<int, Said> said_;
  bool spared_ = false;
};

std::optional<std::string> read_limits_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  auto text = read_all(fd.get(), kMostBytes + 1);
  if (text && text->size() > kMostBytes) return std::nullopt;
  return text;
}

}  // namespace

std::vector<LoginLimit> parse_login_limits(const std::vector<std::string>& files,
                                           const LoginUser& user) {
  Collector collector(user);
  for (const std::string& file : files) {
    for (std::size_t at = 0; at < file.size();) {
      const std::size_t end = std::min(file.find('\n', at), file.size());
      collector.take(std::string_view(file).substr(at, end - at));
      at = end + 1;
    }
  }
  return collector.limits();
}

std::vector<std::string> read_limit_files(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory + "/limits.d", error), end;
       !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".conf") paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  paths.insert(paths.begin(), directory + "/limits.conf");
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (auto text = read_limits_file(path)) files.push_back(std::move(*text));
  }
  return files;
}

rlimit merge(const rlimit& now, const LoginLimit& wanted) {
  rlimit limit = now;
  if (wanted.hard) limit.rlim_max = *wanted.hard;
  if (wanted.soft) limit.rlim_cur = *wanted.soft;
  // A soft limit alone does not raise the hard limit.
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  return limit;
}

}  // namespace gpurota::keeper
