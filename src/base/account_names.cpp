#include "base/account_names.h"

#include "base/name_service.h"
#include "base/text.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include <grp.h>
#include <pwd.h>

namespace gpurota {
namespace {

constexpr std::size_t kMostNames = 4096;

template <class Number>
std::optional<Number> number_of(const std::string& name) {
  Number number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// The names of the first kMostNames records in the file at `path`. next(file) calls fgetpwent_r or
// fgetgrent_r, and returns the name of the next record, or null.
template <class Next>
std::vector<std::string> names_in(const char* path, Next next) {
  std::vector<std::string> names;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "re"), &std::fclose);
  while (file && names.size() < kMostNames) {
    std::vector<char> buffer(std::size_t{1} << 16);
    const char* const name = next(file.get(), buffer);
    if (name == nullptr) break;
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

Result<uid_t> read_uid(const std::string& name) {
  passwd account{};
  passwd* found = nullptr;
  std::optional<uid_t> uid;
  GPUROTA_TRY(ask_name_service([&](std::vector<char>& buffer) {
    const int r = ::getpwnam_r(name.c_str(), &account, buffer.data(), buffer.size(), &found);
    if (r == 0 && found != nullptr) uid = found->pw_uid;
    return r;
  }));
  if (uid) return *uid;
  if (const auto number = number_of<uid_t>(name)) return *number;
  return fail(Code::kNotFound, fmt::format("there is no user \"{}\"", display_text(name, 60)));
}

Result<gid_t> read_gid(const std::string& name) {
  group entry{};
  group* found = nullptr;
  std::optional<gid_t> gid;
  GPUROTA_TRY(ask_name_service([&](std::vector<char>& buffer) {
    const int r = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (r == 0 && found != nullptr) gid = found->gr_gid;
    return r;
  }));
  if (gid) return *gid;
  if (const auto number = number_of<gid_t>(name)) return *number;
  return fail(Code::kNotFound, fmt::format("there is no group \"{}\"", display_text(name, 60)));
}

std::vector<std::string> read_local_users() {
  passwd account{};
  return names_in("/etc/passwd", [&](std::FILE* file, std::vector<char>& buffer) -> const char* {
    passwd* found = nullptr;
    (void)::fgetpwent_r(file, &account, buffer.data(), buffer.size(), &found);
    return found == nullptr ? nullptr : found->pw_name;
  });
}

std::vector<std::string> read_local_groups() {
  group entry{};
  return names_in("/etc/group", [&](std::FILE* file, std::vector<char>& buffer) -> const char* {
    group* found = nullptr;
    (void)::fgetgrent_r(file, &entry, buffer.data(), buffer.size(), &found);
    return found == nullptr ? nullptr : found->gr_name;
  });
}

}  // namespace gpurota
