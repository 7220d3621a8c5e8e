#include "daemon/control/control_methods.h"

#include "daemon/control/calls.h"
#include "daemon/tenants/turn_keeper.h"
#include "proto/codec.h"
#include "proto/service.h"

#include <fmt/format.h>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

template <class Group, class Method>
concept Answers = requires(Group& group, const Caller& caller, const Method& params) {
  group.on(caller, params);
};

Outcome for_administrators(std::string_view what) {
  return refused({Code::kDenied, 0, fmt::format("only administrators may {}", what)});
}

Outcome signed_out() {
  return {proto::error_json({.name = std::string(proto::kSignedOut),
                             .message = "you are signed out: 'gpurota web' signs you in again",
                             .subject = {}})};
}

Outcome not_by_web() {
  return refused({Code::kDenied, 0, "this cannot be done by the web page: use gpurota"});
}

}  // namespace

template <class Method>
Outcome ControlMethods::answer(const Caller& caller, const Method& params) {
  if constexpr (Answers<LeaseMethods, Method>) {
    return leases_.on(caller, params);
  } else if constexpr (Answers<QueueMethods, Method>) {
    return queue_.on(caller, params);
  } else if constexpr (Answers<BookingMethods, Method>) {
    return bookings_.on(caller, params);
  } else if constexpr (Answers<JobMethods, Method>) {
    return jobs_.on(caller, params);
  } else if constexpr (Answers<JobChangeMethods, Method>) {
    return job_changes_.on(caller, params);
  } else if constexpr (Answers<FillerMethods, Method>) {
    return fillers_.on(caller, params);
  } else if constexpr (Answers<HistoryMethods, Method>) {
    return history_.on(caller, params);
  } else if constexpr (Answers<TurnsMethods, Method>) {
    return turns_.on(caller, params);
  } else if constexpr (Answers<LimitMethods, Method>) {
    return limits_.on(caller, params);
  } else if constexpr (Answers<NoticeMethods, Method>) {
    return notices_.on(caller, params);
  } else if constexpr (Answers<PodMethods, Method>) {
    return pods_.on(caller, params);
  } else if constexpr (Answers<WebMethods, Method>) {
    return web_.on(caller, params);
  } else {
    return on(caller, params);
  }
}

template <class Method>
Outcome ControlMethods::call_as(const Caller& caller, const Method& params) {
  const bool may = Method::kAdministratorsMay.empty() || parts_.views.is_administrator(caller.uid);
  Outcome outcome = may ? answer(caller, params) : for_administrators(Method::kAdministratorsMay);
  std::optional<LeaseId> lease = outcome.acquired;
  if constexpr (requires { lease = params.lease_id; }) {
    if (!lease) lease = params.lease_id;
  }
  const std::string_view error = proto::error_word(outcome.answer);
  if (error.empty() && !Method::kReadOnly) parts_.answers.changed();
  parts_.recorder.on_call({caller.uid, caller.process.pid, caller.session}, Method::kMethod, lease,
                          error);
  return outcome;
}

Outcome ControlMethods::call(const Caller& caller, const proto::Call& call) {
  return std::visit(
      [&]<class Method>(const Method& params) {
        if (call.session.empty()) return call_as(caller, params);
        const auto as = web_.caller_of(caller, call.session);
        if (!as) return signed_out();
        if (!Method::kWeb || call.more) return not_by_web();
        return call_as(*as, params);
      },
      call.params);
}

std::uint64_t ControlMethods::changes() const {
  return parts_.grants.changes() + parts_.turns.changes() + parts_.processes.changes();
}

Outcome ControlMethods::on(const Caller& caller, const proto::GetInfo&) {
  proto::GetInfo::Reply reply;
  reply.version = proto::version();
  reply.pid = ::getpid();
  reply.uid = ::geteuid();
  reply.tenant_socket = parts_.tenant_socket;
  if (const auto driver = parts_.driver.info) {
    reply.driver_version = driver->driver_version;
    reply.cuda_version = driver->cuda_text();
  }
  reply.gpus = static_cast<int>(parts_.gpus.entries().size());
  if (!parts_.config_file.empty()) reply.config_file = parts_.config_file;
  reply.administrator = parts_.views.is_administrator(caller.uid);
  if (!parts_.preload.empty()) reply.library = parts_.preload;
  return replied<proto::GetInfo>(reply);
}

template <class Method, class View>
Outcome ControlMethods::shared(const Caller& caller, SharedAnswers::About about, const View& view) {
  Outcome outcome;
  outcome.shared = parts_.answers.get(about, parts_.views.like(caller.uid), changes(),
                                      [&] { return proto::reply_json<Method>(view()); });
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Status&) {
  return shared<proto::Status>(caller, SharedAnswers::About::kStatus,
                               [&] { return parts_.views.status(caller.uid); });
}

Outcome ControlMethods::on(const Caller& caller, const proto::ListProcesses& call) {
  if (call.lease_id && !parts_.tables.find(*call.lease_id)) {
    return refused(no_such_lease(*call.lease_id));
  }
  if (call.lease_id) {
    return replied<proto::ListProcesses>(parts_.views.processes(caller.uid, call.lease_id));
  }
  return shared<proto::ListProcesses>(caller, SharedAnswers::About::kProcesses, [&] {
    return parts_.views.processes(caller.uid, std::nullopt);
  });
}

Outcome ControlMethods::on(const Caller& caller, const proto::Doctor&) {
  Outcome outcome;
  outcome.long_answer = parts_.self.doctor(caller.uid);
  return outcome;
}

Outcome ControlMethods::on(const Caller&, const proto::Health&) {
  return replied<proto::Health>(parts_.self.health());
}

Outcome ControlMethods::on(const Caller&, const proto::Reload&) {
  const auto reloaded = parts_.reloading.reload();
  return reloaded ? replied<proto::Reload>(*reloaded) : refused(reloaded.error());
}

Outcome ControlMethods::on(const Caller& caller, const proto::ShowConfig&) {
  return replied<proto::ShowConfig>(parts_.reloading.show_config(
      parts_.views.sees_all(caller.uid, std::nullopt), parts_.views.user_name(caller.uid)));
}

Outcome ControlMethods::on(const Caller&, const proto::ServiceInfo&) {
  return replied<proto::ServiceInfo>(proto::service_info());
}

Outcome ControlMethods::on(const Caller&, const proto::InterfaceDescription& call) {
  const auto described = proto::describe_interface(call.interface);
  if (!described) return {.answer = proto::error_json(described.error())};
  return replied<proto::InterfaceDescription>(*described);
}

}  // namespace gpurota::daemon
