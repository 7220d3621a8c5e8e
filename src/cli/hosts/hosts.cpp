// Commands for other machines: status, queue and report of several in one table; run and top on
// one.
#include "base/fd.h"
#include "base/read_all.h"
#include "base/text.h"
#include "cli/args/host_args.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/history/history_views.h"
#include "cli/hosts/answers.h"
#include "cli/hosts/choose.h"
#include "cli/hosts/there.h"
#include "cli/queue/queue_text.h"
#include "cli/status/status_view.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>

namespace gpurota::cli {
namespace {

constexpr std::size_t kMostFileBytes = 64 << 10;

Result<std::vector<std::string>> read_hosts_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  const auto text = fd ? read_all(fd.get(), kMostFileBytes + 1) : std::nullopt;
  if (!text) return fail_errno("--hosts-file: cannot read " + display_text(path), errno);
  if (text->size() > kMostFileBytes) {
    return fail(Code::kInvalid,
                fmt::format("--hosts-file: {} is larger than 64 KiB", display_text(path)));
  }
  return parse_hosts(*text, path);
}

// The named hosts, then those of the file.
Result<std::vector<std::string>> all_hosts(const HostsOptions& options) {
  std::vector<std::string> hosts = options.hosts;
  if (options.file) {
    GPUROTA_ASSIGN_OR_RETURN(const auto more, read_hosts_file(*options.file));
    hosts.insert(hosts.end(), more.begin(), more.end());
  }
  GPUROTA_ASSIGN_OR_RETURN(hosts, distinct_hosts(hosts));
  if (!hosts.empty()) return hosts;
  return fail(Code::kInvalid, fmt::format("--hosts-file: {} names no host",
                                          display_text(options.file.value_or(""))));
}

// Runs `gpurota COMMAND --json` on each host.
std::vector<HostAnswer> ask(const std::vector<std::string>& hosts, const std::string& command,
                            const std::vector<std::string>& options) {
  std::vector<std::string> words = {"gpurota", command, "--json"};
  words.insert(words.end(), options.begin(), options.end());
  return ask_hosts(hosts, remote_line(words));
}

// Prints which machines have not answered. Returns kExitFailed if there is such a machine.
int complain_of(const std::vector<HostAnswer>& answers) {
  int code = kExitOk;
  for (const HostAnswer& each : answers) {
    if (each.text) continue;
    complain(trouble_line(each));
    code = kExitFailed;
  }
  return code;
}

template <class Method>
using Replies = std::vector<std::pair<std::string, typename Method::Reply>>;

// `text` makes the text from the answers of the machines that answered.
template <class Method, class Text>
int show(const HostsOptions& options, const std::vector<std::string>& hosts, const Text& text) {
  std::vector<HostAnswer> answers = ask(hosts, options.command, options.options);
  const Replies<Method> replies = parse_all<Method>(answers);
  int code = kExitOk;
  if (options.json) {
    code = shown(answers_json(options.command, answers));
  } else if (!replies.empty()) {
    code = shown(text(views_of<Method>(replies)));
  }
  return std::max(code, complain_of(answers));
}

Result<std::string> working_folder() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (!error) return here.string();
  return fail(Code::kIo, "the current folder is gone or closed to you (" + error.message() +
                             "): start in one that both machines have");
}

// The host where the program would start first.
Result<std::string> choose(const Context& context, const LeaseWishes& wishes,
                           const std::vector<std::string>& hosts) {
  std::vector<HostAnswer> answers = ask(hosts, "status", {});
  const Replies<proto::Status> replies = parse_all<proto::Status>(answers);
  (void)complain_of(answers);
  if (replies.empty()) return fail(Code::kUnavailable, "none of the hosts can be asked");
  const auto chosen = choose_host(wishes, views_of<proto::Status>(replies));
  if (!chosen) {
    return fail(Code::kNoGpu,
                "no host that has answered has the GPUs that are asked for: see gpurota status "
                "--host …");
  }
  if (!context.quiet) complain("on " + *chosen);
  return *chosen;
}

Result<RemoteRun> run_of(const Context& context, const HostsOptions& options,
                         const std::vector<std::string>& hosts) {
  RemoteRun run{.host = hosts.front(), .folder = {}, .terminal = has_terminal(), .arguments = {}};
  GPUROTA_ASSIGN_OR_RETURN(run.folder, working_folder());
  if (hosts.size() > 1) {
    GPUROTA_ASSIGN_OR_RETURN(run.host, choose(context, *options.run, hosts));
  }
  run.arguments = {"run"};
  run.arguments.insert(run.arguments.end(), options.options.begin(), options.options.end());
  run.arguments.emplace_back("--");
  run.arguments.insert(run.arguments.end(), options.run->command.begin(),
                       options.run->command.end());
  return run;
}

int run_on(const Context& context, const HostsOptions& options,
           const std::vector<std::string>& hosts) {
  const auto run = run_of(context, options, hosts);
  if (run) return run_there(*run);
  complain(display_lines(run.error().message));
  return kExitRunFailed;
}

int top_on(const HostsOptions& options, const std::string& host) {
  RemoteRun there{.host = host, .folder = {}, .terminal = has_terminal(), .arguments = {"top"}};
  there.arguments.insert(there.arguments.end(), options.options.begin(), options.options.end());
  const int code = run_there(there);
  return code == kExitRunFailed ? kExitFailed : code;
}

}  // namespace

int hosts(const Context& context, const HostsOptions& options) {
  const auto hosts = all_hosts(options);
  if (!hosts) return misused(hosts.error());
  if (options.run) return run_on(context, options, *hosts);
  if (options.command == "top") return top_on(options, hosts->front());
  const Layout layout = terminal_layout();
  if (options.command == "queue") {
    return show<proto::ListRequests>(
        options, *hosts, [&](const auto& views) { return hosts_queue_text(views, layout, now()); });
  }
  if (options.command == "report") {
    return show<proto::Report>(options, *hosts, [&](const auto& views) {
      return options.csv ? hosts_report_csv(views) : hosts_report_text(views, layout);
    });
  }
  return show<proto::Status>(options, *hosts, [&](const auto& views) {
    return hosts_picture(views, options.form, layout, now());
  });
}

}  // namespace gpurota::cli
