#include "daemon/notices/channels.h"

#include "base/text.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace gpurota::daemon {
namespace {

// Whether a mail program takes the name for one address, not for an option or for several
// addresses. Refuses a number, which stands for an unknown name.
bool is_plain_name(const std::string& name) {
  const bool is_number = name.find_first_not_of("0123456789") == name.npos;
  return !is_number && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '-';
         });
}

Result<ports::Program> mail_for(const config::Notify& site, const proto::Notice& notice) {
  if (!is_plain_name(notice.user)) {
    return fail(Code::kInvalid, fmt::format("no mail can be sent to the user \"{}\"",
                                            display_text(notice.user, 40)));
  }
  const std::string to =
      site.mail_domain.empty() ? notice.user : notice.user + "@" + site.mail_domain;
  std::string subject = notice.what;
  std::replace(subject.begin(), subject.end(), '_', ' ');
  if (notice.lease) subject = fmt::format("{}: {}", to_string(*notice.lease), subject);
  // Auto-Submitted (RFC 3834) prevents automatic replies.
  std::string text = fmt::format(
      "To: {}\nSubject: gpurota: {}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
      "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{}\n",
      to, subject, notice.text);
  return ports::Program{{site.sendmail, "-i", to}, std::move(text), site.user, site.time_limit};
}

// A string of curl's configuration file.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"\n";
}

ports::Program webhook_for(const config::Notify& site, const proto::Notice& notice) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(site.time_limit);
  std::string text = fmt::format(
      "silent\nshow-error\nfail\nproto = \"=http,https\"\nmax-time = {}\noutput = /dev/null\n",
      seconds.count());
  text += "url = " + quoted(site.webhook);
  text += "header = " + quoted("Content-Type: application/json");
  for (const std::string& header : site.webhook_headers) text += "header = " + quoted(header);
  text += "data-raw = " + quoted(proto::notice_json(notice));
  // -q: do not read a .curlrc.
  return {{"/usr/bin/curl", "-q", "--config", "-"}, std::move(text), site.user, site.time_limit};
}

}  // namespace

const char* to_string(Channel channel) {
  switch (channel) {
    case Channel::kCommand:
      return "command";
    case Channel::kMail:
      return "mail";
    case Channel::kWebhook:
      return "webhook";
  }
  return "";
}

std::vector<Channel> channels_of(const config::Notify& site) {
  std::vector<Channel> channels;
  if (!site.command.empty()) channels.push_back(Channel::kCommand);
  if (site.mail) channels.push_back(Channel::kMail);
  if (!site.webhook.empty()) channels.push_back(Channel::kWebhook);
  return channels;
}

Result<ports::Program> program_for(Channel channel, const config::Notify& site,
                                   const proto::Notice& notice) {
  if (channel == Channel::kMail) return mail_for(site, notice);
  if (channel == Channel::kWebhook) return webhook_for(site, notice);
  return ports::Program{site.command, proto::notice_json(notice), site.user, site.time_limit};
}

}  // namespace gpurota::daemon
