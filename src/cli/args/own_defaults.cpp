#include "cli/args/own_defaults.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/args/option_parser.h"
#include "config/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

using config::Value;
using Kind = config::Value::Kind;

constexpr std::size_t kMostBytes = 64 << 10;
// Options that apply to a single call, and so cannot be defaults.
constexpr std::string_view kOfOneCall[] = {
    "--lease", "--help", "--no-defaults", "--json",  "--runtime-dir", "--near", "--force",
    "--short", "--name", "--at",          "--until", "--weekly",      "--host", "--hosts-file"};
// Options that exclude each other: a typed one replaces the default of the other.
constexpr std::string_view kExcluding[][2] = {
    {"--gpus", "--gpu-ids"},   {"--wait", "--nonblock"},     {"--timeout", "--until"},
    {"--for", "--until"},      {"--gpu-ids", "--gpu-type"},  {"--gpu-ids", "--min-memory"},
    {"--gpu-ids", "--min-cc"}, {"--gpu-ids", "--gpu-class"},
};

bool is_of_one_call(std::string_view name) {
  return std::find(std::begin(kOfOneCall), std::end(kOfOneCall), name) != std::end(kOfOneCall);
}

std::vector<Option> options_with_defaults(std::string_view section, Raw& raw) {
  std::vector<Option> options =
      section == "output" ? options_of_every_command(raw) : options_of(section, raw);
  Raw none;
  const auto everywhere = options_of_every_command(none);
  std::erase_if(options, [&](const Option& option) {
    const bool is_output = std::any_of(everywhere.begin(), everywhere.end(),
                                       [&](const Option& o) { return o.name == option.name; });
    return is_of_one_call(option.name) || is_output != (section == "output");
  });
  return options;
}

bool is_set(const Option& option) {
  if (const bool* const flag = option.flag()) return *flag;
  if (const auto* const text = option.text()) return text->has_value();
  const Words* const texts = option.texts();
  return texts != nullptr && !texts->empty();
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<void> read(const std::string& section, const Value& table, Raw& raw) const {
    if (!table.is(Kind::kTable)) {
      return wrong(table, section, fmt::format("write it as a section: [{}]", section));
    }
    const auto options = options_with_defaults(section, raw);
    for (const auto& [key, value] : table.table) {
      const auto option =
          std::find_if(options.begin(), options.end(),
                       [name = "--" + key](const Option& each) { return each.name == name; });
      if (option == options.end()) return unknown(section, key, value, options);
      GPUROTA_TRY(take(*option, section + "." + key, value));
    }
    return {};
  }

  tl::unexpected<Error> wrong(const Value& value, const std::string& key, std::string what) const {
    return fail(Code::kInvalid,
                to_string(config::Problem{{path_, value.line}, key, std::move(what)}));
  }

 private:
  tl::unexpected<Error> unknown(const std::string& section, const std::string& key,
                                const Value& value, const std::vector<Option>& options) const {
    if (is_of_one_call("--" + key)) return wrong(value, section + "." + key, "type it each time");
    std::vector<std::string> names;
    for (const Option& option : options) names.emplace_back(option.name.substr(2));
    const std::string meant = nearest_name(key, names);
    return wrong(
        value, section + "." + key,
        fmt::format("there is no such option{}{}",
                    section == "output" ? " for every command" : " of gpurota " + section,
                    meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant)));
  }

  Result<void> take(const Option& option, const std::string& key, const Value& value) const {
    if (bool* const flag = option.flag()) {
      if (!value.is(Kind::kFlag)) return wrong(value, key, "write true or false, without quotes");
      *flag = value.flag;
      return {};
    }
    const bool is_list = value.is(Kind::kList) && option.texts() != nullptr;
    for (const Value& each : is_list ? value.list : std::vector<Value>{value}) {
      if (!each.is(Kind::kText) && !each.is(Kind::kNumber)) {
        return wrong(value, key, "write a text in quotes, as it would be typed");
      }
      const std::string text = each.is(Kind::kText) ? each.text : std::to_string(each.number);
      if (const auto set = option.set(text); !set) return wrong(each, key, set.error().message);
    }
    return {};
  }

  const std::string& path_;
};

void add_typed(const Option& option, std::string& typed) {
  const auto add = [&](const std::string& word) { typed += (typed.empty() ? "" : " ") + word; };
  Words values;
  if (const auto* const text = option.text()) values = {**text};
  if (const Words* const texts = option.texts()) values = *texts;
  if (!option.takes_value()) add(std::string(option.name));
  for (const std::string& value : values) {
    add(std::string(option.name));
    add(display_command({value}));
  }
}

// Copies the value of an option to the same option of another Raw.
void copy(const Option& from, const Option& to) {
  if (bool* const flag = to.flag()) *flag = true;
  const auto* const text = from.text();
  if (auto* const copy = to.text(); copy != nullptr && text != nullptr) *copy = *text;
  const Words* const texts = from.texts();
  if (Words* const copy = to.texts(); copy != nullptr && texts != nullptr) *copy = *texts;
}

// `section`: run, reserve or output.
std::string add(std::string_view section, const Raw& defaults, Raw& raw) {
  Raw own = defaults;
  const auto from = options_with_defaults(section, own);
  const auto to = options_with_defaults(section, raw);
  std::vector<std::string_view> typed;
  for (const Option& option : to) {
    if (is_set(option)) typed.push_back(option.name);
  }
  const auto was_typed = [&](std::string_view name) {
    return std::find(typed.begin(), typed.end(), name) != typed.end();
  };
  const auto is_excluded = [&](std::string_view name) {
    return std::any_of(std::begin(kExcluding), std::end(kExcluding), [&](const auto& pair) {
      return (name == pair[0] && was_typed(pair[1])) || (name == pair[1] && was_typed(pair[0]));
    });
  };
  std::string added;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!is_set(from[i]) || was_typed(from[i].name) || is_excluded(from[i].name)) continue;
    copy(from[i], to[i]);
    add_typed(from[i], added);
  }
  return added;
}

std::string own_path() {
  const char* const folder = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (folder != nullptr && folder[0] == '/') return std::string(folder) + "/gpurota/config.toml";
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.config/gpurota/config.toml";
  return {};
}

// Empty if there is no file.
Result<std::string> text_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  // A missing home directory, or one that this process cannot read, has no defaults.
  if (fd < 0) return std::string();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(::fdopen(fd, "r"), &std::fclose);
  struct stat about {};
  if (!file || ::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    return fail(Code::kInvalid, fmt::format("{} is not a file", display_text(path)));
  }
  const bool is_own = about.st_uid == ::geteuid() || about.st_uid == 0;
  if (!is_own || (about.st_mode & S_IWOTH) != 0) {
    return fail(Code::kInvalid,
                fmt::format("{} is not used: others can write it; chown or chmod it, or remove it",
                            display_text(path)));
  }
  std::string text(kMostBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (text.size() > kMostBytes) {
    return fail(Code::kInvalid, fmt::format("{} is larger than 64 KiB", display_text(path)));
  }
  return text;
}

}  // namespace

Result<OwnDefaults> parse_own_defaults(std::string_view text, const std::string& path) {
  OwnDefaults defaults{path, {}, {}, {}};
  const auto parsed = config::parse_document({path, std::string(text)});
  if (!parsed) return fail(Code::kInvalid, to_string(parsed.error()));
  const Reader reader(path);
  for (const auto& [section, table] : parsed->table) {
    Raw* const raw = section == "run"       ? &defaults.run
                     : section == "reserve" ? &defaults.reserve
                     : section == "output"  ? &defaults.output
                                            : nullptr;
    if (raw == nullptr) {
      return reader.wrong(table, section, "write it below [run], [reserve] or [output]");
    }
    GPUROTA_TRY(reader.read(section, table, *raw));
  }
  return defaults;
}

Result<OwnDefaults> read_own_defaults() {
  const std::string path = own_path();
  if (path.empty()) return OwnDefaults{};
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, text_of(path));
  return parse_own_defaults(text, path);
}

std::string add_defaults(std::string_view command, const OwnDefaults& defaults, Raw& raw) {
  // With --host or --hosts-file, the command runs on other machines, and each uses the user's
  // defaults file there.
  if (raw.no_defaults || raw.lease || !raw.host.empty() || raw.hosts_file) return {};
  if (command == "run") return add("run", defaults.run, raw);
  if (command == "reserve") return add("reserve", defaults.reserve, raw);
  return {};
}

void add_output_defaults(const OwnDefaults& defaults, Raw& raw) {
  (void)add("output", defaults.output, raw);
}

}  // namespace gpurota::cli
