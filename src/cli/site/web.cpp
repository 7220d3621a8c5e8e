// gpurota web: links for signing in to the web page, and the sessions that they begin.
#include "base/directory.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/run/lookup.h"
#include "cli/text/output.h"
#include "cli/text/time_text.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value;
}

// "127.0.0.1:9836" of "http://127.0.0.1:9836/#…".
std::string_view authority_of(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == url.npos) return "";
  url.remove_prefix(begin + 3);
  return url.substr(0, url.find('/'));
}

bool is_loopback(std::string_view authority) {
  return authority.starts_with("127.") || authority.starts_with("localhost:") ||
         authority.starts_with("[::1]");
}

// How a user who came by ssh can open the page: only this machine can reach a loopback address.
std::string ssh_hint(std::string_view url) {
  const std::string_view authority = authority_of(url);
  const std::size_t colon = authority.rfind(':');
  if (colon == authority.npos || !is_loopback(authority)) {
    return "You are here by ssh: open the link on your own computer.\n";
  }
  return fmt::format(
      "You are here by ssh. On your own computer, first: ssh -N -L {}:{} {}\nthen open the link "
      "there.\n",
      authority.substr(colon + 1), authority, host_name());
}

// A page that redirects to the link: every user of the machine can see the arguments of a program,
// but only the owner can read this file.
std::string leading_page(const std::string& url) {
  return fmt::format(
      "<!doctype html><meta charset=utf-8><title>gpurota</title>\n"
      "<meta http-equiv=refresh content=\"0;url={0}\">\n<a href=\"{0}\">Sign in</a>\n",
      url);
}

// If the daemon says that gpurota-web is not running, the reason may be that it is not installed.
int no_link(Error error) {
  if (error.code == Code::kNotFound && !is_installed("gpurota-web")) {
    error.message =
        "gpurota-web, which serves the page, is not installed: install its package "
        "(gpurota-web_*.deb of './dev package'; a build with GPUROTA_WEB=OFF does not make it), "
        "then 'systemctl start gpurota-web'";
  }
  return failed(error);
}

// The result of xdg-open. If it keeps running, a browser runs.
Result<void> wait_for_opener(pid_t child) {
  constexpr int kPollMs = 20, kPolls = 75;
  int status = 0;
  for (int i = 0; i < kPolls; ++i) {
    if (::waitpid(child, &status, WNOHANG) != 0) break;
    (void)::poll(nullptr, 0, kPollMs);
  }
  if (!WIFEXITED(status)) return fail(Code::kIo, "xdg-open was killed");
  if (WEXITSTATUS(status) == 0) return {};
  constexpr int kNoBrowser = 3;  // xdg-open(1)
  return fail(Code::kNotFound,
              WEXITSTATUS(status) == kNoBrowser
                  ? std::string("xdg-open found no browser")
                  : fmt::format("xdg-open failed (exit code {})", WEXITSTATUS(status)));
}

Result<void> start_opener(std::string file) {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) {
    return fail(Code::kIo, "xdg-open cannot be started: no memory");
  }
  for (const int fd : {0, 1, 2}) {
    (void)::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  std::string program = "xdg-open";
  char* const arguments[] = {program.data(), file.data(), nullptr};
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, ::environ);
  (void)::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return fail(Code::kNotFound, "xdg-open is not installed (Debian's package xdg-utils)");
  }
  if (error != 0) return fail_errno("xdg-open cannot be started", error);
  return wait_for_opener(child);
}

// Asks a browser to open the link; the error says why that was impossible.
Result<void> open_browser(const std::string& url) {
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) {
    return fail(Code::kNotFound,
                "there is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set)");
  }
  const char* const folder = std::getenv("XDG_RUNTIME_DIR");
  if (!folder || !*folder) {
    return fail(Code::kNotFound,
                "XDG_RUNTIME_DIR is not set, the folder in which the link is handed over");
  }
  // A folder of another user, after a su, is refused: that user could read the link.
  GPUROTA_TRY(check_own_place(folder));
  if (url.find_first_of("\"<>&") != url.npos) {
    return fail(Code::kInvalid, "its address has characters that a page cannot lead to");
  }
  const std::string file = std::string(folder) + "/gpurota-web.html";
  GPUROTA_TRY(replace_file(file, leading_page(url), 0600));
  return start_opener(file);
}

std::string sessions_table(const proto::ListWebSessions::Reply& reply) {
  if (reply.sessions.empty()) return "nobody is signed in at the web page\n";
  const WallTime time = now();
  Table table({{"SESSION"}, {"USER"}, {"FROM"}, {"SINCE"}, {"USED", true}, {"ENDS"}});
  for (const proto::WebSession& each : reply.sessions) {
    table.add({{each.session_id},
               {each.user},
               {each.from.value_or("-") + (each.by_proxy ? " (proxy)" : "")},
               {clock_text(each.since, time)},
               {span_text(time - each.used) + " ago"},
               {clock_text(each.ends, time)}});
  }
  return table.render(terminal_layout());
}

int list(client::Connection& connection, bool json) {
  const auto reply = connection.call(proto::ListWebSessions{});
  if (!reply) return failed(reply.error());
  return shown(json ? proto::document_json<proto::ListWebSessions>(*reply)
                    : sessions_table(*reply));
}

int end(const Context& context, client::Connection& connection, const std::string& which) {
  proto::EndWebSessions call;
  if (which != "all") call.session_id = which;
  const auto reply = connection.call(call);
  if (!reply) return failed(reply.error());
  std::string ended;
  for (const std::string& id : reply->session_ids) ended += (ended.empty() ? "" : ", ") + id;
  return done(context, ended.empty() ? "you are not signed in" : "ended " + ended);
}

}  // namespace

int web(const Context& context, const WebOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  if (options.list) return list(*connection, options.json);
  if (options.end) return end(context, *connection, *options.end);
  const auto link = connection->call(proto::MakeWebLink{});
  if (!link) return no_link(link.error());
  const std::string url = display_text(link->url, 400);
  const bool remote = is_set("SSH_CONNECTION");
  std::string text = url + "\n";
  if (!context.quiet) {
    if (remote) text += ssh_hint(url);
    text += fmt::format("It signs you in once, within {}.\n",
                        duration_text(std::chrono::seconds(link->seconds)));
  }
  const int status = shown(text);
  if (options.no_open || remote) return status;
  const auto opened = open_browser(url);
  if (!opened && !context.quiet) {
    complain(display_lines("no browser was opened: " + opened.error().message +
                           "; open the link yourself"));
  }
  return status;
}

}  // namespace gpurota::cli
