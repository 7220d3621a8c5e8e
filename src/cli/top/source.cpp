#include "cli/top/source.h"

#include "cli/text/done_text.h"
#include "cli/text/output.h"

#include <fmt/format.h>

namespace gpurota::cli::topview {
namespace {

// The longest wait for an answer, in which keys are not handled. A slower daemon is shown as not
// answering, and the next calls wait only for kPatienceInTrouble.
constexpr client::milliseconds kPatienceToAsk{2000};
constexpr client::milliseconds kPatienceInTrouble{300};
// Long enough for the answer to a change: only the answer tells whether the change happened.
constexpr client::milliseconds kPatienceToChange{10000};

// A method that an older daemon does not have is skipped; a lost connection is an error.
template <class Method>
Result<void> ask_into(client::Connection& connection, const Method& call,
                      typename Method::Reply& reply, client::milliseconds patience) {
  auto answer = connection.call(call, patience);
  if (answer) {
    reply = std::move(*answer);
    return {};
  }
  const Code code = answer.error().code;
  if (code == Code::kGone || code == Code::kTimeout) return tl::unexpected(answer.error());
  return {};
}

Result<std::string> extend_lease(client::Connection& connection, const Action& action) {
  proto::Update call;
  call.lease_id = action.about.lease.value_or(LeaseId());
  call.seconds = action.seconds;
  GPUROTA_ASSIGN_OR_RETURN(const auto reply, connection.call(call, kPatienceToChange));
  return updated_text(reply.lease, now());
}

Result<std::string> release_lease(client::Connection& connection, LeaseId id) {
  proto::Release call;
  call.lease_id = id;
  GPUROTA_TRY(connection.call(call, kPatienceToChange));
  return "released " + to_string(id);
}

Result<std::string> cancel_request(client::Connection& connection, RequestId id) {
  proto::Cancel call;
  call.request_id = id;
  GPUROTA_TRY(connection.call(call, kPatienceToChange));
  return "cancelled " + to_string(id);
}

}  // namespace

Source::Source(const Context& context) : location_(context.location()), patience_(kPatienceToAsk) {}

Result<Answers> Source::ask_all() {
  if (!connection_) {
    GPUROTA_ASSIGN_OR_RETURN(connection_, client::connect(location_, patience_));
  }
  Answers answers;
  GPUROTA_ASSIGN_OR_RETURN(answers.status, connection_->call(proto::Status{}, patience_));
  GPUROTA_TRY(ask_into(*connection_, proto::ListTurns{}, answers.turns, patience_));
  GPUROTA_TRY(ask_into(*connection_, proto::ListRequests{}, answers.queue, patience_));
  GPUROTA_TRY(ask_into(*connection_, proto::ListProcesses{}, answers.processes, patience_));
  GPUROTA_TRY(ask_into(*connection_, proto::ListFillers{}, answers.fillers, patience_));
  GPUROTA_TRY(ask_into(*connection_, proto::ListJobs{}, answers.jobs, patience_));
  answers.when = now();
  return answers;
}

Result<std::string> Source::carry_out(const Action& action) const {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection,
                           client::connect(location_, kPatienceToAsk));
  const std::string gpu = action.about.gpu ? action.about.gpu->value : "";
  switch (action.kind) {
    case Action::kExtend:
      return extend_lease(connection, action);
    case Action::kRelease:
      return release_lease(connection, action.about.lease.value_or(LeaseId()));
    case Action::kCancel:
      return cancel_request(connection, action.about.request.value_or(RequestId()));
    case Action::kDrain:
      GPUROTA_TRY(connection.call(proto::Drain{{gpu}, std::nullopt}, kPatienceToChange));
      return "out of service; current leases continue";
    case Action::kUndrain:
      GPUROTA_TRY(connection.call(proto::Undrain{{gpu}}, kPatienceToChange));
      return "back in service";
    case Action::kNothing:
    case Action::kQuit:
    case Action::kRedraw:
      break;
  }
  return std::string();
}

Result<Answers> Source::ask() {
  auto answers = ask_all();
  patience_ = answers ? kPatienceToAsk : kPatienceInTrouble;
  if (!answers) connection_.reset();
  return answers;
}

}  // namespace gpurota::cli::topview
