#include "daemon/tenants/lease_answers.h"

#include <cstring>
#include <utility>

namespace gpurota::daemon {

bool LeaseAnswers::answer(TenantSession& session, const gpurota_msg_automatic& question) {
  if (session.unsaid) return false;
  const AutomaticLeases::Answer found =
      question.lease == 0 && question.token[0] == '\0'
          ? parts_.automatic.ask(session.peer, read_wish(question))
          : parts_.automatic.join(session.peer, LeaseId{question.lease},
                                  {question.token, sizeof question.token});
  if (found.later) {
    // The library asks again, for as long as it is configured to wait for a daemon.
    parts_.sessions.end(session, "");
    return true;
  }
  if (found.walks) {
    session.unsettled = question;
    return true;
  }
  if (found.unread) {
    check_again(session, question);
    return true;
  }
  const ports::Durability* const disk = parts_.durability;
  if (found.made && disk && disk->made() > disk->told()) unsettled_[found.lease] = disk->made();
  auto answer = make_message<gpurota_msg_lease>(GPUROTA_MSG_LEASE, question.header.seq);
  answer.version = GPUROTA_WIRE_VERSION;
  answer.status = found.status;
  answer.lease = found.lease.value;
  found.token.copy(answer.token, sizeof answer.token);
  // The other fields are zero already.
  found.visible.copy(answer.visible, sizeof answer.visible - 1);
  found.why.copy(answer.why, sizeof answer.why - 1);
  return tell(session, answer);
}

// The program gets its lease only when a loss of power cannot undo the lease, as for every lease.
bool LeaseAnswers::tell(TenantSession& session, const gpurota_msg_lease& answer) {
  const auto unsettled = unsettled_.find(LeaseId{answer.lease});
  if (unsettled == unsettled_.end()) return send_message(session.fd.get(), answer);
  session.unsaid = {unsettled->second, answer};
  unsaid_.insert(&session);
  return true;
}

// A lease that the disk failed to store exists until the machine loses power, so the program need
// not know of the failure.
void LeaseAnswers::on_durability(const ports::Durability::News& news) {
  std::erase_if(unsettled_, [&](const auto& lease) { return lease.second <= news.upto; });
  for (auto it = unsaid_.begin(); it != unsaid_.end();) {
    TenantSession& session = **it;
    if (session.unsaid->upto > news.upto) {
      ++it;
      continue;
    }
    it = unsaid_.erase(it);
    const gpurota_msg_lease answer = session.unsaid->answer;
    session.unsaid.reset();
    if (!send_message(session.fd.get(), answer)) {
      parts_.sessions.end(session, "it does not take its answer");
    }
  }
}

bool LeaseAnswers::go_on(TenantSession& session) {
  const gpurota_msg_automatic question = *session.unsettled;
  session.unsettled.reset();
  return session.tenant || answer(session, question);
}

// The repeated check waits for its user's turn, like every question of a program.
void LeaseAnswers::check_again(TenantSession& session, const gpurota_msg_automatic& question) {
  session.asking = parts_.loop.add_timer(parts_.loop.now() + AutomaticLeases::kUnreadPeriod,
                                         ports::Urgency::kClient, [this, &session, question] {
                                           if (session.tenant) return;
                                           session.unsettled = question;
                                           parts_.sessions.go_on_soon(session);
                                         });
}

}  // namespace gpurota::daemon
