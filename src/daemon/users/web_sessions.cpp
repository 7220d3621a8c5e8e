#include "daemon/users/web_sessions.h"

#include "base/same_secret.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace gpurota::daemon {
namespace {

// A secret as its owner presents it: a number to find the session by, and a part that nobody can
// guess.
struct Presented {
  std::uint32_t number = 0;
  std::string_view secret;
};

std::optional<Presented> parse_presented(std::string_view text) {
  Presented presented;
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + dot, presented.number);
  if (error != std::errc() || end != text.data() + dot) return std::nullopt;
  presented.secret = text.substr(dot + 1);
  return presented;
}

template <class Map, class Over>
void erase_those(Map& map, const Over& over) {
  for (auto it = map.begin(); it != map.end();)
    it = over(it->second) ? map.erase(it) : std::next(it);
}

}  // namespace

std::string web_session_text(WebSessionId id) { return fmt::format("W{}", id); }

std::uint32_t WebSessions::add_server(uid_t uid, std::string url) {
  servers_.emplace(++last_server_, Server{uid, std::move(url)});
  return last_server_;
}

std::uint32_t WebSessions::add_server_without_page(std::string why) {
  pageless_.emplace(++last_server_, std::move(why));
  return last_server_;
}

void WebSessions::refuse_server(std::string user) {
  refused_ = std::move(user);
  refused_at_ = parts_.loop.now();
}

void WebSessions::remove_server(std::uint32_t server) {
  servers_.erase(server);
  pageless_.erase(server);
  erase_those(links_, [server](const Link& link) { return link.server == server; });
  erase_those(sessions_, [server](const Entry& entry) { return entry.server == server; });
}

// Returns the newest server of the user.
std::optional<std::uint32_t> WebSessions::server_of(uid_t uid) const {
  const auto found = std::find_if(servers_.rbegin(), servers_.rend(),
                                  [uid](const auto& each) { return each.second.uid == uid; });
  return found == servers_.rend() ? std::nullopt : std::optional(found->first);
}

Result<void> WebSessions::check_server(uid_t uid) const {
  if (server_of(uid)) return {};
  return fail(Code::kDenied, "only the program that serves the web page may sign people in");
}

Result<std::string> WebSessions::make_secret() const {
  std::string secret = parts_.make_token();
  if (secret.empty()) return fail(Code::kUnavailable, "no random bytes can be had");
  return secret;
}

Error WebSessions::no_server() const {
  if (!pageless_.empty()) return {Code::kUnavailable, 0, pageless_.rbegin()->second};
  if (!refused_.empty() && parts_.loop.now() - refused_at_ < kRetries) {
    return {Code::kUnavailable, 0,
            fmt::format("gpurota-web runs as user '{}', who may not sign people in: only root, the "
                        "user of gpurotad and '{}' (web.user in gpurota.toml(5)) may",
                        refused_, parts_.config.web.user)};
  }
  return {Code::kNotFound, 0,
          "gpurota-web is not running, and without it there is no page: start it with 'systemctl "
          "start gpurota-web' (or 'gpurota-web', as the user of gpurotad); if it has ended, "
          "'systemctl status gpurota-web' says why"};
}

Result<std::string> WebSessions::make_link(uid_t uid) {
  if (!parts_.config.web.sign_in) {
    return fail(Code::kDenied,
                "this site lets nobody sign in at the web page: an administrator can allow it "
                "(web.sign_in in gpurota.toml(5))");
  }
  if (servers_.empty()) return tl::unexpected(no_server());
  remove_old();
  const auto is_theirs = [uid](const auto& each) { return each.second.uid == uid; };
  if (std::count_if(links_.begin(), links_.end(), is_theirs) >=
      static_cast<std::ptrdiff_t>(kMostLinksPerUser)) {
    links_.erase(std::find_if(links_.begin(), links_.end(), is_theirs));
  }
  if (links_.size() >= kMostOfAll) {
    return fail(Code::kLimit, "too many people are about to sign in: try again in two minutes");
  }
  GPUROTA_ASSIGN_OR_RETURN(std::string secret, make_secret());
  const auto& [server, where] = *servers_.rbegin();
  std::string url = fmt::format("{}#sign-in={}.{}", where.url, ++last_link_, secret);
  links_.emplace(last_link_, Link{uid, server, std::move(secret), parts_.loop.now() + kLinkLife});
  return url;
}

Result<std::uint32_t> WebSessions::find_link(uid_t server, std::string_view secret) {
  GPUROTA_TRY(check_server(server));
  remove_old();
  const auto presented = parse_presented(secret);
  const auto link = presented ? links_.find(presented->number) : links_.end();
  if (link == links_.end() || servers_.at(link->second.server).uid != server ||
      !is_same_secret(link->second.secret, presented->secret)) {
    return fail(
        Code::kDenied,
        "this link is not valid any more: each signs in once, within two minutes. 'gpurota web' "
        "prints another");
  }
  return link->first;
}

Result<uid_t> WebSessions::user_of_link(uid_t server, std::string_view secret) {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint32_t number, find_link(server, secret));
  return links_.at(number).uid;
}

Result<WebSessions::Opened> WebSessions::sign_in(uid_t server, std::string_view secret,
                                                 std::string from) {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint32_t number, find_link(server, secret));
  const Link used = std::move(links_.at(number));
  links_.erase(number);
  if (!parts_.config.web.sign_in) return fail(Code::kDenied, "this site lets nobody sign in");
  return open(used.server, used.uid, std::move(from), false);
}

Result<WebSessions::Opened> WebSessions::sign_in_by_proxy(uid_t server, uid_t uid,
                                                          std::string from) {
  const auto serving = server_of(server);
  if (!serving) return tl::unexpected(check_server(server).error());
  if (!parts_.config.web.accept_proxy_users) {
    return fail(Code::kDenied,
                "this site does not accept users that a server in front of gpurota-web names: see "
                "web.accept_proxy_users in gpurota.toml(5)");
  }
  if (parts_.users.is_administrator(uid)) {
    return fail(
        Code::kDenied,
        "a server in front of gpurota-web cannot sign administrators in: use 'gpurota web'");
  }
  remove_old();
  return open(*serving, uid, std::move(from), true);
}

// If the user has as many sessions as allowed, ends the session that has not been used for longest.
void WebSessions::make_room(uid_t uid) {
  std::vector<const Entry*> theirs;
  for (const auto& [id, entry] : sessions_) {
    if (entry.session.uid == uid) theirs.push_back(&entry);
  }
  if (theirs.size() < kMostSessionsPerUser) return;
  const Entry* oldest =
      *std::min_element(theirs.begin(), theirs.end(),
                        [](const Entry* a, const Entry* b) { return a->used_at < b->used_at; });
  sessions_.erase(oldest->session.id);
}

Result<WebSessions::Opened> WebSessions::open(std::uint32_t server, uid_t uid, std::string from,
                                              bool by_proxy) {
  make_room(uid);
  if (sessions_.size() >= kMostOfAll) {
    return fail(Code::kLimit, "too many people are signed in: try again later");
  }
  // The page keeps the secret in two halves, each of which must be a secret of its own.
  GPUROTA_ASSIGN_OR_RETURN(std::string secret, make_secret());
  GPUROTA_ASSIGN_OR_RETURN(const std::string second, make_secret());
  secret += second;
  Entry entry;
  const WallTime now = parts_.wall_clock();
  entry.session = {
      ++last_session_, uid, by_proxy, std::move(from), now, now, now + parts_.config.web.longest};
  entry.server = server;
  entry.secret = std::move(secret);
  entry.begun = entry.used_at = parts_.loop.now();
  const Entry& added = sessions_.emplace(last_session_, std::move(entry)).first->second;
  sweep_later();
  return Opened{fmt::format("{}.{}", added.session.id, added.secret), added.session};
}

bool WebSessions::is_over(const Entry& entry) const {
  const config::Web& web = parts_.config.web;
  const TimePoint now = parts_.loop.now();
  if (now - entry.used_at >= web.idle || now - entry.begun >= web.longest) return true;
  return entry.session.by_proxy
             ? !web.accept_proxy_users || parts_.users.is_administrator(entry.session.uid)
             : !web.sign_in;
}

const WebSessions::Session* WebSessions::use(uid_t server, std::string_view token) {
  const auto presented = parse_presented(token);
  const auto found = presented ? sessions_.find(presented->number) : sessions_.end();
  if (found == sessions_.end() || !is_same_secret(found->second.secret, presented->secret))
    return nullptr;
  Entry& entry = found->second;
  if (servers_.at(entry.server).uid != server) return nullptr;
  // Reads the user's groups again if they are old: they decide whether the user is an
  // administrator.
  parts_.users.greet(entry.session.uid, {});
  if (is_over(entry)) {
    sessions_.erase(found);
    return nullptr;
  }
  entry.used_at = parts_.loop.now();
  entry.session.used = parts_.wall_clock();
  return &entry.session;
}

std::vector<WebSessions::Session> WebSessions::list() {
  remove_old();
  std::vector<Session> all;
  for (const auto& [id, entry] : sessions_) {
    all.push_back(entry.session);
    // A change of web.longest applies to existing sessions, too.
    const auto left = entry.begun + parts_.config.web.longest - parts_.loop.now();
    all.back().ends = parts_.wall_clock() + std::chrono::duration_cast<WallTime::duration>(left);
  }
  return all;
}

void WebSessions::end_all_of(uid_t uid) {
  erase_those(sessions_, [uid](const Entry& entry) { return entry.session.uid == uid; });
  erase_those(links_, [uid](const Link& link) { return link.uid == uid; });
}

void WebSessions::remove_old() {
  erase_those(sessions_, [this](const Entry& entry) { return is_over(entry); });
  erase_those(links_, [now = parts_.loop.now()](const Link& link) { return now >= link.until; });
}

void WebSessions::sweep_later() {
  if (timer_ || sessions_.empty()) return;
  timer_ = parts_.loop.add_timer(parts_.loop.now() + kSweep, ports::Urgency::kHousekeeping,
                                 [this] { sweep(); });
}

// Signs out users who have no account any more, or may not connect any more.
void WebSessions::sweep() {
  const auto running = std::move(timer_);
  remove_old();
  std::set<uid_t> users;
  // While the account database has not answered earlier questions, it gets no new ones.
  for (const auto& [id, entry] : sessions_) {
    if (asked_ == 0) users.insert(entry.session.uid);
  }
  for (const uid_t uid : users) {
    ++asked_;
    parts_.users.look_up(uid, [this, uid](const Result<ports::Account>& account) {
      --asked_;
      const bool unknown = !account && account.error().code == Code::kNotFound;
      if (unknown || (account && !parts_.users.may_connect(uid, *account))) end_all_of(uid);
    });
  }
  sweep_later();
}

}  // namespace gpurota::daemon
