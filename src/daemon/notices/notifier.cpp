#include "daemon/notices/notifier.h"

#include "base/log.h"
#include "base/make_room.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace gpurota::daemon {

std::string end_text(const ports::ProgramEnd& end) {
  std::string text;
  if (!end.started) {
    text = "not started";
  } else if (end.timed_out) {
    text = "killed when its time was over";
  } else if (end.signal != 0) {
    text = fmt::format("killed by signal {}", end.signal);
  } else {
    text = fmt::format("exit status {}", end.code);
  }
  if (!end.complaint.empty()) text += ": " + display_text(end.complaint, 200);
  return text;
}

bool Notifier::is_in_use() const {
  return parts_.runner != nullptr && !channels_of(parts_.config.notify).empty();
}

void Notifier::on_notice(const Notice& notice) {
  const auto& wanted = parts_.config.notify.events;
  if (!is_in_use() || std::find(wanted.begin(), wanted.end(), notice.kind) == wanted.end()) return;
  switch (rates_.admit(notice, parts_.loop.now(), parts_.config.notify.most_per_hour)) {
    case NoticeRates::Answer::kSend:
      return send(notice);
    case NoticeRates::Answer::kLater:
      return arm();
    case NoticeRates::Answer::kNever:
      log::warn("too many users have notices, dropping one", {{"uid", notice.to}});
  }
}

Result<void> Notifier::check_test(const Notice& notice) {
  if (!is_in_use()) {
    return fail(
        Code::kUnavailable,
        "this site notifies nobody: set command, mail or webhook in the section [notify] of "
        "gpurota.toml(5)");
  }
  const int most = parts_.config.notify.most_per_hour;
  const TimePoint now = parts_.loop.now();
  if (rates_.admit(notice, now, most) == NoticeRates::Answer::kSend) return {};
  return fail(Code::kLimit,
              fmt::format("this user has been sent {} tests in an hour: wait a while, or "
                          "raise most_per_hour in the section [notify]",
                          most));
}

std::size_t Notifier::test(const Notice& notice, const Tested& tested) {
  const auto channels = channels_of(parts_.config.notify);
  for (const Channel channel : channels) add(channel, {written(notice), tested});
  return channels.size();
}

proto::Notice Notifier::written(const Notice& notice) const {
  proto::Notice out;
  out.what = to_string(notice.kind);
  out.lease = notice.lease;
  out.user = parts_.processes.user_name(notice.to);
  out.uid = notice.to;
  out.gpus = notice.gpus;
  out.at = parts_.wall_clock();
  out.text = notice.text;
  if (!notice.reason.empty()) out.reason = notice.reason;
  if (notice.by) out.by = parts_.processes.user_name(*notice.by);
  return out;
}

void Notifier::send(const Notice& notice) {
  const proto::Notice letter = written(notice);
  for (const Channel channel : channels_of(parts_.config.notify)) add(channel, {letter, {}});
}

void Notifier::add(Channel channel, Letter letter) {
  Line& line = lines_[channel];
  const auto own = std::count_if(line.waiting.begin(), line.waiting.end(), [&](const Letter& each) {
    return each.notice.uid == letter.notice.uid;
  });
  if (own >= static_cast<int>(kMostWaitingOfUser)) return drop(channel, letter);
  if (line.waiting.size() >= kMostWaiting) {
    const auto owner_of = [](const Letter& each) { return each.notice.uid; };
    const auto who = who_makes_room(line.waiting, owner_of, letter.notice.uid);
    if (who == letter.notice.uid) return drop(channel, letter);
    const auto last = std::find_if(line.waiting.rbegin(), line.waiting.rend(),
                                   [&](const Letter& each) { return owner_of(each) == who; });
    drop(channel, *last);
    line.waiting.erase(std::next(last).base());
  }
  line.waiting.push_back(std::move(letter));
  go_on(channel);
}

void Notifier::drop(Channel channel, const Letter& letter) {
  if (lines_[channel].dropped++ == 0) {
    log::warn("notices come faster than they can be sent, dropping some",
              {{"channel", to_string(channel)}, {"uid", letter.notice.uid}});
  }
  // Post the result, as results of tests always come after test() has returned.
  if (letter.tested) {
    parts_.loop.post([tested = letter.tested, channel] {
      tested(channel, {.started = false, .complaint = "too many notices wait for this channel"});
    });
  }
}

void Notifier::go_on(Channel channel) {
  Line& line = lines_[channel];
  while (line.running < kMostAtOnce && !line.waiting.empty()) {
    const Letter letter = std::move(line.waiting.front());
    line.waiting.pop_front();
    ++line.running;
    const auto program = program_for(channel, parts_.config.notify, letter.notice);
    if (!program) {
      parts_.loop.post([this, channel, letter, why = program.error().message] {
        over(channel, letter, {.started = false, .complaint = why});
      });
      continue;
    }
    parts_.runner->run(*program, [this, channel, letter](const ports::ProgramEnd& end) {
      over(channel, letter, end);
    });
  }
  if (line.waiting.empty() && line.dropped > 0) {
    log::info("notices are sent as they come again",
              {{"channel", to_string(channel)}, {"dropped", std::exchange(line.dropped, 0)}});
  }
}

void Notifier::over(Channel channel, const Letter& letter, const ports::ProgramEnd& end) {
  --lines_[channel].running;
  if (letter.tested) {
    letter.tested(channel, end);
  } else {
    log_end(channel, end);
  }
  go_on(channel);
}

// A broken channel fails for all users. To keep the log short, it gets the first failure and then,
// every kLogPause, the number of failures.
void Notifier::log_end(Channel channel, const ports::ProgramEnd& end) {
  Line& line = lines_[channel];
  if (end.is_good()) {
    if (line.failures > 0) {
      log::info("notices can be sent again",
                {{"channel", to_string(channel)}, {"failed", line.failures}});
    }
    line.failures = line.unlogged = 0;
    return;
  }
  ++line.failures;
  ++line.unlogged;
  const TimePoint now = parts_.loop.now();
  if (line.failures > 1 && now - line.told_at < kLogPause) return;
  log::warn("a notice cannot be sent, continuing without it",
            {{"channel", to_string(channel)},
             {"error", end_text(end)},
             {"times", std::exchange(line.unlogged, 0)}});
  line.told_at = now;
}

void Notifier::arm() {
  timer_.reset();
  const auto due = rates_.next_due(parts_.config.notify.most_per_hour);
  if (!due) return;
  timer_ = parts_.loop.add_timer(*due, ports::Urgency::kHousekeeping, [this] {
    const auto this_timer = std::move(timer_);
    const int most = parts_.config.notify.most_per_hour;
    for (const Notice& notice : rates_.due(parts_.loop.now(), most)) send(notice);
    arm();
  });
}

}  // namespace gpurota::daemon
