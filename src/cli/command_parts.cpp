#include "cli/command_parts.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

namespace gpurota::cli {
namespace {

Result<void> read_file(const std::string& path, std::vector<proto::Variable>& out) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) return fail_errno("cannot open " + display_text(path), errno);
  char* line = nullptr;
  std::size_t room = 0;
  ssize_t length = 0;
  Result<void> result;
  while (result && (length = ::getline(&line, &room, file.get())) >= 0) {
    std::string text(line, static_cast<std::size_t>(length));
    if (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.empty() || text.front() == '#') continue;
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      result = fail(Code::kInvalid, display_text(path) + ": a line is not NAME=VALUE");
    } else {
      out.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
  }
  std::free(line);
  return result;
}

}  // namespace

Result<std::vector<proto::Variable>> read_variables(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& names) {
  std::vector<proto::Variable> variables;
  for (const std::string& path : files) GPUROTA_TRY(read_file(path, variables));
  for (const std::string& name : names) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) {
      return fail(Code::kInvalid,
                  fmt::format("--env {}: you have no such variable", display_text(name, 60)));
    }
    variables.push_back({name, value});
  }
  return variables;
}

Result<std::string> absolute_workdir(const std::optional<std::string>& given) {
  char here[4096];
  if (::getcwd(here, sizeof here) == nullptr) return fail_errno("cannot tell where we are", errno);
  if (!given) return std::string(here);
  return given->starts_with("/") ? *given : std::string(here) + "/" + *given;
}

Result<void> check_text(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (valid_utf8(word) == word) continue;
    return fail(Code::kInvalid, fmt::format("'{}' is not UTF-8: put it into a script, and add that",
                                            display_text(word, 60)));
  }
  return {};
}

Result<void> check_text(const std::vector<proto::Variable>& variables) {
  std::vector<std::string> values;
  for (const proto::Variable& variable : variables) values.push_back(variable.value);
  return check_text(values);
}

std::string_view last_lines(std::string_view text, int lines) {
  std::size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (; lines > 0; --lines) {
    const auto newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    if (newline == std::string_view::npos) return text;
    at = newline;
  }
  return text.substr(at + 1);
}

std::string printable_log(std::string_view text, const std::optional<std::string>& user) {
  if (!user || ::isatty(STDOUT_FILENO) == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += display_text(text.substr(0, end), end + 1);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace gpurota::cli
