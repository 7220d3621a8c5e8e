#include "cli/jobs/job_file.h"

#include "base/escape.h"
#include "base/text.h"
#include "cli/args/args.h"
#include "config/document.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::cli {
namespace {

using Strings = std::vector<std::string>;
using config::Value;
using Kind = config::Value::Kind;

// A basic string of TOML. The text may be another user's and is printed, so it contains no control
// sequence for the terminal.
std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return escape_hidden(out, Escapes::kToml) + "\"";
}

std::string toml_list(const Strings& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + toml_string(word);
  return "[" + out + "]";
}

std::string toml_lists(const std::vector<proto::ItemCommand>& commands) {
  std::string out = "[\n";
  for (const proto::ItemCommand& each : commands) out += "  " + toml_list(each.words) + ",\n";
  return out + "]";
}

class JobReader {
 public:
  JobReader(const Value& table, const std::string& file) : table_(table), file_(file) {}

  Result<proto::JobDefinition> read() {
    const std::set<std::string_view> known = {
        "name",       "command",       "options",   "workdir", "restart",   "after",
        "boot_after", "after_success", "after_end", "start",   "variables", "environment",
        "output",     "tty",           "array",     "each",    "at_once"};
    for (const auto& [key, value] : table_.table) {
      if (!known.contains(key)) return wrong(value, key, "there is no such key");
    }
    proto::JobDefinition job;
    job.restart = "no";
    GPUROTA_TRY(text("name", job.name));
    if (job.name.empty()) return wrong(table_, "name", "a job needs a name");
    GPUROTA_TRY(strings("command", job.command));
    GPUROTA_TRY(read_array(job));
    if (job.command.empty() && !job.each) return wrong(table_, "command", "a job needs a command");
    GPUROTA_TRY(strings("options", job.options));
    if (const auto run = parse_run_words(job.options); !run) {
      return wrong(*table_.find("options"), "options", run.error().message);
    }
    GPUROTA_TRY(text("workdir", job.workdir));
    if (!job.workdir.empty() && job.workdir.front() != '/') {
      return wrong(*table_.find("workdir"), "workdir", "write an absolute path");
    }
    GPUROTA_TRY(text("restart", job.restart));
    if (job.restart != "no" && job.restart != "on-failure" && job.restart != "always") {
      return wrong(*table_.find("restart"), "restart", "write no, on-failure or always");
    }
    std::string output;
    GPUROTA_TRY(text("output", output));
    if (!output.empty() && output != "file" && output != "journal") {
      return wrong(*table_.find("output"), "output", "write file or journal");
    }
    if (!output.empty()) job.output = output;
    GPUROTA_TRY(read_what_is_before(job));
    GPUROTA_TRY(strings("variables", job.variables));
    GPUROTA_TRY(flag("start", job.start));
    bool tty = false;
    GPUROTA_TRY(flag("tty", tty));
    if (tty) job.tty = true;
    GPUROTA_TRY(read_environment(job));
    return job;
  }

 private:
  tl::unexpected<Error> wrong(const Value& value, const std::string& key,
                              const std::string& what) const {
    return fail(Code::kInvalid, fmt::format("{}:{}: {}: {}", display_text(file_), value.line,
                                            display_text(key, 60), what));
  }
  Result<void> take(const Value& value, const std::string& key, const char* wanted,
                    std::string& out) const {
    if (!value.is(Kind::kText)) return wrong(value, key, wanted);
    if (value.text.find('\0') != std::string::npos) {
      return wrong(value, key, "it contains a NUL byte");
    }
    out = value.text;
    return {};
  }
  Result<void> text(const char* key, std::string& out) const {
    const Value* const value = table_.find(key);
    return value == nullptr ? Result<void>() : take(*value, key, "write a string: \"…\"", out);
  }
  Result<void> strings(const char* key, Strings& out) const {
    constexpr const char* kWanted = "write a list of strings: [\"…\", \"…\"]";
    const Value* const value = table_.find(key);
    if (value == nullptr) return {};
    if (!value->is(Kind::kList)) return wrong(*value, key, kWanted);
    for (const Value& each : value->list) GPUROTA_TRY(take(each, key, kWanted, out.emplace_back()));
    return {};
  }
  Result<void> flag(const char* key, bool& out) const {
    const Value* const value = table_.find(key);
    if (value == nullptr) return {};
    if (!value->is(Kind::kFlag)) return wrong(*value, key, "write true or false");
    out = value->flag;
    return {};
  }
  Result<void> read_array(proto::JobDefinition& job) const {
    std::string array;
    GPUROTA_TRY(text("array", array));
    if (table_.find("array") != nullptr) job.array = array;
    if (const Value* const at_once = table_.find("at_once")) {
      const bool fits =
          at_once->is(Kind::kNumber) && at_once->number >= 1 && at_once->number <= 256;
      if (!fits) return wrong(*at_once, "at_once", "write a number from 1 to 256");
      job.at_once = static_cast<int>(at_once->number);
    }
    const Value* const each = table_.find("each");
    if (each == nullptr) return {};
    constexpr const char* kWanted = "write a list of commands: [[\"…\", \"…\"], [\"…\"]]";
    if (!each->is(Kind::kList)) return wrong(*each, "each", kWanted);
    job.each.emplace();
    for (const Value& command : each->list) {
      if (!command.is(Kind::kList)) return wrong(command, "each", kWanted);
      Strings& words = job.each->emplace_back().words;
      for (const Value& word : command.list) {
        GPUROTA_TRY(take(word, "each", kWanted, words.emplace_back()));
      }
    }
    return {};
  }
  Result<void> read_what_is_before(proto::JobDefinition& job) const {
    const Value* const old = table_.find("after");
    if (old != nullptr && table_.find("boot_after") != nullptr) {
      return wrong(*old, "after", "it is the old name of boot_after: leave it out");
    }
    GPUROTA_TRY(strings(old ? "after" : "boot_after", job.after));
    Strings success, end;
    GPUROTA_TRY(strings("after_success", success));
    GPUROTA_TRY(strings("after_end", end));
    if (!success.empty()) job.after_success = std::move(success);
    if (!end.empty()) job.after_end = std::move(end);
    return {};
  }
  Result<void> read_environment(proto::JobDefinition& job) const {
    const Value* const section = table_.find("environment");
    if (section == nullptr) return {};
    if (!section->is(Kind::kTable)) {
      return wrong(*section, "environment", "it is a section: [job.environment]");
    }
    for (const auto& [name, each] : section->table) {
      // The message never contains the value, which may be a secret.
      if (!each.is(Kind::kText)) return wrong(each, name, "write a string: \"…\"");
      if (name.empty() || name.find('=') != std::string::npos ||
          (name + each.text).find('\0') != std::string::npos) {
        return wrong(each, name, "this is not a valid variable name");
      }
      job.environment.push_back({name, each.text});
    }
    return {};
  }

  const Value& table_;
  const std::string& file_;
};

}  // namespace

std::string job_file_text(const std::vector<proto::JobDefinition>& jobs) {
  std::string out =
      "# Jobs of gpurota: gpurota job apply FILE. The options are those of gpurota run.\n";
  for (const proto::JobDefinition& job : jobs) {
    out += fmt::format("\n[[job]]\nname = {}\n", toml_string(job.name));
    if (!job.each) out += fmt::format("command = {}\n", toml_list(job.command));
    if (job.array) out += fmt::format("array = {}\n", toml_string(*job.array));
    if (job.each) out += fmt::format("each = {}\n", toml_lists(*job.each));
    if (job.at_once) out += fmt::format("at_once = {}\n", *job.at_once);
    if (!job.options.empty()) out += fmt::format("options = {}\n", toml_list(job.options));
    if (!job.workdir.empty()) out += fmt::format("workdir = {}\n", toml_string(job.workdir));
    if (job.restart != "no") out += fmt::format("restart = {}\n", toml_string(job.restart));
    if (job.after_success)
      out += fmt::format("after_success = {}\n", toml_list(*job.after_success));
    if (job.after_end) out += fmt::format("after_end = {}\n", toml_list(*job.after_end));
    if (!job.after.empty()) out += fmt::format("boot_after = {}\n", toml_list(job.after));
    if (job.output) out += fmt::format("output = {}\n", toml_string(*job.output));
    if (job.tty.value_or(false)) out += "tty = true\n";
    if (!job.start) out += "start = false\n";
    if (!job.variables.empty()) out += fmt::format("variables = {}\n", toml_list(job.variables));
    if (!job.environment.empty()) out += "[job.environment]\n";
    for (const proto::Variable& each : job.environment) {
      out += fmt::format("{} = {}\n", toml_string(each.name), toml_string(each.value));
    }
  }
  return out;
}

Result<std::vector<proto::JobDefinition>> parse_job_file(std::string_view text,
                                                         const std::string& file,
                                                         std::string* warning) {
  const auto parsed = config::parse_document({file, std::string(text)});
  if (!parsed) return fail(Code::kInvalid, to_string(parsed.error()));
  const auto wrong = [&](const Value& value, std::string_view key, const char* what) {
    return fail(Code::kInvalid, fmt::format("{}:{}: {}: {}", display_text(file), value.line,
                                            display_text(key, 60), what));
  };
  std::vector<proto::JobDefinition> jobs;
  std::set<std::string> names;
  for (const auto& [key, value] : parsed->table) {
    if (key != "job") return wrong(value, key, "there is no such key: write [[job]]");
    if (!value.is(Kind::kList)) return wrong(value, "job", "write [[job]], with two brackets");
    for (const Value& each : value.list) {
      if (!each.is(Kind::kTable)) return wrong(each, "job", "write [[job]], with two brackets");
      GPUROTA_ASSIGN_OR_RETURN(auto job, JobReader(each, file).read());
      if (const Value* const old = each.find("after"); old != nullptr && warning != nullptr) {
        *warning = fmt::format(
            "{}:{}: after is called boot_after now, and will be removed: it orders starts after a "
            "reboot. To start a job when another one has ended: after_success, after_end",
            display_text(file), old->line);
      }
      if (!names.insert(job.name).second) {
        return wrong(each, "name", "a job above has this name already");
      }
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

}  // namespace gpurota::cli
