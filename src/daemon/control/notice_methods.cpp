#include "daemon/control/notice_methods.h"

#include "daemon/control/calls.h"
#include "daemon/notices/notifier.h"
#include "proto/codec.h"

#include <chrono>
#include <deque>
#include <utility>

namespace gpurota::daemon {
namespace {

// Results of channels that the stream has not sent yet. A result may come after the stream has
// ended.
struct TestAnswers {
  std::deque<proto::TestNotice::Reply> said;
  std::size_t open = 0;  // channels whose result is not known yet
};

class TestStream final : public AnswerStream {
 public:
  TestStream(Notifier& notifier, std::function<void()> wake_streams, Notice notice)
      : notifier_(notifier), wake_streams_(std::move(wake_streams)), notice_(std::move(notice)) {}

  std::optional<std::string> next() override {
    if (!std::exchange(begun_, true)) begin();
    if (answers_->said.empty()) return std::nullopt;
    const proto::TestNotice::Reply reply = std::move(answers_->said.front());
    answers_->said.pop_front();
    return proto::reply_json<proto::TestNotice>(reply, !over());
  }
  bool over() const override { return begun_ && answers_->said.empty() && answers_->open == 0; }

 private:
  void begin() {
    answers_->open = notifier_.test(notice_, [answers = answers_, wake = wake_streams_](
                                                 Channel channel, const ports::ProgramEnd& end) {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(end.took);
      answers->said.push_back({.channel = to_string(channel),
                               .sent = end.is_good(),
                               .took_ms = took.count(),
                               .detail = end_text(end)});
      --answers->open;
      wake();
    });
    // A reload has removed all channels since the call.
    if (answers_->open == 0) {
      answers_->said.push_back({.channel = "none", .detail = "no channel is named any more"});
    }
  }

  Notifier& notifier_;
  std::function<void()> wake_streams_;
  Notice notice_;
  bool begun_ = false;
  std::shared_ptr<TestAnswers> answers_ = std::make_shared<TestAnswers>();
};

}  // namespace

Outcome NoticeMethods::on(const Caller& caller, const proto::TestNotice& call) {
  const uid_t user = call.uid.value_or(caller.uid);
  if (user != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return refused({Code::kDenied, 0, "only administrators may send a test to somebody else"});
  }
  Notice notice{.kind = NoticeKind::kTest, .to = user};
  notice.text = "this is a test: you would be told of your leases in this way";
  notice.by = caller.uid;
  if (const auto may = parts_.notifier.check_test(notice); !may) return refused(may.error());
  Outcome outcome = replied<proto::TestNotice>(
      {.channel = "none",
       .detail = "nothing is sent: a test has several answers, call it with `more`"});
  // The notice is sent when the first answer is asked for.
  outcome.stream =
      std::make_shared<TestStream>(parts_.notifier, parts_.wake_streams, std::move(notice));
  return outcome;
}

}  // namespace gpurota::daemon
