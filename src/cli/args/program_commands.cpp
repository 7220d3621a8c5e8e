#include "cli/args/program_commands.h"

#include "base/byte_order_mark.h"
#include "base/fd.h"
#include "base/read_all.h"
#include "base/text.h"
#include "cli/args/args.h"
#include "cli/queue/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr std::size_t kMostFile = std::size_t{1} << 20;

// "A=1": no blanks in the name, so that "export A=1" is not taken for a strange variable.
bool is_variable(std::string_view line) {
  const auto equals = line.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         line.find('\0') == std::string_view::npos &&
         std::none_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(equals),
                      [](unsigned char c) { return c <= ' '; });
}

// An error names the place, never the content, which may be a secret.
Result<void> add_variables(const std::string& path, std::vector<proto::Variable>& out) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  int number = 1;
  for (std::string_view rest = text; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    if (!is_variable(line)) {
      return fail(Code::kInvalid,
                  fmt::format("{}:{}: this line is not NAME=VALUE", display_text(path), number));
    }
    const auto equals = line.find('=');
    out.push_back({std::string(line.substr(0, equals)), std::string(line.substr(equals + 1))});
  }
  return {};
}

}  // namespace

Result<void> check_options(client::Connection& connection, const std::vector<std::string>& options,
                           const proto::Job* known) {
  GPUROTA_ASSIGN_OR_RETURN(const RunOptions run, parse_run_words(options));
  if (run.lease) return {};  // a reservation already has its GPUs
  proto::CheckRequest call = check_request(run);
  if (known != nullptr) {
    const auto before = parse_run_words(known->options);
    if (before && !before->lease && check_request(*before) == call) return {};
    call.uid = known->uid;
  }
  GPUROTA_TRY(connection.call(call));
  return {};
}

Result<std::string> read_text(const std::string& path) {
  Fd opened;
  if (path != "-") {
    opened = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) return fail_errno("cannot open " + display_text(path), errno);
  }
  const int fd = opened ? opened.get() : STDIN_FILENO;
  auto text = read_all(fd, kMostFile + 1);
  if (!text) return fail_errno("cannot read " + display_text(path), errno);
  if (text->size() > kMostFile) return fail(Code::kLimit, display_text(path) + " is too long");
  return std::string(without_mark(*text));
}

Result<std::vector<proto::Variable>> read_variables(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& names) {
  std::vector<proto::Variable> variables;
  for (const std::string& path : files) GPUROTA_TRY(add_variables(path, variables));
  for (const std::string& name : names) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) {
      return fail(Code::kInvalid,
                  fmt::format("--env {}: this variable is not set in your environment",
                              display_text(name, 60)));
    }
    variables.push_back({name, value});
  }
  return variables;
}

Result<std::string> absolute_workdir(const std::optional<std::string>& given) {
  if (given && given->starts_with("/")) return *given;
  char here[4096];
  if (::getcwd(here, sizeof here) == nullptr) {
    return fail_errno(
        "cannot find out the current directory: change to another one, or name one with "
        "--workdir",
        errno);
  }
  return given ? std::string(here) + "/" + *given : std::string(here);
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

Result<Surroundings> read_surroundings(const ProgramOptions& options) {
  Surroundings read;
  GPUROTA_ASSIGN_OR_RETURN(read.workdir, absolute_workdir(options.workdir));
  GPUROTA_ASSIGN_OR_RETURN(read.environment,
                           read_variables(options.variable_files, options.variables));
  GPUROTA_TRY(check_text(options.command));
  GPUROTA_TRY(check_text(read.environment));
  GPUROTA_TRY(check_text(std::vector<std::string>{read.workdir}));
  return read;
}

int show_log(const ProgramOptions& options, std::string_view text, const char* see) {
  if (text.empty()) {
    complain(
        fmt::format("no output yet: '{} {}' shows its state", see, display_text(options.name, 64)));
  }
  if (options.lines) text = last_lines(text, *options.lines);
  return shown(printable_log(text, options.user));
}

}  // namespace gpurota::cli
