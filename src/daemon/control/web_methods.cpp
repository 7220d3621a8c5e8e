#include "daemon/control/web_methods.h"

#include "base/log.h"
#include "daemon/control/calls.h"
#include "proto/codec.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

// The message of a stream, set when the account database has answered. The stream may have ended by
// then.
struct Answered {
  std::optional<std::string> text;
  bool gone = false;
};

// A stream of one answer, which is sent as soon as it is known.
class LateAnswer : public AnswerStream {
 public:
  explicit LateAnswer(std::function<void()> wake_streams)
      : wake_streams_(std::move(wake_streams)) {}
  ~LateAnswer() override { answered_->gone = true; }

  std::optional<std::string> next() override {
    if (!std::exchange(begun_, true)) begin();
    if (!answered_->text || std::exchange(told_, true)) return std::nullopt;
    return answered_->text;
  }
  bool over() const override { return told_; }

 protected:
  virtual void begin() = 0;
  // Calls `answer` when the account is known, and sends the text that it returns. If this stream
  // has ended by then, `answer` is not called and nothing is sent.
  void look_up(Users& users, uid_t uid,
               std::function<std::string(const Result<ports::Account>&)> answer) {
    users.look_up(uid, [answered = answered_, wake = wake_streams_,
                        answer = std::move(answer)](const Result<ports::Account>& account) {
      if (answered->gone) return;
      answered->text = answer(account);
      wake();
    });
  }
  void tell(std::string text) { answered_->text = std::move(text); }

 private:
  std::function<void()> wake_streams_;
  std::shared_ptr<Answered> answered_ = std::make_shared<Answered>();
  bool begun_ = false, told_ = false;
};

std::string error_text(const Error& error) { return proto::error_json(proto::wire_error(error)); }

// A gpurota-web without a page sends one of these words in place of its address. The sentence is
// for users.
constexpr std::pair<std::string_view, const char*> kWithoutPage[] = {
    {"no-page:not-built",
     "gpurota-web runs, but was built without the page, so there is nothing to sign in at: install "
     "one with the page, which './dev package' makes where npm and a network are"},
    {"no-page:off",
     "gpurota-web runs with '--page none', so there is no page to sign in at: an administrator can "
     "start it with --page totals, names or signed-in"}};
const char* why_without_page(std::string_view url) {
  for (const auto& [word, sentence] : kWithoutPage) {
    if (word == url) return sentence;
  }
  return nullptr;
}

// As long as this stream exists, its client serves the page, or runs without one.
class Serving final : public LateAnswer {
 public:
  struct Parts {
    WebSessions& sessions;
    Users& users;
    const config::Config& config;
    std::function<void()> wake_streams;
  };
  Serving(Parts parts, uid_t uid, std::string url)
      : LateAnswer(parts.wake_streams), parts_(parts), uid_(uid), url_(std::move(url)) {}
  ~Serving() override {
    if (server_) parts_.sessions.remove_server(*server_);
  }
  bool over() const override { return LateAnswer::over() && !server_; }

 private:
  void begin() override {
    if (uid_ == 0 || uid_ == ::geteuid()) return tell(accept());
    look_up(parts_.users, uid_, [this](const Result<ports::Account>& account) {
      if (account && account->name == parts_.config.web.user) return accept();
      if (!why_without_page(url_)) complain(account);
      return error_text(
          {Code::kDenied, 0,
           "only root and the user '" + parts_.config.web.user +
               "' may sign people in at a web page: see web.user in gpurota.toml(5)"});
    });
  }
  void complain(const Result<ports::Account>& account) {
    log::warn("a program wants to sign people in at a web page and may not", {{"uid", uid_}});
    parts_.sessions.refuse_server(account ? account->name : std::to_string(uid_));
  }
  std::string accept() {
    const char* const why = why_without_page(url_);
    server_ =
        why ? parts_.sessions.add_server_without_page(why) : parts_.sessions.add_server(uid_, url_);
    return proto::reply_json<proto::ServeWeb>({}, true);
  }

  Parts parts_;
  uid_t uid_;
  std::string url_;
  std::optional<std::uint32_t> server_;
};

// Answers for a user whom the server vouches for, once the account of that user is known.
class Vouched final : public LateAnswer {
 public:
  using Answer = std::function<std::string(const Result<ports::Account>&)>;
  Vouched(std::function<void()> wake_streams, Users& users, uid_t uid, Answer answer)
      : LateAnswer(std::move(wake_streams)), users_(users), uid_(uid), answer_(std::move(answer)) {}

 private:
  void begin() override { look_up(users_, uid_, answer_); }

  Users& users_;
  uid_t uid_;
  Answer answer_;
};

// A URL that is safe to print on terminals and to open in browsers.
bool is_page_url(std::string_view url) {
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  return web && url.ends_with('/') &&
         std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 127 && c != '#'; });
}

Outcome streamed(std::string otherwise, std::shared_ptr<AnswerStream> stream) {
  Outcome outcome;
  outcome.answer = std::move(otherwise);
  outcome.stream = std::move(stream);
  return outcome;
}

std::string needs_more() {
  return error_text({Code::kInvalid, 0, "the answer may come late: call this with `more`"});
}

}  // namespace

proto::WebSession WebMethods::describe(const Caller& caller,
                                       const WebSessions::Session& session) const {
  proto::WebSession shown;
  shown.session_id = web_session_text(session.id);
  shown.uid = session.uid;
  shown.user = parts_.views.user_name(session.uid);
  shown.since = session.since;
  shown.used = session.used;
  shown.ends = session.ends;
  if (!session.from.empty()) shown.from = session.from;
  shown.by_proxy = session.by_proxy;
  shown.current = caller.session == session.id;
  return shown;
}

std::optional<Caller> WebMethods::caller_of(const Caller& server, std::string_view token) const {
  const WebSessions::Session* const session = parts_.sessions.use(server.uid, token);
  if (!session) return std::nullopt;
  return Caller{server.process, session->uid, session->id};
}

Outcome WebMethods::on(const Caller& caller, const proto::ServeWeb& call) {
  if (!is_page_url(call.url) && !why_without_page(call.url)) {
    return refused({Code::kInvalid, 0,
                    "the page's address is http://HOST:PORT/ or https://…/; without a page it is "
                    "no-page:not-built or no-page:off"});
  }
  return streamed(needs_more(),
                  std::make_shared<Serving>(Serving::Parts{parts_.sessions, parts_.users,
                                                           parts_.config, parts_.wake_streams},
                                            caller.uid, call.url));
}

Outcome WebMethods::on(const Caller& caller, const proto::MakeWebLink&) {
  auto link = parts_.sessions.make_link(caller.uid);
  if (!link) return refused(link.error());
  return replied<proto::MakeWebLink>(
      {.url = std::move(*link), .seconds = WebSessions::kLinkLife.count()});
}

Outcome WebMethods::on(const Caller& caller, const proto::GetWebLink& call) {
  const auto uid = parts_.sessions.user_of_link(caller.uid, call.secret);
  if (!uid) return refused(uid.error());
  return replied<proto::GetWebLink>({.uid = *uid,
                                     .user = parts_.views.user_name(*uid),
                                     .administrator = parts_.views.is_administrator(*uid)});
}

Outcome WebMethods::on(const Caller& caller, const proto::SignIn& call) {
  auto opened = parts_.sessions.sign_in(caller.uid, call.secret, call.from.value_or(""));
  if (!opened) return refused(opened.error());
  const WebSessions::Session& session = opened->session;
  parts_.recorder.on_call({session.uid, caller.process.pid, session.id}, "SignIn", {}, {});
  const Caller as{caller.process, session.uid, session.id};
  return replied<proto::SignIn>({.token = std::move(opened->token),
                                 .session = describe(as, session),
                                 .administrator = parts_.views.is_administrator(session.uid)});
}

Outcome WebMethods::on(const Caller& caller, const proto::SignInByProxy& call) {
  if (auto may = parts_.sessions.check_server(caller.uid); !may) return refused(may.error());
  auto answer = [this, caller, call](const Result<ports::Account>& account) {
    if (!account) return error_text(account.error());
    if (!parts_.users.may_connect(call.uid, *account)) {
      return error_text({Code::kDenied, 0, account->name + " may not use gpurota on this machine"});
    }
    auto opened = parts_.sessions.sign_in_by_proxy(caller.uid, call.uid, call.from.value_or(""));
    if (!opened) return error_text(opened.error());
    const Caller as{caller.process, call.uid, opened->session.id};
    parts_.recorder.on_call({as.uid, as.process.pid, as.session}, "SignInByProxy", {}, {});
    return proto::reply_json<proto::SignInByProxy>(
        {.token = std::move(opened->token), .session = describe(as, opened->session)});
  };
  return streamed(needs_more(), std::make_shared<Vouched>(parts_.wake_streams, parts_.users,
                                                          call.uid, std::move(answer)));
}

Outcome WebMethods::on(const Caller& caller, const proto::ListWebSessions&) {
  proto::ListWebSessions::Reply reply;
  const bool all = parts_.views.is_administrator(caller.uid);
  for (const WebSessions::Session& session : parts_.sessions.list()) {
    if (all || session.uid == caller.uid) reply.sessions.push_back(describe(caller, session));
  }
  return replied<proto::ListWebSessions>(reply);
}

Outcome WebMethods::on(const Caller& caller, const proto::EndWebSessions& call) {
  proto::EndWebSessions::Reply reply;
  const auto sessions = parts_.sessions.list();
  const bool administrator = parts_.views.is_administrator(caller.uid);
  for (const WebSessions::Session& session : sessions) {
    const std::string id = web_session_text(session.id);
    const bool own = session.uid == caller.uid;
    const bool meant = call.session_id  ? id == *call.session_id && (own || administrator)
                       : caller.session ? session.id == *caller.session
                                        : own;
    if (!meant) continue;
    parts_.sessions.end(session.id);
    reply.session_ids.push_back(id);
  }
  if (call.session_id && reply.session_ids.empty()) {
    return refused({Code::kNotFound, 0,
                    "you have no session '" + display_text(*call.session_id, 20) +
                        "' ('gpurota web --list' shows yours)"});
  }
  return replied<proto::EndWebSessions>(reply);
}

}  // namespace gpurota::daemon
