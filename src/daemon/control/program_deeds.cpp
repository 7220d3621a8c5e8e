#include "daemon/control/program_deeds.h"

#include "base/text.h"
#include "daemon/notices/lease_notices.h"
#include "daemon/notices/notice_text.h"
#include "daemon/notices/notifier.h"

#include <fmt/format.h>

#include <utility>

namespace gpurota::daemon {

ProgramDeed::ProgramDeed(const CallContext& parts, uid_t caller, const char* what,
                         const Supervised& program, const std::optional<std::string>& reason)
    : parts_(parts),
      caller_(caller),
      what_(what),
      owner_(program.uid),
      user_(program.user),
      name_(program.spec.name),
      command_(display_command(program.spec.command, 200)),
      reason_(reason.value_or("")) {}

std::string ProgramDeed::by() const {
  if (own()) return {};
  return "by " + author_text(parts_.processes, caller_) + said_text(reason_);
}

void ProgramDeed::tell(const std::string& did, NoticeKind kind) const {
  if (own()) return;
  const std::string author = author_text(parts_.processes, caller_);
  Recorder::Event event;
  event.type = what_ == "job" ? proto::EventType::kJobChanged : proto::EventType::kFillerChanged;
  event.uid = owner_;
  event.message = fmt::format("{} {} a {} of {}{}", author, did, what_, display_text(user_, 32),
                              said_text(reason_));
  event.detail = fmt::format("{}: {}", display_text(name_, 64), command_);
  parts_.recorder.record(std::move(event));
  Notice notice{.kind = kind, .to = owner_};
  notice.text = program_text(author, did, what_, name_, reason_);
  notice.reason = reason_;
  notice.by = caller_;
  parts_.notifier.on_notice(notice);
}

}  // namespace gpurota::daemon
