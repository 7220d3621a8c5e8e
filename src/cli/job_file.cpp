#include "cli/job_file.h"

#include "base/escape.h"
#include "base/text.h"
#include "base/toml.h"
#include "cli/args.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::cli {
namespace {

using Strings = std::vector<std::string>;

// A basic string of TOML. It may be somebody else's, and the file is printed: nothing in it drives a terminal.
std::string quoted(std::string_view text) {
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

std::string listed(const Strings& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + quoted(word);
  return "[" + out + "]";
}

class JobReader {
 public:
  JobReader(const toml::table& table, const std::string& file) : table_(table), file_(file) {}

  Result<proto::JobDefinition> read() {
    const std::set<std::string_view> known = {"name",        "command", "options", "workdir",
                                              "restart",     "after",   "start",   "variables",
                                              "environment", "output"};
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (!known.contains(name)) return wrong(node, name, "there is no such key");
    }
    proto::JobDefinition job;
    job.restart = "no";
    GPUROTA_TRY(text("name", job.name));
    if (job.name.empty()) return wrong(table_, "name", "a job needs a name");
    GPUROTA_TRY(strings("command", job.command));
    if (job.command.empty()) return wrong(table_, "command", "a job needs a command");
    GPUROTA_TRY(strings("options", job.options));
    if (const auto run = parse_run_words(job.options); !run) {
      return wrong(*table_.get("options"), "options", run.error().message);
    }
    GPUROTA_TRY(text("workdir", job.workdir));
    if (!job.workdir.empty() && job.workdir.front() != '/') {
      return wrong(*table_.get("workdir"), "workdir", "write an absolute path");
    }
    GPUROTA_TRY(text("restart", job.restart));
    if (job.restart != "no" && job.restart != "on-failure" && job.restart != "always") {
      return wrong(*table_.get("restart"), "restart", "write no, on-failure or always");
    }
    std::string output;
    GPUROTA_TRY(text("output", output));
    if (!output.empty() && output != "file" && output != "journal") {
      return wrong(*table_.get("output"), "output", "write file or journal");
    }
    if (!output.empty()) job.output = output;
    GPUROTA_TRY(strings("after", job.after));
    GPUROTA_TRY(strings("variables", job.variables));
    GPUROTA_TRY(read_start(job));
    GPUROTA_TRY(read_environment(job));
    return job;
  }

 private:
  tl::unexpected<Error> wrong(const toml::node& node, const std::string& key,
                              const std::string& what) const {
    return fail(Code::kInvalid, fmt::format("{}:{}: {}: {}", display_text(file_),
                                            node.source().begin.line, display_text(key, 60), what));
  }
  Result<void> text(const char* key, std::string& out) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value<std::string>();
    if (!node->is_string() || !value) return wrong(*node, key, "write a string: \"…\"");
    if (value->find('\0') != std::string::npos) return wrong(*node, key, "it contains a NUL byte");
    out = *value;
    return {};
  }
  Result<void> strings(const char* key, Strings& out) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    if (array == nullptr) return wrong(*node, key, "write a list of strings: [\"…\", \"…\"]");
    for (const toml::node& each : *array) {
      const auto value = each.value<std::string>();
      if (!each.is_string() || !value)
        return wrong(each, key, "write a list of strings: [\"…\", \"…\"]");
      if (value->find('\0') != std::string::npos) return wrong(each, key, "it contains a NUL byte");
      out.push_back(*value);
    }
    return {};
  }
  Result<void> read_start(proto::JobDefinition& job) const {
    const toml::node* node = table_.get("start");
    if (node == nullptr) return {};
    if (!node->is_boolean()) return wrong(*node, "start", "write true or false");
    job.start = node->as_boolean()->get();
    return {};
  }
  Result<void> read_environment(proto::JobDefinition& job) const {
    const toml::node* node = table_.get("environment");
    if (node == nullptr) return {};
    if (!node->is_table()) return wrong(*node, "environment", "it is a section: [job.environment]");
    for (const auto& [key, each] : *node->as_table()) {
      const std::string name(key.str());
      const auto value = each.value<std::string>();
      // Never with the value, which may be a secret.
      if (!each.is_string() || !value) return wrong(each, name, "write a string: \"…\"");
      if (name.empty() || name.find('=') != std::string::npos ||
          (name + *value).find('\0') != std::string::npos) {
        return wrong(each, name, "this is not a valid variable name");
      }
      job.environment.push_back({name, *value});
    }
    return {};
  }

  const toml::table& table_;
  const std::string& file_;
};

}  // namespace

std::string job_file_text(const std::vector<proto::JobDefinition>& jobs) {
  std::string out =
      "# Jobs of gpurota: gpurota job apply FILE. The options are those of gpurota run.\n";
  for (const proto::JobDefinition& job : jobs) {
    out +=
        fmt::format("\n[[job]]\nname = {}\ncommand = {}\n", quoted(job.name), listed(job.command));
    if (!job.options.empty()) out += fmt::format("options = {}\n", listed(job.options));
    if (!job.workdir.empty()) out += fmt::format("workdir = {}\n", quoted(job.workdir));
    if (job.restart != "no") out += fmt::format("restart = {}\n", quoted(job.restart));
    if (!job.after.empty()) out += fmt::format("after = {}\n", listed(job.after));
    if (job.output) out += fmt::format("output = {}\n", quoted(*job.output));
    if (!job.start) out += "start = false\n";
    if (!job.variables.empty()) out += fmt::format("variables = {}\n", listed(job.variables));
    if (!job.environment.empty()) out += "[job.environment]\n";
    for (const proto::Variable& each : job.environment) {
      out += fmt::format("{} = {}\n", quoted(each.name), quoted(each.value));
    }
  }
  return out;
}

Result<std::vector<proto::JobDefinition>> parse_job_file(std::string_view text,
                                                         const std::string& file) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return fail(Code::kInvalid,
                fmt::format("{}:{}: {}", display_text(file), parsed.error().source().begin.line,
                            display_text(parsed.error().description())));
  }
  const auto wrong = [&](const toml::node& node, std::string_view key, const char* what) {
    return fail(Code::kInvalid, fmt::format("{}:{}: {}: {}", display_text(file),
                                            node.source().begin.line, display_text(key, 60), what));
  };
  std::vector<proto::JobDefinition> jobs;
  std::set<std::string> names;
  for (const auto& [key, node] : parsed.table()) {
    if (key.str() != "job") return wrong(node, key.str(), "there is no such key: write [[job]]");
    const toml::array* array = node.as_array();
    if (array == nullptr) return wrong(node, "job", "write [[job]], with two brackets");
    for (const toml::node& each : *array) {
      if (!each.is_table()) return wrong(each, "job", "write [[job]], with two brackets");
      GPUROTA_ASSIGN_OR_RETURN(auto job, JobReader(*each.as_table(), file).read());
      if (!names.insert(job.name).second) {
        return wrong(each, "name", "a job above has this name already");
      }
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

}  // namespace gpurota::cli
