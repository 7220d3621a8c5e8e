// gpurota web: links that sign in at the web page, and the sessions that come of them.
#include "base/directory.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/text/output.h"
#include "cli/text/time_text.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <spawn.h>
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

// Of a page that only this machine can reach, to somebody who sits at another.
std::string ssh_hint(std::string_view url) {
  const std::string_view authority = authority_of(url);
  const std::size_t colon = authority.rfind(':');
  if (colon == authority.npos) return "";
  return fmt::format(
      "You are here by ssh. On your own computer, first: ssh -N -L {}:{} {}\nthen open the link "
      "there.\n",
      authority.substr(colon + 1), authority, host_name());
}

// A page that leads on to the link: arguments of a program can be seen by every user of the
// machine, this file only by its owner.
std::string leading_page(const std::string& url) {
  return fmt::format(
      "<!doctype html><meta charset=utf-8><title>gpurota</title>\n"
      "<meta http-equiv=refresh content=\"0;url={0}\">\n<a href=\"{0}\">Sign in</a>\n",
      url);
}

// Whether a browser was asked to open it. Where that cannot be, the link is printed all the same.
bool open_browser(const std::string& url) {
  const char* const folder = std::getenv("XDG_RUNTIME_DIR");
  const bool safe = url.find_first_of("\"<>&") == url.npos;
  if (!folder || !safe || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))) return false;
  // That of another user, after a su: the link would be theirs.
  if (!check_own_place(folder)) return false;
  const std::string file = std::string(folder) + "/gpurota-web.html";
  if (!replace_file(file, leading_page(url), 0600)) return false;
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return false;
  for (const int fd : {0, 1, 2}) {
    (void)::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  std::string program = "xdg-open", argument = file;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, ::environ);
  (void)::posix_spawn_file_actions_destroy(&actions);
  return error == 0;
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
  return table.render(terminal_look());
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
  if (!link) return failed(link.error());
  const std::string url = display_text(link->url, 400);
  const bool remote = is_set("SSH_CONNECTION");
  std::string text = url + "\n";
  if (!context.quiet) {
    if (remote && is_loopback(authority_of(url))) text += ssh_hint(url);
    text += fmt::format("It signs you in once, within {}.\n",
                        duration_text(std::chrono::seconds(link->seconds)));
  }
  const int status = shown(text);
  if (!options.no_open && !remote) (void)open_browser(url);
  return status;
}

}  // namespace gpurota::cli
